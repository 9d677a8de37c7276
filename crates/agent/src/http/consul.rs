//! A part of Consul's catalogue API, read only: the endpoints that its clients use to find services and to watch them.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use bellwether_core::words::name::{NodeName, ServiceName};
use serde::Serialize;
use serde_json::json;

use super::api::CatalogueApi;
use super::query::ConsulQuery;
use super::refusal::ConsulRefusal;

pub(super) async fn services(
    State(api): State<CatalogueApi>,
    query: ConsulQuery,
) -> Result<Response, ConsulRefusal> {
    query.only(&[])?;
    api.answer(&query, |view| view.services()).await
}

pub(super) async fn service(
    State(api): State<CatalogueApi>,
    Path(name): Path<String>,
    query: ConsulQuery,
) -> Result<Response, ConsulRefusal> {
    query.only(&["tag"])?;
    let (name, tags) = (name_of(&name), query.tags()?);
    api.answer(&query, |view| name.as_ref().map(|name| view.service(name, &tags)).unwrap_or_default()).await
}

pub(super) async fn nodes(
    State(api): State<CatalogueApi>,
    query: ConsulQuery,
) -> Result<Response, ConsulRefusal> {
    query.only(&[])?;
    api.answer(&query, |view| view.nodes()).await
}

pub(super) async fn node(
    State(api): State<CatalogueApi>,
    Path(name): Path<String>,
    query: ConsulQuery,
) -> Result<Response, ConsulRefusal> {
    query.only(&[])?;
    let name = NodeName::parse(&name).ok();
    api.answer(&query, |view| name.as_ref().and_then(|name| view.node_services(name))).await
}

pub(super) async fn datacentres(
    State(api): State<CatalogueApi>,
    query: ConsulQuery,
) -> Result<Response, ConsulRefusal> {
    query.only(&[])?;
    std::future::ready(Ok(Json([api.http().datacentre.to_string()]).into_response())).await
}

pub(super) async fn health_of_service(
    State(api): State<CatalogueApi>,
    Path(name): Path<String>,
    query: ConsulQuery,
) -> Result<Response, ConsulRefusal> {
    query.only(&["tag", "passing"])?;
    let (name, tags, passing) = (name_of(&name), query.tags()?, query.switch("passing")?);
    let say = |view: bellwether_api::consul::View<'_>| {
        name.as_ref().map(|name| view.health(name, &tags, passing)).unwrap_or_default()
    };
    api.answer(&query, say).await
}

pub(super) async fn health_of_node(
    State(api): State<CatalogueApi>,
    Path(name): Path<String>,
    query: ConsulQuery,
) -> Result<Response, ConsulRefusal> {
    query.only(&[])?;
    let name = NodeName::parse(&name).ok();
    api.answer(&query, |view| name.as_ref().map(|name| view.node_health(name)).unwrap_or_default()).await
}

/// This agent: clients without a configured datacentre read it here.
pub(super) async fn this_agent(State(api): State<CatalogueApi>) -> impl IntoResponse {
    let http = api.http();
    let address = api.snapshot().ok().and_then(|snapshot| snapshot.catalogue.host(&http.node)?.preferred());
    let about = json!({
        "Config": {
            "Datacenter": http.datacentre.as_str(),
            "NodeName": http.node.as_str(),
            "NodeID": http.node.as_str(),
            "Server": false,
            "Version": env!("CARGO_PKG_VERSION"),
        },
        "Member": {
            "Name": http.node.as_str(),
            "Addr": address.map(|address| address.to_string()).unwrap_or_default(),
            "Status": 1,
            "Tags": { "dc": http.datacentre.as_str(), "role": "node" },
        },
        "Meta": {},
    });
    std::future::ready(json_of(&about)).await
}

/// The server that this agent uses; empty while none answers.
pub(super) async fn leader(State(api): State<CatalogueApi>) -> impl IntoResponse {
    let contact = api.contact();
    let server = if contact.connected_since.is_some() { contact.server.as_str() } else { "" };
    std::future::ready(json_of(server.trim_start_matches("https://"))).await
}

fn json_of<T: Serialize + ?Sized>(value: &T) -> Response {
    Json(value).into_response()
}

/// A text that is not a valid service name is the name of a service without instances.
fn name_of(text: &str) -> Option<ServiceName> {
    ServiceName::parse(text).ok()
}
