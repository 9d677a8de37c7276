//! The order poll: a long poll that is heartbeat and order in one.

mod refused;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bellwether_api::client::{CallError, Client, NodeKnowledge};
use bellwether_api::problem::Code;
use bellwether_api::v1;
use bellwether_api::v1::authorities::TrustBundle;
use bellwether_api::v1::node_params::LiveParams;
use bellwether_core::local::servers::LiveServer;
use bellwether_core::local::{accept, delay};
use bellwether_core::records::order::Order;
use bellwether_core::words::counter::Generation;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::tasks::Tasks;
use bellwether_rt::wait::changed_or_never;
use tokio::sync::watch;

use super::connection::Connection;
use super::job_logs::LogAnswers;
use super::registered::RegisteredAt;
use super::report_numbers::{SharedNumbers, tell_doubled};
use super::retry::{cannot, retry_after};
use crate::catalogue::CatalogueSnapshot;
use crate::identity::Identity;
use crate::lease::LeaseRenewal;
use crate::ledger::Ledger;
use crate::report_board::ReportBoard;
pub(super) use refused::{Order as RefusedOrder, Refused};

/// How long a poll waits at the server, give or take a quarter: below a minute, at which many proxies cut idle connections.
const WAIT: Span = Span::from_secs(44);

/// Shortest wait of a poll: to find out whether a server answers.
const AT_ONCE: Span = Span::from_millis(1);

/// A server that requests a report gets it before the next poll, unless that takes longer than this.
const DELIVERY: Duration = Duration::from_secs(2);

/// The repeated order poll.
#[derive(Debug)]
pub(super) struct OrderPoll {
    pub(super) connection: Connection,
    /// Sends what readers of logs ask for.
    pub(super) job_logs: LogAnswers,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) ledger: Ledger,
    pub(super) orders: watch::Sender<Option<Arc<Order>>>,
    pub(super) board: watch::Sender<ReportBoard>,
    pub(super) report_requests: watch::Sender<u64>,
    /// The numbers of the reports.
    pub(super) numbers: Arc<SharedNumbers<ReportBoard>>,
    /// Where the registrations are recorded.
    pub(super) registered: Arc<RegisteredAt>,
    pub(super) deliveries: watch::Receiver<u64>,
    pub(super) snapshot: watch::Sender<Arc<CatalogueSnapshot>>,
    pub(super) wants_catalogue: watch::Receiver<bool>,
    /// The params that reach this node without a rollout; `None` if nothing on it uses them.
    pub(super) live_params: Option<watch::Sender<Arc<LiveParams>>>,
    /// The catalogue update that cannot be understood.
    pub(super) misread: Refused,
    pub(super) refused: RefusedOrder,
    pub(super) data_dir: PathBuf,
    pub(super) tasks: Tasks,
    pub(super) clock: Clock,
    pub(super) seed: u64,
    pub(super) decommissioned: Arc<OnceLock<String>>,
    /// The lease of a logical node, which each answer renews; `None` for a machine.
    pub(super) lease: Option<LeaseRenewal>,
}

impl OrderPoll {
    /// Runs until the agent stops.
    pub(super) async fn run(mut self) {
        let token = self.tasks.token();
        let (mut failed, mut round) = (0_u32, 0_u32);
        loop {
            round = round.wrapping_add(1);
            let mut wants = self.wants_catalogue.clone();
            wants.mark_unchanged();
            let sent = self.lease.as_ref().and_then(LeaseRenewal::now);
            let identity = self.connection.identity();
            let named = self.registered.revision();
            let asks_for_any = self.refused.refused.left(self.clock.now()).is_none();
            // A dropped poll is repeated by the next agent, or at once when the catalogue is wanted, or another server or certificate is used;
            // accepting an order is not interrupted.
            let answer = tokio::select! {
                () = token.cancelled() => return,
                () = changed_or_never(&mut wants) => continue,
                _ = self.connection.renewed_from(&identity) => continue,
                () = self.move_to_better_server() => continue,
                answer = self.poll((round, failed), named) => answer,
            };
            let pause = match answer {
                Ok(answer) => {
                    if let Some(lease) = &self.lease {
                        lease.answered(sent);
                    }
                    if failed > 0 {
                        tracing::info!("the control plane answers again");
                        // It may be another server, or have forgotten this node: report everything.
                        self.request_report();
                    }
                    failed = 0;
                    if asks_for_any && answer.order.is_none() {
                        // There is no refused order any more.
                        self.clear_refused();
                    }
                    self.handle(answer, (identity, named)).await
                }
                Err(CallError::Problem(problem)) if problem.code == Code::Decommissioned => {
                    // It is final: the name may belong to another machine by now.
                    self.decommissioned.get_or_init(|| problem.detail);
                    return self.tasks.cancel();
                }
                Err(error) => {
                    if failed == 0 {
                        tracing::warn!("{}; continuing from the ledger, and retrying", cannot(&error));
                    }
                    failed = failed.saturating_add(1);
                    self.connection.failed(&error, self.clock.now());
                    Some(retry_after(&error, failed, self.seed))
                }
            };
            if let Some(pause) = pause {
                tokio::select! {
                    () = token.cancelled() => return,
                    () = tokio::time::sleep(pause.to_duration()) => {}
                }
            }
        }
    }

