//! The connection of a simulated agent: which server it calls, its long poll, its reports.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bellwether_api::paths::{self, fill};
use bellwether_api::v1;
use bellwether_core::local::{accept, delay};
use bellwether_core::records::order::Order;
use bellwether_core::words::feature::Feature;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_server::http::from_peer;
use bytes::Bytes;
use http::{HeaderValue, Request};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::Instant;

use super::node::{AgentNode, AgentReport, bearer};
use crate::network::{CallEnds, CallLoss};
use crate::requests::{bare, json};
use crate::rules::DisabledRule;

/// Duration of a long poll.
const WAIT: Duration = Duration::from_secs(55);

/// Time a call may take besides.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// A long poll to an unreachable server is given up after this, as its pings are not answered.
const PINGED: Duration = Duration::from_secs(15);

/// What a simulated agent does: it has no facts.
const FEATURES: [Feature; 7] = [
    Feature::Versions,
    Feature::Files,
    Feature::Actions,
    Feature::Soak,
    Feature::Workflows,
    Feature::Jobs,
    Feature::TaskLists,
];

/// The server in use. Shared by the tasks of one life.
#[derive(Debug, Clone)]
pub(super) struct AgentConnection {
    pub(super) node: AgentNode,
    pub(super) turn: Arc<Mutex<usize>>,
}

impl AgentConnection {
    fn server(&self) -> usize {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) % self.node.servers
    }

    fn failed(&self) {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        *turn = turn.wrapping_add(1);
    }

    /// Sends a request of the node, and waits for its answer.
    pub(super) async fn ask(
        &self,
        mut request: Request<Body>,
        deadline: Duration,
    ) -> Result<(u16, Bytes), CallLoss> {
        let caller = self.node.host.to_string();
        from_peer(&mut request, bearer(&self.node.host));
        if self.node.lease.is_some() {
            let name = HeaderValue::try_from(self.node.name.as_str()).map_err(|_| CallLoss::Refused)?;
            request.headers_mut().insert(paths::LOGICAL_NODE, name);
        }
        let ends = CallEnds { caller: &caller, server: self.server() };
        self.node.network.call(ends, request, deadline).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        request: Request<Body>,
        deadline: Duration,
    ) -> Result<Option<T>, CallLoss> {
        let (status, body) = self.ask(request, deadline).await?;
        match status {
            204 => Ok(None),
            200..300 => Ok(serde_json::from_slice(&body).ok()),
            _ => Err(CallLoss::Refused),
        }
    }
}

pub(super) async fn sync(
    line: AgentConnection,
    orders: watch::Sender<u64>,
    asked: watch::Sender<u64>,
    seed: u64,
) {
    let (mut failed, mut round) = (0_u32, 0_u32);
    loop {
        round = round.wrapping_add(1);
        let known = line.node.disk().order.as_ref().map_or(0, |order| order.generation.get());
        let first = round == 1 || failed > 0;
        let wait = if first {
            Duration::from_millis(1)
        } else {
            let longest = match &line.node.lease {
                Some(_) => Span::from_millis(line.node.lease_length.as_millis() / 6),
                None => Span::from_secs(50),
            };
            delay::spread(longest, seed, round).to_duration()
        };
        let path = fill(paths::NODE_ORDER, &["default", line.node.name.as_str()]);
        let mut query = format!("{path}?generation={known}&wait={}ms", wait.as_millis());
        if line.node.lease.is_some() {
            // A server that does not know yet that another host has the node must not renew its lease.
            query.push_str("&consistency=linearizable");
        }
        let sent = Instant::now();
        // A partition is noticed by pings, whatever was asked for.
        let deadline = if line.node.network.is_cut(line.node.host.as_str(), line.server()) {
            PINGED
        } else {
            WAIT + DEADLINE
        };
        let answer: Result<Option<v1::order::OrderPoll>, CallLoss> =
            line.call(bare("GET", &query), deadline).await;
        match answer {
            Ok(answer) => {
                if failed > 0 {
                    asked.send_modify(|asked| *asked += 1);
                }
                failed = 0;
                if let Some(lease) = &line.node.lease {
                    lease.extend(sent + line.node.lease_length.to_duration() * 3 / 4);
                }
                if let Some(answer) = answer {
                    take(&line.node, answer, &orders, &asked);
                }
            }
            Err(_) => {
                failed = failed.saturating_add(1);
                line.failed();
                tokio::time::sleep(delay::before_call(failed, seed).to_duration()).await;
            }
        }
    }
}

