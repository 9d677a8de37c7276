//! Explanations of states over HTTP.

use std::collections::BTreeSet;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::shape::read;
use bellwether_api::v1::why::Why;
use bellwether_core::access::ObjectKind;
use bellwether_core::catalogue::need;
use bellwether_core::decide::ensembles::osds::explain;
use bellwether_core::records::ensemble_members::Member;
use bellwether_core::records::node::PresenceState;
use bellwether_core::records::probes::StoreState;
use bellwether_core::records::registrations::CheckStatus;
use bellwether_core::records::status;
use bellwether_core::records::wait_cycle::{CycleMember, Waiter};
use bellwether_core::rollout::why::WhyTime;
use bellwether_core::rollout::why::targets::why_targets;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::{
    ClusterName, EnsembleName, EntityName, Namespace, NodeName, ServiceName, SlotName, TargetName,
};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_core::world::waits::WaitEntry;
use bellwether_core::world::workflow_state::WorkflowState;

use super::clusters;
use super::currency;
use super::entities::missing;
use super::input::{JsonAnswer, NamespacePath, Subject};
use super::problem::{FORBIDDEN_HINT, Failure};
use super::readable::Readable;
use super::services::unknown_service;
use super::state::AppState;
use super::{why_ensemble, why_reaction, why_sink, why_store};

pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Subject(subject): Subject,
    readable: Readable,
) -> Result<JsonAnswer<Why>, Failure> {
    let world = app.world();
    let empty = Fleet::default();
    let fleet = world.fleets.get(&namespace).unwrap_or(&empty);
    let time = app.why_time(&world);
    let subject = whole(fleet, subject, &readable);
    if !readable.has_subject(&subject) {
        return Err(unreadable(&subject, &namespace));
    }
    let (waiting, lines) = match subject.split_once('/') {
        Some(("node", name)) => {
            let (waiting, lines) = node(&world, fleet, &read("node", name)?, time)?;
            (waiting, unrecorded(&app, fleet, name).into_iter().chain(lines).collect())
        }
        Some(("entity", name)) => entity(fleet, &read("entity", name)?, time)?,
        Some(("service", name)) => service(fleet, &read("service", name)?)?,
        Some(("cluster", name)) => cluster(fleet, &read("cluster", name)?, time.now)?,
        Some(("ensemble", name)) => {
            why_ensemble::ensemble((&world, fleet), &readable, &read("ensemble", name)?, time)?
        }
        Some(("reaction", name)) => {
            why_reaction::reaction(&app, (&world, fleet), &readable, &read("reaction", name)?)?
        }
        Some(("sink", name)) => why_sink::sink(&app, &world, (&namespace, &read("sink", name)?)).await?,
        Some(("store", rest)) if rest.contains('/') => {
            let (node, probe) = rest.split_once('/').unwrap_or((rest, ""));
            why_store::store(fleet, &readable, (&read("node", node)?, &read("probe", probe)?), time.now)?
        }
        Some(("slot", name)) => slot(fleet, &read("slot", name)?, time.now),
        Some(("target", rest)) if rest.contains('/') => {
            let (name, target) = rest.split_once('/').unwrap_or((rest, ""));
            let (name, target): (EntityName, TargetName) = (read("entity", name)?, read("target", target)?);
            let board = fleet.boards.get(&name).ok_or_else(|| missing(&name))?;
            if !readable.has_target(&board.entity().source, target.as_str()) {
                return Err(unreadable(&format!("node/{target}"), &namespace));
            }
            let known = board.target(&target).is_some();
            let none = || {
                Failure::new(Code::NotFound, format!("cannot find target {target} of {name}"))
                    .hint(format!("list its targets: bellwether rollout get {name}"))
            };
            let lines =
                known.then(|| vec![world.why_target(fleet, board, &target, time)]).ok_or_else(none)?;
            (true, lines.into_iter().chain(wait_cycles(fleet, &Waiter::Entity(name))).collect())
        }
        Some(_) | None => return Err(unknown(&subject)),
    };
    Ok(JsonAnswer(Why { subject, waiting, lines }))
}

