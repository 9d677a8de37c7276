//! Targets for Prometheus' HTTP discovery.

use axum::Json;
use axum::extract::State;
use bellwether_api::v1::http_sd::{self, TargetGroup};
use bellwether_core::words::name::ServiceName;
use bellwether_core::words::near::nearest;

use super::api::CatalogueApi;
use super::query::ConsulQuery;
use super::refusal::ConsulRefusal;

/// The targets of the service `service`, with every given `tag`. Prometheus keeps its targets on an error, so a name that
/// was never registered is an error rather than an empty list.
pub(super) async fn groups(
    State(api): State<CatalogueApi>,
    query: ConsulQuery,
) -> Result<Json<Vec<TargetGroup>>, ConsulRefusal> {
    query.only(&["service", "tag"])?;
    let name: Option<ServiceName> = query.read("service")?;
    let name = name.ok_or_else(|| {
        ConsulRefusal::Invalid("cannot answer: name the service with ?service=NAME".to_owned())
    })?;
    let (tags, snapshot) = (query.tags()?, api.snapshot()?);
    let Some(service) = snapshot.catalogue.service(&name) else {
        let known = snapshot.catalogue.services().map(|(name, _)| name.as_str());
        let near = nearest(name.as_str(), known).map(|near| format!("; did you mean {near}?"));
        let near = near.unwrap_or_default();
        return Err(ConsulRefusal::NotFound(format!("service {name}: it was never registered{near}")));
    };
    let groups = http_sd::groups(&api.http().namespace, &name, service, &tags);
    std::future::ready(Ok(Json(groups))).await
}
