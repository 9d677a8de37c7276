//! The agent's metrics for Prometheus.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bellwether_api::metrics_page;
use http::{HeaderMap, header};

use super::api::CatalogueApi;
use super::query::ConsulQuery;
use super::refusal::ConsulRefusal;

/// The metrics, as OpenMetrics for clients that accept it, and in Prometheus' older text format for others.
pub(super) async fn page(
    State(api): State<CatalogueApi>,
    query: ConsulQuery,
    headers: HeaderMap,
) -> Result<Response, ConsulRefusal> {
    query.only(&[])?;
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let (media, page) = metrics_page::accepted(accepted, api.metrics());
    std::future::ready(Ok(([(header::CONTENT_TYPE, media)], page).into_response())).await
}