/// The subject with its kind: a plain name is that of a node, entity, ensemble, cluster or service.
fn whole(fleet: &Fleet, subject: String, readable: &Readable) -> String {
    let is_node = |name: &str| NodeName::parse(name).is_ok_and(|name| fleet.nodes.contains_key(&name));
    let is_entity = |name: &str| EntityName::parse(name).is_ok_and(|name| fleet.entities.contains_key(&name));
    let is_service =
        |name: &str| ServiceName::parse(name).is_ok_and(|name| fleet.catalogue.service(&name).is_some());
    let is_ensemble = |name: &str| {
        let name = EnsembleName::parse(name);
        name.is_ok_and(|name| {
            fleet.ensembles.contains_key(&name) || fleet.ensemble_members.contains_key(&name)
        })
    };
    let is_cluster =
        |name: &str| ClusterName::parse(name).is_ok_and(|name| fleet.clusters.contains_key(&name));
    // What may not be read is not there.
    let is_node = |name: &str| readable.has_object(ObjectKind::Node, name) && is_node(name);
    let is_entity = |name: &str| readable.has_object(ObjectKind::Entity, name) && is_entity(name);
    let is_service = |name: &str| readable.has_object(ObjectKind::Service, name) && is_service(name);
    let is_ensemble = |name: &str| readable.has_object(ObjectKind::Ensemble, name) && is_ensemble(name);
    let is_cluster = |name: &str| readable.has_object(ObjectKind::Cluster, name) && is_cluster(name);
    match subject.as_str() {
        name if name.contains('/') => subject,
        name if is_node(name) => format!("node/{subject}"),
        name if is_entity(name) => format!("entity/{subject}"),
        name if is_ensemble(name) => format!("ensemble/{subject}"),
        name if is_cluster(name) => format!("cluster/{subject}"),
        name if is_service(name) => format!("service/{subject}"),
        _ => subject,
    }
}

fn unknown(subject: &str) -> Failure {
    let hint = "use node/NAME, entity/NAME, service/NAME, target/ENTITY/NAME, cluster/NAME, ensemble/NAME, store/NODE/PROBE, reaction/NAME, sink/NAME or slot/NAME; a run is an entity, and a job is of target/RUN/NODE";
    Failure::new(Code::NotFound, format!("cannot find {subject:?}")).hint(hint)
}

/// The error for a caller who may not read what a subject names.
fn unreadable(subject: &str, namespace: &Namespace) -> Failure {
    match ObjectKind::of_subject(subject) {
        Some(_) => {
            let detail = format!("this needs the right get {subject} in {namespace}");
            Failure::new(Code::Forbidden, detail).hint(FORBIDDEN_HINT)
        }
        None => unknown(subject),
    }
}

fn entity(fleet: &Fleet, name: &EntityName, time: WhyTime) -> Result<(bool, Vec<String>), Failure> {
    let board = fleet.boards.get(name).ok_or_else(|| missing(name))?;
    let lines = std::iter::once(fleet.why_rollout(board))
        .chain(why_targets(board, fleet.last_rollout(name), time))
        .chain(wait_cycles(fleet, &Waiter::Entity(name.clone())));
    Ok((board.progress().active().is_some(), lines.collect()))
}

/// How many instances are functional, why others are not, and the wait cycles that the service is part of.
fn service(fleet: &Fleet, name: &ServiceName) -> Result<(bool, Vec<String>), Failure> {
    let service = fleet.catalogue.service(name).ok_or_else(|| unknown_service(Some(fleet), name))?;
    let (functional, addressable) = (service.functional(), service.addressable());
    let first = if addressable == 0 {
        "no instance is registered".to_owned()
    } else {
        format!("{functional} of {addressable} registered instances are functional")
    };
    let down = service.instances().filter(|instance| !instance.level.serves());
    let down = down.map(need::why);
    let lines = std::iter::once(first).chain(down).chain(wait_cycles(fleet, &Waiter::Service(name.clone())));
    Ok((functional < addressable, lines.collect()))
}

/// Who leads, which slots are vacant and why, and which nodes it does not get.
fn cluster(fleet: &Fleet, name: &ClusterName, now: Timestamp) -> Result<(bool, Vec<String>), Failure> {
    let kept = fleet.clusters.get(name).ok_or_else(|| clusters::missing(name))?;
    let why = fleet.why_cluster(&kept.value, now);
    Ok((why.is_waiting, why.lines))
}

/// What a requested drain of the node waits for, and until when.
fn drain(fleet: &Fleet, name: &NodeName, now: Timestamp) -> Option<String> {
    let budget = fleet.drain_budget(name)?;
    let left = Timestamp::since(budget.deadline, now).brief();
    let reason = fleet
        .why_drain_waits(name)
        .unwrap_or_else(|| "the leader begins it once every node has had the time to report".to_owned());
    Some(format!("its drain waits: {reason}; given up in {left}"))
}

