//! Targets for Prometheus' HTTP discovery.

use axum::Json;
use axum::extract::State;
use bellwether_api::v1::http_sd::{self, TargetGroup};
use bellwether_core::words::name::ServiceName;
use bellwether_core::words::near::nearest;

use super::desk::Desk;
use super::query::Query;
use super::refusal::Refusal;

/// The targets of the service that `service` names, with every `tag` that is named. Prometheus keeps the targets it has when
/// it is refused, so a name that nobody ever heard of is refused.
pub(super) async fn groups(
    State(desk): State<Desk>,
    query: Query,
) -> Result<Json<Vec<TargetGroup>>, Refusal> {
    query.only(&["service", "tag"])?;
    let name: Option<ServiceName> = query.read("service")?;
    let name =
        name.ok_or_else(|| Refusal::Invalid("could not answer: say which with ?service=NAME".to_owned()))?;
    let (tags, picture) = (query.tags()?, desk.picture()?);
    let Some(service) = picture.catalogue.service(&name) else {
        let known = picture.catalogue.services().map(|(name, _)| name.as_str());
        let near = nearest(name.as_str(), known).map(|near| format!("; did you mean {near}?"));
        let near = near.unwrap_or_default();
        return Err(Refusal::NotFound(format!("service {name}: nobody ever offered it{near}")));
    };
    let groups = http_sd::groups(&desk.http().namespace, (&name, service), &tags);
    std::future::ready(Ok(Json(groups))).await
}