/// Accepts an order as the real agent does: onto the disk first, and never an older one.
fn take(
    node: &AgentNode,
    answer: v1::order::OrderPoll,
    orders: &watch::Sender<u64>,
    asked: &watch::Sender<u64>,
) {
    if answer.report_requested {
        asked.send_modify(|asked| *asked += 1);
    }
    let Some(order) = answer.order.and_then(|order| Order::try_from(order).ok()) else { return };
    let mut disk = node.disk();
    match accept::newer(disk.order.as_ref(), &order) {
        Ok(()) => {
            node.trace.say(&format!("{} takes order {} of term {}", node.name, order.generation, order.term));
            orders.send_replace(order.generation.get());
            disk.order = Some(order);
        }
        Err(stale) => node.trace.say(&format!("{} cannot {stale}", node.name)),
    }
}

pub(super) async fn report(
    line: AgentConnection,
    board: watch::Sender<AgentReport>,
    asked: watch::Sender<u64>,
    clock: Clock,
    seed: u64,
) {
    let (mut boards, mut asks) = (board.subscribe(), asked.subscribe());
    let mut last: Option<AgentReport> = None;
    let mut failed = 0_u32;
    loop {
        let now = boards.borrow_and_update().clone();
        let wanted = asks.has_changed().unwrap_or(false);
        asks.mark_unchanged();
        if !wanted && last.as_ref() == Some(&now) {
            tokio::select! {
                biased;
                changed = boards.changed() => if changed.is_err() { return },
                changed = asks.changed() => if changed.is_err() { return } else { asks.mark_changed() },
            }
            continue;
        }
        let path = fill(paths::NODE_REPORT, &["default", line.node.name.as_str()]);
        let shape = shape(&line.node, &now, &clock);
        match line.call::<serde_json::Value>(json("PUT", &path, &shape), DEADLINE).await {
            Ok(_) => (last, failed) = (Some(now), 0),
            Err(_) => {
                (last, failed) = (None, failed.saturating_add(1));
                tokio::time::sleep(delay::before_call(failed, seed).to_duration()).await;
            }
        }
    }
}

fn shape(node: &AgentNode, board: &AgentReport, clock: &Clock) -> v1::report::Report {
    let now = clock.now();
    let tells_jobs = node.without != Some(DisabledRule::JobReports);
    let hosting = node.hosts_logical.then_some(Feature::LogicalNodes);
    let entities = board.entities.iter().map(|(name, account)| {
        let shape = v1::report::EntityReport {
            jobs: account
                .jobs
                .as_ref()
                .filter(|_| tells_jobs)
                .map(|jobs| jobs.iter().map(Into::into).collect()),
            running: account.running.as_ref().map(ToString::to_string),
            answering: account.answering.get(),
            activity: (&account.activity).into(),
            health: (&account.health).into(),
            healthy_for_ms: account.healthy_since.map(|since| now.since(since).as_millis()),
            soaked_ms: account.soaked.map(Span::as_millis),
            soak_failure: account.soak_failure.clone(),
            agent_restarted: account.agent_restarted,
            ..v1::report::EntityReport::default()
        };
        (name.to_string(), shape)
    });
    v1::report::Report {
        node: node.name.to_string(),
        agent_version: "sim".to_owned(),
        generation: board.generation,
        ledger: Some(node.ledger().to_string()),
        ledger_since: 0,
        sequence: 0,
        entities: entities.collect(),
        statuses: BTreeMap::new(),
        features: Some(FEATURES.iter().chain(&hosting).map(ToString::to_string).collect()),
        deleted: BTreeMap::new(),
        received_at_ms: 0,
    }
}