/// That a node which is recorded as up may be gone, while no presence can be recorded.
fn unrecorded(app: &AppState, fleet: &Fleet, name: &str) -> Option<String> {
    let name = NodeName::parse(name).ok()?;
    let is_up = fleet.presences.get(&name).is_some_and(|kept| kept.value.contact == PresenceState::Up);
    let since = currency::unrecorded(app).filter(|_| is_up)?;
    Some(format!(
        "it was up; since the store takes no changes, for {}, it could not be recorded whether it is",
        since.brief()
    ))
}

fn node(
    world: &World,
    fleet: &Fleet,
    name: &NodeName,
    time: WhyTime,
) -> Result<(bool, Vec<String>), Failure> {
    let now = time.now;
    let kept = fleet.nodes.get(name);
    let missing = || {
        Failure::new(Code::NotFound, format!("cannot find node {name}"))
            .hint("list them: bellwether node list")
    };
    let node = &kept.ok_or_else(missing)?.value;
    let mut lines = Vec::new();
    if let Some(mark) = &node.decommissioned {
        lines.push(format!("decommissioned by {}: {}", mark.by, or_none(&mark.reason)));
        // What was known of it is not true any more.
        lines.extend(members(fleet, name, now));
        return Ok((true, lines));
    }
    if let Some(mark) = &node.pause {
        lines.push(format!("paused by {}: {}", mark.by, or_none(&mark.reason)));
    }
    let pauses = fleet.pauses_of(node);
    lines.extend(pauses.map(|pause| format!("it is {}; bellwether pause off {}", pause.line(), pause.name)));
    lines.extend(node.cordon.iter().map(|cordon| format!("it is {}", cordon.line())));
    lines.extend(drain(fleet, name, now));
    lines.extend(fleet.not_runnable.get(name).map(|kept| format!("it is {}", kept.value.line())));
    let presence = fleet.presences.get(name).map(|kept| &*kept.value);
    match presence.map(|presence| (presence.contact, now.since(presence.since))) {
        Some((PresenceState::Up, _)) => {}
        Some((PresenceState::Never, _)) => lines.push("it has joined but not connected yet".to_owned()),
        Some((contact, since)) => lines.push(format!("{} for {}", contact.as_str(), since.brief())),
        None => lines.push("it has joined but not connected yet".to_owned()),
    }
    let failed = fleet.reports.get(name).into_iter().flat_map(|kept| &kept.value.statuses);
    for (category, status) in
        failed.filter(|(_, status)| status.shown() != status::StatusState::Success.as_str())
    {
        lines.push(format!("{category} is {}: {}", status.shown(), or_none(&status.reason)));
    }
    lines.extend(not_healthy(fleet, name, now));
    let services = fleet.waits.on(name).filter(|wait| matches!(wait.who, Waiter::Service(_)));
    lines.extend(services.flat_map(|wait| wait_cycles_of(fleet, wait)));
    let target = TargetName::from(name);
    let waiting = !lines.is_empty();
    lines.extend(members(fleet, name, now));
    let boards = fleet.boards.iter().filter(|(_, board)| board.target(&target).is_some());
    for (entity, board) in boards.filter(|(entity, _)| still_counts(fleet, entity, name)) {
        lines.push(format!("{entity}: {}", world.why_target(fleet, board, &target, time)));
        let own = fleet.waits.on(name).filter(|wait| matches!(&wait.who, Waiter::Entity(of) if of == entity));
        lines.extend(own.flat_map(|wait| wait_cycles_of(fleet, wait)));
    }
    if lines.is_empty() {
        lines.push("it is up and has no assigned version".to_owned());
    }
    // Several names may lead to the same reason.
    let mut told = BTreeSet::new();
    lines.retain(|line| told.insert(line.clone()));
    Ok((waiting, lines))
}

/// Whether an entity has something to say of a node: of the runs that have ended, only the newest one, if it failed there and nobody
/// aborted it.
fn still_counts(fleet: &Fleet, entity: &EntityName, node: &NodeName) -> bool {
    if !fleet.runs.contains_key(entity) || !fleet.has_ended(entity) {
        return true;
    }
    let was_aborted = fleet.entities.get(entity).is_some_and(|kept| kept.value.abort.is_some());
    !was_aborted && fleet.workflow_state(node) == WorkflowState::Failed(entity)
}

