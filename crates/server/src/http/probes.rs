//! Liveness, readiness and metrics over HTTP, and the counters of requests.

use axum::extract::State;
use axum::response::Response;
use bellwether_api::problem::Code;
use bellwether_store::Range;
use http::header;

use super::problem::Failure;
use super::state::AppState;
use crate::metrics::{self, Metrics};
use crate::records::key_text;

pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Ready when the store answers; otherwise its error.
pub(crate) async fn readyz(State(app): State<AppState>) -> Result<&'static str, Failure> {
    match app.records.store.list(Range::one(key_text::META), None, 1).await {
        Ok(_) => Ok("ready\n"),
        Err(error) => Err(Failure::new(Code::Store, format!("cannot {error}"))),
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
