//! The hanging request: heartbeat and order in one.

mod refused;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::client::{CallError, Client, NodeKnowledge};
use bellwether_api::v1;
use bellwether_core::local::servers::LiveServer;
use bellwether_core::local::{accept, delay};
use bellwether_core::records::order::Order;
use bellwether_core::words::counter::Generation;
use bellwether_core::words::name::{Namespace, NodeName};
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use super::connection::Connection;
use super::retry::before_again;
use crate::catalogue::CatalogueSnapshot;
use crate::ledger::Ledger;
use crate::report_board::ReportBoard;
pub(super) use refused::{Order as RefusedOrder, Refused};

/// How long a request hangs, give or take a quarter: below a minute, at which many middle boxes cut idle connections.
const WAIT: Span = Span::from_secs(44);

/// As short as a request can hang: for finding out whether somebody answers.
const AT_ONCE: Span = Span::from_millis(1);

/// A server that asks for a report gets one before it is asked for orders again, unless that takes longer than this.
const DELIVERY: Duration = Duration::from_secs(2);

/// The hanging request, over and over.
#[derive(Debug)]
pub(super) struct OrderPoll {
    pub(super) line: Connection,
    pub(super) node: NodeName,
    pub(super) namespace: Namespace,
    pub(super) ledger: Ledger,
    pub(super) orders: watch::Sender<Option<Arc<Order>>>,
    pub(super) board: watch::Sender<ReportBoard>,
    pub(super) asked: watch::Sender<u64>,
    pub(super) deliveries: watch::Receiver<u64>,
    pub(super) snapshot: watch::Sender<Arc<CatalogueSnapshot>>,
    pub(super) wants_catalogue: watch::Receiver<bool>,
    /// The catalogue that was not understood.
    pub(super) misread: Refused,
    pub(super) refused: RefusedOrder,
    pub(super) data_dir: PathBuf,
    pub(super) level: Tasks,
    pub(super) clock: Clock,
    pub(super) seed: u64,
}

