//! Liveness, readiness and metrics over HTTP, and the counters of requests.

use axum::extract::State;
use axum::response::Response;
use bellwether_api::problem::Code;
use bellwether_store::{Condition, Range, Txn};
use http::header;

use super::problem::Failure;
use super::state::AppState;
use crate::metrics::{self, Metrics};
use crate::records::key_text;

pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready when the store answers and takes changes; otherwise its error.
pub(crate) async fn readyz(State(app): State<AppState>) -> Result<&'static str, Failure> {
    let store = &app.records.store;
    let refuse = |reason: String| Failure::new(Code::Store, reason);
    store
        .list(Range::one(key_text::META), None, 1)
        .await
        .map_err(|error| refuse(format!("cannot {error}")))?;
    let condition = || store.health().borrow().condition.clone();
    if matches!(condition(), Condition::ReadOnly { .. }) {
        // A store learns by a write that there is room again, and nobody may write to a server that is not ready.
        drop(store.commit(Txn { compares: Vec::new(), ops: Vec::new() }).await);
    }
    match condition() {
        Condition::Writable => Ok("ready\n"),
        Condition::ReadOnly { reason, .. } => Err(refuse(format!("the store is read-only: {reason}"))),
        Condition::Unreachable { reason, .. } => Err(refuse(format!("the store is unreachable: {reason}"))),
        Condition::Failed { reason, .. } => Err(refuse(format!("the store failed: {reason}"))),
    }
}

pub(crate) async fn metrics_page(
    State(app): State<AppState>,
) -> ([(header::HeaderName, &'static str); 1], String) {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let now = metrics::ServerGauges {
        sessions: app.traffic.sessions.count(),
        leading: app.cluster.leadership.term().is_some(),
        store: app.records.store.health().borrow().clone(),
        clocks: app.cluster.clocks.borrow().clone(),
    };
    ([(header::CONTENT_TYPE, kind)], metrics::page(&app.traffic.metrics, &app.world(), &now))
}

/// Counts a response.
pub(crate) fn count(metrics: &Metrics, response: Response) -> Response {
    metrics.requests.inc();
    if response.status().is_server_error() {
        metrics.errors.inc();
    }
    response
}
