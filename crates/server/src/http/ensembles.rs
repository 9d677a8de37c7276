//! Ensembles over HTTP.

use axum::extract::State;
use bellwether_api::list::tables::ENSEMBLES;
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::ensemble::adoption::RemoveForeignMember;
use bellwether_api::v1::ensemble::certificates::{ClientCertificateRequest, EnsembleCertificate};
use bellwether_api::v1::ensemble::osds::{RemoveOsd, ReplaceOsd};
use bellwether_api::v1::ensemble::requests::{ReplaceMember, ResumeEnsemble, RollMembers};
use bellwether_api::v1::ensemble::restore::RestoreSpec;
use bellwether_api::v1::ensemble::snapshots::TakeSnapshot;
use bellwether_api::v1::ensemble::status::{EnsembleStatus, RefusedDevice};
use bellwether_api::v1::ensemble::{Ensemble, EnsembleSpec, FailoverEnsemble, PlanEnsemble, ScaleEnsemble};
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::decide::ensembles::osds::explain;
use bellwether_core::decide::ensembles::plan;
use bellwether_core::records::ensemble::Ensemble as CoreEnsemble;
use bellwether_core::records::ensemble_members::{EnsembleMembers, Member};
use bellwether_core::records::ensemble_requests::RollingAction;
use bellwether_core::rollout::why::WhyTime;
use bellwether_core::words::name::{EnsembleName, Namespace};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{
    AtRevision, JsonAnswer, JsonBody, NamedEnsemble, NamespacePath, OptionalBody, QueryParams,
};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::readable::Readable;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::OpError;
use crate::ops::ensemble::EnsembleScope;
use crate::ops::ensemble::restore::READS_DATA;

/// Most nodes without a member that an answer names.
const REFUSALS_SHOWN: usize = 100;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &ENSEMBLES, &[])?;
    let world = app.world();
    let of = |fleet| ops::ensemble::list(fleet).collect::<Vec<_>>();
    let ensembles = world.fleets.get(&namespace).map(of).unwrap_or_default();
    list.answer_json((&ENSEMBLES, app.clock.now()), ensembles.into_iter(), world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    readable: Readable,
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace).ok_or_else(|| missing(&name))?;
    let kept = fleet.ensembles.get(&name).ok_or_else(|| missing(&name))?;
    Ok(JsonAnswer(shown((&world, fleet), &readable, &kept.value, app.why_time(&world))))
}

/// That there is no such ensemble.
pub(super) fn missing(name: &EnsembleName) -> Failure {
    Failure::new(Code::NotFound, format!("cannot find ensemble {name}"))
        .hint("list them: bellwether ensemble list")
}

/// The members of an ensemble; `None` before any were ordered.
pub(super) fn members<'a>(fleet: &'a Fleet, name: &EnsembleName) -> Option<&'a EnsembleMembers> {
    fleet.ensemble_members.get(name).map(|kept| &*kept.value)
}

/// An ensemble with its members, what is to happen to them, and the nodes that may have none, as far as the caller may read these.
fn shown(
    (world, fleet): (&World, &Fleet),
    readable: &Readable,
    ensemble: &CoreEnsemble,
    time: WhyTime,
) -> Ensemble {
    let now = time.now;
    let stop = world.stop(fleet, now);
    let plan = plan::plan(fleet, ensemble, stop.as_deref(), (now, time.watch.settled()));
    let members = members(fleet, &ensemble.name);
    let is_seen = |node: &str| readable.has_object(ObjectKind::Node, node);
    let status = EnsembleStatus::planned(&plan, (members, fleet), is_seen, REFUSALS_SHOWN);
    let devices = members.map(|members| explain::refused(fleet, ensemble, members, now)).unwrap_or_default();
    let refused_devices = RefusedDevice::seen(devices, is_seen);
    let status = EnsembleStatus { refused_devices, ..status };
    Ensemble { status: Some(status), ..Ensemble::from(ensemble) }
}

/// An ensemble as it was changed, or would be, with what may not be meant.
fn changed(app: &AppState, namespace: &Namespace, readable: &Readable, ensemble: &CoreEnsemble) -> Ensemble {
    let (world, empty) = (app.world(), Fleet::default());
    let fleet = world.fleets.get(namespace).unwrap_or(&empty);
    let warning = ops::ensemble::warning(fleet, ensemble);
    Ensemble { warning, ..shown((&world, fleet), readable, ensemble, app.why_time(&world)) }
}

/// Refuses a caller who may not read the data of the ensemble of which the snapshot was taken that another one is founded from.
pub(super) fn may_restore(
    caller: &Authenticated,
    namespace: &Namespace,
    restore: Option<&RestoreSpec>,
) -> Result<(), Failure> {
    let Some(restore) = restore else { return Ok(()) };
    let snapshot = ops::ensemble::restore::named(restore).map_err(OpError::from)?;
    caller.require(READS_DATA, Some(snapshot.ensemble.as_str()), Some(namespace))
}

pub(crate) async fn put(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    AtRevision(only_at): AtRevision,
    JsonBody(spec): JsonBody<EnsembleSpec>,
) -> Result<SetResponse<Ensemble>, Failure> {
    may_restore(&caller, &namespace, spec.restore.as_ref())?;
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    let (ensemble, is_new) = ops::ensemble::set(&app.records.transactor, scope, &spec).await?;
    Ok(SetResponse { is_new, value: changed(&app, &namespace, &readable, &ensemble) })
}

