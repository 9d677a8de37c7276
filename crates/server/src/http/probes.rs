//! Liveness, readiness and metrics over HTTP, and the counters of requests.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bellwether_api::metrics_page;
use bellwether_api::problem::Code;
use bellwether_store::{Condition, Range, Txn};
use http::{HeaderMap, header};

use super::currency;
use super::problem::Failure;
use super::state::AppState;
use crate::metrics::{self, Metrics};
use crate::records::key_text;

/// Longest wait of the readiness for an answer of the store: who asks usually waits a few seconds at most.
const READY_WITHIN: Duration = Duration::from_secs(2);

pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready when what agents and people send can succeed: the store answers and takes changes, and so does the audit log; this server knows what it has, and is
/// registered among the servers. Otherwise the first of these that is not so.
pub(crate) async fn readyz(State(app): State<AppState>) -> Result<&'static str, Failure> {
    match unready(&app).await {
        None => Ok("ready\n"),
        Some(reason) => Err(Failure::new(Code::Store, reason)),
    }
}

async fn unready(app: &AppState) -> Option<String> {
    let store = &app.records.store;
    let read = tokio::time::timeout(READY_WITHIN, store.list(Range::one(key_text::META), None, 1)).await;
    let answers = match read {
        Ok(Ok(_)) => None,
        Ok(Err(error)) => Some(format!("cannot {error}")),
        Err(_) => Some("the store does not answer in time".to_owned()),
    };
    let is_full = matches!(store.health().borrow().condition, Condition::ReadOnly { .. });
    if is_full {
        // A store learns by a write that there is room again, and nobody may write to a server that is not ready.
        let nothing = store.commit(Txn { compares: Vec::new(), ops: Vec::new() });
        drop(tokio::time::timeout(READY_WITHIN, nothing).await);
    }
    drop(tokio::time::timeout(READY_WITHIN, app.audit.probe()).await);
    let behind = || {
        let age = app.cluster.freshness.stale_for()?;
        Some(format!("this server has had no answer from its store for {}", age.brief()))
    };
    if let Some(reason) = currency::trouble(app).or(answers).or_else(behind) {
        return Some(reason);
    }
    // Acquired within milliseconds of the start.
    let mut membership = app.cluster.membership.clone();
    let registered = tokio::time::timeout(READY_WITHIN, membership.wait_for(Option::is_some)).await;
    let is_registered = registered.is_ok_and(|registered| registered.is_ok());
    (!is_registered).then(|| "this server is not registered among the servers".to_owned())
}

/// The metrics, as OpenMetrics for clients that accept it, and in Prometheus' older text format for others.
pub(crate) async fn metrics_page(
    State(app): State<AppState>,
    headers: HeaderMap,
) -> ([(header::HeaderName, &'static str); 1], String) {
    let now = metrics::ServerGauges {
        sessions: app.traffic.sessions.count(),
        leading: app.cluster.leadership.term().is_some(),
        store: app.records.store.health().borrow().clone(),
        audits: app.audit.trouble().is_none(),
        clocks: app.cluster.clocks.borrow().clone(),
        age: app.cluster.freshness.age(),
        time: app.clock.now(),
    };
    let page = metrics::page(&app.traffic.metrics, &app.world(), &now);
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let (media, page) = metrics_page::accepted(accepted, page);
    ([(header::CONTENT_TYPE, media)], page)
}

/// Counts a response.
pub(crate) fn count(metrics: &Metrics, response: Response) -> Response {
    metrics.requests.inc();
    if response.status().is_server_error() {
        metrics.errors.inc();
    }
    response
}
