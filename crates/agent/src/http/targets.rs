//! Targets for Prometheus' HTTP discovery.

use axum::Json;
use axum::extract::State;
use bellwether_api::v1::http_sd::{self, TargetGroup};
use bellwether_core::words::name::ServiceName;
use bellwether_core::words::near::nearest;

use super::api::CatalogueApi;
use super::query::ConsulQuery;
use super::refusal::ConsulRefusal;

/// The targets of the service that `service` names, with every `tag` that is named. Prometheus keeps the targets it has when
/// it is refused, so a name that nobody ever heard of is refused.
pub(super) async fn groups(
    State(desk): State<CatalogueApi>,
    query: ConsulQuery,
) -> Result<Json<Vec<TargetGroup>>, ConsulRefusal> {
    query.only(&["service", "tag"])?;
    let name: Option<ServiceName> = query.read("service")?;
    let name = name
        .ok_or_else(|| ConsulRefusal::Invalid("could not answer: say which with ?service=NAME".to_owned()))?;
    let (tags, snapshot) = (query.tags()?, desk.snapshot()?);
    let Some(service) = snapshot.catalogue.service(&name) else {
        let known = snapshot.catalogue.services().map(|(name, _)| name.as_str());
        let near = nearest(name.as_str(), known).map(|near| format!("; did you mean {near}?"));
        let near = near.unwrap_or_default();
        return Err(ConsulRefusal::NotFound(format!("service {name}: nobody ever offered it{near}")));
    };
    let groups = http_sd::groups(&desk.http().namespace, (&name, service), &tags);
    std::future::ready(Ok(Json(groups))).await
}