pub(crate) async fn scale(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    AtRevision(only_at): AtRevision,
    JsonBody(request): JsonBody<ScaleEnsemble>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    let ensemble = ops::ensemble::scale(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn failover(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    AtRevision(only_at): AtRevision,
    OptionalBody(request): OptionalBody<FailoverEnsemble>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    let ensemble = ops::ensemble::failover::fail_over(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn replace(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    JsonBody(request): JsonBody<ReplaceMember>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at: None };
    let ensemble = ops::ensemble_requests::replace(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn restart(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    OptionalBody(request): OptionalBody<RollMembers>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at: None };
    let asked = (RollingAction::Restart, &request);
    let ensemble = ops::ensemble_requests::roll(&app.records.transactor, scope, asked).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn defragment(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    OptionalBody(request): OptionalBody<RollMembers>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at: None };
    let asked = (RollingAction::Defragment, &request);
    let ensemble = ops::ensemble_requests::roll(&app.records.transactor, scope, asked).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn resume(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    OptionalBody(request): OptionalBody<ResumeEnsemble>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at: None };
    let ensemble = ops::ensemble_requests::resume(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn remove_osd(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    JsonBody(request): JsonBody<RemoveOsd>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at: None };
    let ensemble = ops::ensemble_osds::remove(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn replace_osd(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    JsonBody(request): JsonBody<ReplaceOsd>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at: None };
    let ensemble = ops::ensemble_osds::replace(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn remove_foreign_member(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    JsonBody(request): JsonBody<RemoveForeignMember>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at: None };
    let ensemble = ops::ensemble_adoption::remove(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn snapshot(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    OptionalBody(request): OptionalBody<TakeSnapshot>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at: None };
    let ensemble = ops::ensemble_requests::snapshot(&app.records.transactor, scope, &request).await?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &ensemble)))
}

pub(crate) async fn plan(
    State(app): State<AppState>,
    (caller, readable): (Authenticated, Readable),
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    OptionalBody(request): OptionalBody<PlanEnsemble>,
) -> Result<JsonAnswer<Ensemble>, Failure> {
    // What another filter matches tells of nodes what a caller may have no right to read.
    if request.spec.is_some() {
        caller.require(Right::update(ObjectKind::Ensemble), Some(name.as_str()), Some(&namespace))?;
    }
    if request.delete {
        refuse_own_store(&app, &namespace, &name)?;
    }
    let (world, empty) = (app.world(), Fleet::default());
    let fleet = world.fleets.get(&namespace).unwrap_or(&empty);
    if let Some(number) = request.replace {
        if request.spec.is_some() || request.size.is_some() || request.delete {
            return Err(OpError::from(ShapeError::at("replace", "excludes spec, size and delete")).into());
        }
        let (of, now) = ((&name, &caller.actor()), app.clock.now());
        let (fleet, ensemble) = ops::ensemble_requests::with_replacement(fleet, of, number, now)?;
        return Ok(JsonAnswer(shown((&world, &fleet), &readable, &ensemble, app.why_time(&world))));
    }
    let asked = ops::ensemble::asked(fleet, (&name, &caller.actor()), &request, app.clock.now())?;
    Ok(JsonAnswer(changed(&app, &namespace, &readable, &asked)))
}

pub(crate) async fn certify(
    State(app): State<AppState>,
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    JsonBody(request): JsonBody<ClientCertificateRequest>,
) -> Result<JsonAnswer<EnsembleCertificate>, Failure> {
    let (transactor, pki) = (&app.records.transactor, &app.identity.pki);
    let of = (&namespace, &name);
    Ok(JsonAnswer(ops::ensemble_certificates::certify_client(transactor, pki, of, &request)?))
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedEnsemble(name)): (NamespacePath, NamedEnsemble),
    AtRevision(only_at): AtRevision,
) -> Result<JsonAnswer<Empty>, Failure> {
    refuse_own_store(&app, &namespace, &name)?;
    let scope = EnsembleScope { namespace: &namespace, name: &name, actor: &caller.actor(), only_at };
    ops::ensemble::delete(&app.records.transactor, scope).await?;
    Ok(JsonAnswer(Empty {}))
}

/// Refuses to delete the etcd in which the control plane has its own records.
fn refuse_own_store(app: &AppState, namespace: &Namespace, name: &EnsembleName) -> Result<(), Failure> {
    let world = app.world();
    let members = world.fleets.get(namespace).and_then(|fleet| fleet.ensemble_members.get(name));
    let members = members.map(|kept| &kept.value);
    let Some(port) = members.and_then(|members| members.service.client_port()) else { return Ok(()) };
    let store = app.records.store.health().borrow().endpoints.clone();
    let is_used = |member: &Member| {
        let host = member.peer_url.rsplit_once("//").and_then(|(_, rest)| rest.rsplit_once(':'));
        let end = host.map(|(host, _)| format!("//{host}:{port}"));
        end.is_some_and(|end| store.iter().any(|url| url.trim_end_matches('/').ends_with(&end)))
    };
    match members.is_some_and(|members| members.members.values().any(is_used)) {
        false => Ok(()),
        true => Err(Failure::new(
            Code::Refused,
            format!("cannot delete ensemble {name}: the control plane has its own records in it"),
        )
        .hint("move them to another store first: bellwether server migrate")),
    }
}
