//! Reports over HTTP.

use axum::extract::State;
use bellwether_api::v1;

use super::input::{JsonAnswer, JsonBody, NamespacePath, Node};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;

pub(crate) async fn put(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Node(name): Node,
    JsonBody(report): JsonBody<v1::report::Report>,
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::report::absorb_report(&app.records.transactor, &namespace, &name, report).await?;
    app.traffic.metrics.reports.inc();
    Ok(JsonAnswer(Empty {}))
}