    async fn poll(
        &self,
        (round, failed): (u32, u32),
        registered: Option<u64>,
    ) -> Result<v1::order::OrderPoll, CallError> {
        let now = self.clock.now();
        let in_hand = self.orders.borrow().as_ref().map_or(Generation::ZERO, |order| order.generation);
        let known = self.refused.known(in_hand, now);
        let wants = *self.wants_catalogue.borrow();
        let backoff = self.misread.left(now);
        let index =
            (wants && backoff.is_none()).then(|| self.misread.poll_index(self.snapshot.borrow().index));
        let wait = poll_wait(round, failed, self.seed);
        let wait = [backoff, self.refused.refused.left(now)].into_iter().flatten().fold(wait, Span::min);
        let wait = self.lease.as_ref().map_or(wait, |lease| wait.min(lease.longest_wait()));
        let known = NodeKnowledge {
            generation: known.get(),
            catalogue: index,
            servers: Some(self.connection.tag()),
            params: self.live_params.as_ref().map(|live| live.borrow().tag.clone()),
            // A logical node is called with the identity of its host, which takes in others.
            authorities: self.lease.is_none().then(|| self.connection.identity().trusted_version()),
            // One that is hosted elsewhere meanwhile is another one's to report.
            reported: self.lease.is_none().then(|| self.numbers.last()).flatten(),
            registered: registered.filter(|_| self.lease.is_none()),
            ledger: (self.lease.is_none() && self.numbers.has_arrived())
                .then(|| self.ledger.id().to_string()),
        };
        let client = self.connection.client()?;
        client.sync(self.namespace.as_str(), self.node.as_str(), known, wait.to_duration()).await
    }

    /// Returns after moving to a better server. Until that one has answered, the poll of the current one continues, so that
    /// the node is never taken for unreachable meanwhile.
    async fn move_to_better_server(&self) {
        loop {
            let Some((server, at)) = self.connection.better(self.clock.now()) else {
                return std::future::pending().await;
            };
            tokio::time::sleep(at.since(self.clock.now()).to_duration()).await;
            match self.probe(server.clone()).await {
                Ok(client) => {
                    tracing::info!(server, "moved to a better server");
                    return self.connection.move_to(client);
                }
                Err(error) => {
                    tracing::info!(server, "{}; staying with the current server", cannot(&error));
                    self.connection.avoid(&server, self.clock.now());
                }
            }
        }
    }

    /// Polls another server without waiting.
    async fn probe(&self, server: String) -> Result<Client, CallError> {
        let known = self.orders.borrow().as_ref().map_or(Generation::ZERO, |order| order.generation);
        let client = self.connection.towards(server)?;
        let asked = (known.get(), None);
        client.sync(self.namespace.as_str(), self.node.as_str(), asked, AT_ONCE.to_duration()).await?;
        Ok(client)
    }

    /// Handles an answer. Returns how long to wait before the next poll, if at all.
    async fn handle(
        &mut self,
        answer: v1::order::OrderPoll,
        (shown, registered): (Identity, Option<u64>),
    ) -> Option<Span> {
        if answer.overwritten && self.registered.overwritten(registered, self.clock.now()) {
            tell_doubled(&self.board);
        }
        // Before the contact is shown: whoever waits for that reads the catalogue of this answer then.
        if let Some(update) = answer.catalogue {
            self.update_catalogue(update);
        }
        self.connection.answered(self.clock.now());
        self.job_logs.begin(answer.log_requests);
        let trusts = self.take_in_authorities(answer.authorities, answer.renew.then_some(shown)).await;
        let wants_report = answer.report_requested;
        if let Some(servers) = answer.servers {
            self.save_servers(servers).await;
        }
        // Before the order, whose files may be rendered from them.
        let kept = match answer.params {
            Some(params) => self.save_params(params).await,
            None => true,
        };
        if let Some(order) = answer.order {
            self.accept_or_refuse(order).await;
        }
        if wants_report {
            let number = self.request_report();
            let delivered = self.deliveries.wait_for(|delivered| *delivered >= number);
            let late = tokio::time::timeout(DELIVERY, delivered).await.is_err();
            return late.then_some(delay::FIRST);
        }
        // The server would answer the next poll at once with what cannot be stored.
        (!(kept && trusts)).then_some(delay::FIRST)
    }