impl OrderPoll {
    /// Works until the level stops.
    pub(super) async fn run(mut self) {
        let token = self.level.token();
        let (mut failed, mut round) = (0_u32, 0_u32);
        loop {
            round = round.wrapping_add(1);
            let mut wants = self.wants_catalogue.clone();
            wants.mark_unchanged();
            let asks_for_any = self.refused.refused.left(self.clock.now()).is_none();
            // A request that is dropped is asked again by the next agent, or at once when more is wanted or another server
            // is to be asked; taking an order in is not cut short.
            let answer = tokio::select! {
                () = token.cancelled() => return,
                () = turned(&mut wants) => continue,
                () = self.go_to_a_better_one() => continue,
                answer = self.ask(round, failed) => answer,
            };
            let pause = match answer {
                Ok(answer) => {
                    if failed > 0 {
                        tracing::info!("the control plane answers again");
                        // It may be another one, or have forgotten: tell it everything.
                        self.ask_report();
                    }
                    failed = 0;
                    self.line.answered(self.clock.now());
                    if asks_for_any && answer.order.is_none() {
                        // There is none any more that could be refused.
                        self.take_back();
                    }
                    self.heed(answer).await
                }
                Err(error) => {
                    if failed == 0 {
                        tracing::warn!("could not {error}; going on from the ledger and calling again");
                    }
                    failed = failed.saturating_add(1);
                    self.line.failed(&error, self.clock.now());
                    Some(before_again(&error, failed, self.seed))
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

    async fn ask(&self, round: u32, failed: u32) -> Result<v1::order::OrderPoll, CallError> {
        let now = self.clock.now();
        let in_hand = self.orders.borrow().as_ref().map_or(Generation::ZERO, |order| order.generation);
        let known = self.refused.known(in_hand, now);
        let wants = *self.wants_catalogue.borrow();
        let held = self.misread.left(now);
        let seen = (wants && held.is_none()).then(|| self.misread.seen(self.snapshot.borrow().index));
        let wait = hangs(round, failed, self.seed);
        let wait = [held, self.refused.refused.left(now)].into_iter().flatten().fold(wait, Span::min);
        let known =
            NodeKnowledge { generation: known.get(), catalogue: seen, servers: Some(self.line.tag()) };
        let client = self.line.client()?;
        client.sync(self.namespace.as_str(), self.node.as_str(), known, wait.to_duration()).await
    }

    /// Comes back when a better server is called from now on. Until that one has answered, the one that is called is left
    /// hanging: somebody hears this node at any time.
    async fn go_to_a_better_one(&self) {
        loop {
            let Some((server, at)) = self.line.better(self.clock.now()) else {
                return std::future::pending().await;
            };
            tokio::time::sleep(at.since(self.clock.now()).to_duration()).await;
            match self.try_out(server.clone()).await {
                Ok(client) => {
                    tracing::info!(server, "calling a better server from now on");
                    return self.line.move_to(client);
                }
                Err(error) => {
                    tracing::debug!("could not {error}; staying with the server that answers");
                    self.line.avoid(&server, self.clock.now());
                }
            }
        }
    }

    /// Asks a server for what would be asked of it, without hanging.
    async fn try_out(&self, server: String) -> Result<Client, CallError> {
        let known = self.orders.borrow().as_ref().map_or(Generation::ZERO, |order| order.generation);
        let client = self.line.towards(server)?;
        let asked = (known.get(), None);
        client.sync(self.namespace.as_str(), self.node.as_str(), asked, AT_ONCE.to_duration()).await?;
        Ok(client)
    }

    /// Takes in what was answered. Says how long to wait before asking again, if at all.
    async fn heed(&mut self, answer: v1::order::OrderPoll) -> Option<Span> {
        let wants_report = answer.report_requested;
        if let Some(servers) = answer.servers {
            self.hear_of(servers).await;
        }
        if let Some(update) = answer.catalogue {
            self.learn(update);
        }
        if let Some(order) = answer.order {
            self.consider(order).await;
        }
        if wants_report {
            let number = self.ask_report();
            let delivered = self.deliveries.wait_for(|delivered| *delivered >= number);
            let late = tokio::time::timeout(DELIVERY, delivered).await.is_err();
            return late.then_some(delay::FIRST);
        }
        None
    }

    /// Takes an order, or says why not, once. One that was refused is asked for again after a while; the line goes on.
    async fn consider(&mut self, order: v1::order::Order) {
        let generation = Generation::new(order.generation);
        match self.take(order).await {
            Ok(()) => self.take_back(),
            Err(reason) if self.refused.happened(generation, self.clock.now(), self.seed) => {
                tracing::warn!("could not {reason}; going on with the order in hand");
                self.line.refused(Some(format!("could not {reason}")));
            }
            Err(reason) => tracing::debug!("could not {reason}"),
        }
    }

    /// Nothing is refused any more.
    fn take_back(&mut self) {
        if self.refused.refused.is_over() {
            self.line.refused(None);
        }
    }

    /// Takes in which servers there are, and keeps it for the next start. Servers that cannot be understood are none.
    async fn hear_of(&self, servers: v1::server::LiveServers) {
        let understood = servers.servers.into_iter().filter_map(|server| LiveServer::try_from(server).ok());
        let known = self.line.told(servers.tag, understood.collect(), self.clock.now());
        let dir = self.data_dir.clone();
        let stored = self.level.spawn_blocking(move || known.store(&dir)).await;
        if let Ok(Err(error)) = stored {
            tracing::warn!(%error, "could not keep which servers there are");
        }
    }

    /// Takes in what the copy of the catalogue lacked. What cannot be understood leaves the copy as it is, and is asked for
    /// again, whole, after a while.
    fn learn(&mut self, update: v1::service::CatalogueUpdate) {
        let learned = self.snapshot.borrow().with(update);
        match learned {
            Ok(snapshot) => {
                if self.misread.is_over() {
                    tracing::info!("understood the catalogue again");
                    self.line.misread(None);
                }
                self.snapshot.send_replace(Arc::new(snapshot));
            }
            Err(reason) if self.misread.happened(self.clock.now(), self.seed) => {
                tracing::error!(
                    reason,
                    "could not understand the catalogue; going on with what was known before, and asking for all of it \
                     again and again: is this agent older than its server?"
                );
                self.line.misread(Some(reason));
            }
            Err(reason) => tracing::debug!(reason, "could not understand the catalogue"),
        }
    }

    /// Asks for a report, whether or not something changed; answers which ask this is.
    fn ask_report(&self) -> u64 {
        let number = self.asked.borrow().wrapping_add(1);
        self.asked.send_replace(number);
        number
    }

    /// Takes an order: into the ledger first, then to the entities.
    async fn take(&self, order: v1::order::Order) -> Result<(), String> {
        let order = Order::try_from(order).map_err(|error| error.to_string())?;
        let known = self.orders.borrow().clone();
        accept::newer(known.as_deref(), &order).map_err(|stale| stale.to_string())?;
        fail::pass(FailPoint::OrderReceived);
        self.ledger.keep_order(&order).await.map_err(|error| error.to_string())?;
        fail::pass(FailPoint::OrderKept);
        tracing::info!(generation = order.generation.get(), "took an order");
        self.board.send_modify(|board| board.generation = order.generation);
        self.orders.send_replace(Some(Arc::new(order)));
        Ok(())
    }
}

/// Waits until the catalogue is wanted, or no longer; for ever if nobody can want it any more.
async fn turned(wants: &mut watch::Receiver<bool>) {
    if wants.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// How long a request asks to hang. The first one, and the first after a failed one, come back at once: else nobody
/// knew for most of a minute that the line is up again.
fn hangs(round: u32, failed: u32, seed: u64) -> Span {
    if round == 1 || failed > 0 { AT_ONCE } else { delay::spread(WAIT, seed, round) }
}

#[cfg(test)]
mod tests;
