//! Reports over HTTP.

use axum::extract::State;
use bellwether_api::v1;

use super::App;
use super::input::{Answer, Body, Node, Ns};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops;

pub(crate) async fn put(
    State(app): State<App>,
    Ns(namespace): Ns,
    Node(name): Node,
    Body(report): Body<v1::report::Report>,
) -> Result<Answer<Nothing>, Failure> {
    ops::report::absorb_report(&app.desk, &namespace, &name, report).await?;
    app.metrics.reports.inc();
    Ok(Answer(Nothing {}))
}