    /// Has the authorities taken in, and the certificate renewed that was shown if it is outdated. Returns whether they are stored.
    async fn take_in_authorities(
        &self,
        authorities: Option<TrustBundle>,
        outdated: Option<Identity>,
    ) -> bool {
        let version = authorities.as_ref().map_or(0, |authorities| authorities.version);
        if let Some(authorities) = authorities {
            self.connection.trust().trust(authorities);
        }
        if let Some(outdated) = outdated {
            self.connection.trust().outdated(outdated.certificate);
        }
        tokio::time::timeout(DELIVERY, self.connection.trusts(version)).await.is_ok()
    }

    /// Takes in the params that reach this node without a rollout: into the ledger first, then to the entities. Returns whether
    /// they are stored.
    async fn save_params(&self, params: LiveParams) -> bool {
        let Some(live) = &self.live_params else { return true };
        if let Err(error) = self.ledger.keep_live_params(&params).await {
            tracing::warn!("cannot {error}; the params before stay in use");
            return false;
        }
        live.send_replace(Arc::new(params));
        true
    }

    /// Accepts an order, or records why it is refused. A refused order is requested again after a while; polling goes on.
    async fn accept_or_refuse(&mut self, order: v1::order::Order) {
        let generation = Generation::new(order.generation);
        match self.accept(order).await {
            Ok(()) => self.clear_refused(),
            Err(reason) => {
                let is_first = self.refused.happened(generation, self.clock.now(), self.seed);
                if is_first {
                    tracing::warn!(
                        "cannot {reason}; order {generation} is refused, and the order before stays in force"
                    );
                } else {
                    tracing::debug!("cannot {reason}");
                }
                self.set_refused(Some(format!("cannot {reason}; order {generation} is refused")));
            }
        }
    }

    /// Records that no order is refused any more.
    fn clear_refused(&mut self) {
        if self.refused.refused.is_over() {
            self.set_refused(None);
        }
    }

    /// Shows on this machine, and reports, why the order is refused; `None` once one was accepted.
    fn set_refused(&self, reason: Option<String>) {
        self.board.send_if_modified(|board| {
            let changed = board.refused_order != reason;
            board.refused_order.clone_from(&reason);
            changed
        });
        self.connection.refused(reason);
    }

    /// Takes in which servers are live, and saves them for the next start. Entries that are not valid are skipped.
    async fn save_servers(&self, servers: v1::server::LiveServers) {
        let understood = servers.servers.into_iter().filter_map(|server| LiveServer::try_from(server).ok());
        let known = self.connection.advertised(servers.tag, understood.collect(), self.clock.now());
        let dir = self.data_dir.clone();
        let stored = self.tasks.spawn_blocking(move || known.store(&dir)).await;
        if let Ok(Err(error)) = stored {
            tracing::warn!(%error, "cannot save the servers");
        }
    }

    /// Applies a catalogue update. One that cannot be understood leaves the copy as it is; after a while the whole catalogue
    /// is requested.
    fn update_catalogue(&mut self, update: v1::service::CatalogueUpdate) {
        let learned = self.snapshot.borrow().with(update);
        match learned {
            Ok(snapshot) => {
                if self.misread.is_over() {
                    tracing::info!("the catalogue is understood again");
                    self.connection.misread(None);
                }
                self.snapshot.send_replace(Arc::new(snapshot));
            }
            Err(reason) if self.misread.happened(self.clock.now(), self.seed) => {
                tracing::error!(
                    reason,
                    "cannot understand the catalogue update; the copy before stays in use, and the whole catalogue is \
                     requested; upgrade this agent if it is older than its server"
                );
                self.connection.misread(Some(reason));
            }
            Err(reason) => tracing::debug!(reason, "cannot understand the catalogue update"),
        }
    }

    /// Requests a report from this agent, whether or not anything changed; returns the number of the request.
    fn request_report(&self) -> u64 {
        let number = self.report_requests.borrow().wrapping_add(1);
        self.report_requests.send_replace(number);
        number
    }

    /// Accepts an order: into the ledger first, then to the entities.
    async fn accept(&self, order: v1::order::Order) -> Result<(), String> {
        let order = Order::try_from(order).map_err(|error| error.to_string())?;
        let known = self.orders.borrow().clone();
        accept::newer(known.as_deref(), &order).map_err(|stale| stale.to_string())?;
        fail::pass(FailPoint::OrderReceived);
        self.ledger.keep_order(&order).await.map_err(|error| error.to_string())?;
        fail::pass(FailPoint::OrderStored);
        tracing::info!(generation = order.generation.get(), "accepted an order");
        self.board.send_modify(|board| board.follow(&order));
        self.orders.send_replace(Some(Arc::new(order)));
        Ok(())
    }
}

/// How long a poll asks to wait. The first poll, and the first after a failure, return at once: otherwise it would take
/// most of a minute to find out that the connection works again.
fn poll_wait(round: u32, failed: u32, seed: u64) -> Span {
    if round == 1 || failed > 0 { AT_ONCE } else { delay::spread(WAIT, seed, round) }
}

#[cfg(test)]
mod tests;