/// The members and the OSDs of ensembles that a node has.
fn members(fleet: &Fleet, name: &NodeName, now: Timestamp) -> Vec<String> {
    let all = fleet.ensemble_members.values().map(|kept| &*kept.value);
    let own = all.filter_map(|members| Some((&members.ensemble, members.of_node(name)?)));
    let contact = fleet.presences.get(name).map(|kept| kept.value.contact);
    let is_heard = !matches!(contact, Some(PresenceState::Unreachable | PresenceState::Suspect));
    let line = |(ensemble, (number, member)): (&EnsembleName, (MemberNumber, &Member))| {
        let was = if is_heard { "is" } else { "was when the node was heard of last" };
        format!("it has member {number} of ensemble {ensemble}, which {was} {}", member.phase.as_str())
    };
    let mut lines: Vec<String> = own.map(line).collect();
    for members in fleet.ensemble_members.values().map(|kept| &*kept.value) {
        let osds = explain::of_node(fleet, members, name, now);
        lines.extend(osds.iter().map(|osd| format!("ensemble {}: {osd}", members.ensemble)));
    }
    lines
}

/// The data stores of a node that are not up, and the service instances that are not healthy.
fn not_healthy(fleet: &Fleet, name: &NodeName, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    let stores = fleet.probes.get(name).into_iter().flat_map(|kept| &kept.value.stores);
    for (probe, store) in stores.filter(|(_, store)| store.state != StoreState::Up) {
        let since = now.since(store.since).brief();
        lines.push(format!(
            "data store {probe} has been {} for {since}: {}",
            store.state.as_str(),
            or_none(&store.reason)
        ));
    }
    let registrations = fleet.registrations.get(name).into_iter().flat_map(|kept| &kept.value.instances);
    for ((service, instance), registration) in
        registrations.filter(|(_, registration)| !serves(&registration.serving))
    {
        lines.push(format!(
            "{instance} of service {service} is not healthy: {}",
            registration.serving.reason()
        ));
    }
    lines
}

const fn serves(serving: &CheckStatus) -> bool {
    match serving {
        CheckStatus::Passing | CheckStatus::Warning { .. } => true,
        CheckStatus::Failing { .. } => false,
    }
}

/// Who holds a slot, and whether it can be acquired now.
fn slot(fleet: &Fleet, name: &SlotName, now: Timestamp) -> (bool, Vec<String>) {
    let Some(slot) = fleet.slots.get(name).map(|kept| &kept.value) else {
        return (false, vec!["it was never held".to_owned()]);
    };
    let (held, may) = (slot.holders.len() as u64, u64::from(slot.capacity));
    let first = match (held, may) {
        (_, 0) => "it cannot be acquired: capacity is 0".to_owned(),
        (0, _) => format!("it is not held; its capacity is {may}"),
        (_, _) if held < may => format!("{held} of {may} held; it can be acquired"),
        (_, _) => format!("{held} of {may} held; others must wait"),
    };
    let holders = slot.holders.iter().map(|(holder, held)| {
        let (for_long, left) = (now.since(held.since).brief(), held.ends.since(now).brief());
        let (by, reason) = (&held.by, or_none(&held.reason));
        format!("{holder} holds it with fencing number {} for {for_long}, and for another {left} unless renewed (by {by}): {reason}", held.fence)
    });
    (held >= may, std::iter::once(first).chain(holders).collect())
}

/// The wait cycles that an entity or a service is part of.
fn wait_cycles(fleet: &Fleet, who: &Waiter) -> Vec<String> {
    named(fleet, |member| member.who == *who)
}

/// The wait cycles that waits of one node are part of.
fn wait_cycles_of(fleet: &Fleet, wait: &WaitEntry) -> Vec<String> {
    named(fleet, |member| member.who == wait.who && wait.waits_for.contains(&member.waits_for))
}

fn named(fleet: &Fleet, is_in: impl Fn(&CycleMember) -> bool) -> Vec<String> {
    let all = fleet.wait_cycles.iter().flat_map(|kept| &kept.value.0);
    let found = all.filter(|wait_cycle| wait_cycle.members.iter().any(&is_in));
    found.map(|wait_cycle| format!("a circle: {wait_cycle}; {}", wait_cycle.hint())).collect()
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "no reason given" } else { text }
}
