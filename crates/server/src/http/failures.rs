//! All failures in a namespace, over HTTP, in one bounded response.

use axum::extract::State;
use bellwether_api::v1::failure::{FailingInstance, FailingPart, Failure as Line, Failures, Unreachable};
use bellwether_core::decide::ensembles::failing::{self, EnsemblePart};
use bellwether_core::records::ensemble_members::EnsembleMembers;
use bellwether_core::records::node::PresenceState;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use super::input::{JsonAnswer, NamespacePath};
use super::problem::Failure;
use super::readable::Readable;
use super::state::AppState;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    readable: Readable,
) -> Result<JsonAnswer<Failures>, Failure> {
    let world = app.world();
    let now = app.clock.now();
    let mut failures =
        world.fleets.get(&namespace).map_or_else(Failures::default, |fleet| failures(fleet, &readable, now));
    failures.revision = world.revision.get();
    Ok(JsonAnswer(failures))
}

/// What does not work of an ensemble, without members whose service instances say so already.
fn parts(
    fleet: &Fleet,
    readable: &Readable,
    (members, now): (&EnsembleMembers, Timestamp),
) -> Vec<FailingPart> {
    let name = &members.ensemble;
    let is_told = |part: &failing::FailingPart| {
        let mut instances = fleet.failing_instances(&part.node);
        matches!(part.part, EnsemblePart::Member(_))
            && instances.any(|((service, _), _)| service.as_str() == name.as_str())
    };
    let failing = failing::failing(fleet, members, now).into_iter();
    let seen = failing.filter(|part| readable.has(part.node.as_str()) && !is_told(part));
    seen.map(|part| FailingPart::of(name, part)).collect()
}

/// The members that nodes have and that are not recorded.
fn unrecorded(fleet: &Fleet, readable: &Readable) -> impl Iterator<Item = FailingPart> {
    let all = fleet.unrecorded.keys();
    let all =
        all.flat_map(|ensemble| fleet.unrecorded_of(ensemble).map(move |(node, of)| (ensemble, node, of)));
    all.filter(|(_, node, _)| readable.has(node.as_str())).map(|(ensemble, node, of)| {
        let part = EnsemblePart::Member(of.number);
        let part = failing::FailingPart { part, node: node.clone(), since: of.since, reason: of.line() };
        FailingPart::of(ensemble, part)
    })
}

fn failures(fleet: &Fleet, readable: &Readable, now: Timestamp) -> Failures {
    let mut all = Failures::default();
    let active = fleet.nodes.iter().filter(|(_, kept)| kept.value.decommissioned.is_none());
    for (name, _) in active.filter(|(name, _)| readable.has(name.as_str())) {
        if let Some(kept) = fleet.presences.get(name)
            && kept.value.contact == PresenceState::Unreachable
        {
            let since_ms = kept.value.since.as_millis();
            all.unreachable.push(Unreachable { node: name.to_string(), since_ms });
        }
        for (category, status) in fleet.reports.get(name).into_iter().flat_map(|kept| &kept.value.statuses) {
            let line =
                || Line { node: name.to_string(), category: category.to_string(), status: status.into() };
            if status.silent {
                all.silent.push(line());
            } else if status.is_failed() {
                all.failed.push(line());
            }
        }
        let failing =
            fleet.failing_instances(name).map(|((service, instance), registration)| FailingInstance {
                service: service.to_string(),
                instance: instance.to_string(),
                node: name.to_string(),
                since_ms: registration.since.as_millis(),
                reason: registration.serving.reason().to_owned(),
            });
        all.services.extend(failing);
    }
    let ensembles = fleet.ensemble_members.values().map(|kept| &*kept.value);
    let failing = ensembles.flat_map(|members| parts(fleet, readable, (members, now)));
    all.ensembles = failing.chain(unrecorded(fleet, readable)).collect();
    all
}
