//! The summary of a namespace over HTTP.

use axum::extract::State;
use bellwether_api::v1::overview::{
    ConditionOverview, EntityOverview, ImpairedEnsemble, Overview, StuckSink,
};
use bellwether_api::v1::server::Leader;
use bellwether_core::access::ObjectKind;
use bellwether_core::decide::ensembles::failing::{counts, is_staying};
use bellwether_core::decide::reactions::is_limited;
use bellwether_core::decide::sinks::{stuck_since, waits_for};
use bellwether_core::records::reaction::ConditionSubject;
use bellwether_core::rollout::board::Board;
use bellwether_core::words::name::{EnsembleName, EntityName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::words::version::Version;
use bellwether_core::world::conditions::TrueCondition;
use bellwether_core::world::fleet::Fleet;

use super::freezes;
use super::input::{JsonAnswer, NamespacePath};
use super::readable::Readable;
use super::servers::store;
use super::state::AppState;
use crate::impaired_ensembles::{is_impaired, wanted};
use crate::secrets::stored;

/// Most conditions that are named.
const CONDITIONS_SHOWN: usize = 10;

/// For how long a late failure is counted.
const LATE_FAILURES_SHOWN: Span = Span::from_secs(600);

pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    readable: Readable,
) -> JsonAnswer<Overview> {
    let world = app.world();
    let empty = Fleet::default();
    let fleet = world.fleets.get(&namespace).unwrap_or(&empty);
    let tally = &fleet.tally;
    let leader = app.leader(&world);
    let health = app.records.store.health().borrow().clone();
    let since = app.clock.now().minus(LATE_FAILURES_SHOWN);
    JsonAnswer(Overview {
        namespace: namespace.to_string(),
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        has_leader: leader.is_some(),
        leader: leader.map(|kept| Leader::from(&*kept.value)),
        term: leader.map(|kept| app.identity.installation.term(kept.revision).get()),
        servers: world.servers.size() as u64,
        nodes: tally.contacts().map(|(contact, count)| (contact.into(), count)).collect(),
        paused: tally.paused,
        waiting_drains: fleet.drains.size() as u64,
        first_waiting_drain: fleet.drains.first().map(|name| match fleet.why_drain_waits(name) {
            Some(reason) => format!("{name}: {reason}"),
            None => name.to_string(),
        }),
        failing: tally.failing,
        refusing: tally.refusing,
        first_refusing: first_refusing(fleet, &readable),
        failing_instances: tally.failing_instances,
        impaired_ensembles: impaired(fleet, &readable, app.clock.now()),
        not_runnable: fleet.not_runnable.size() as u64,
        first_not_runnable: first_not_runnable(fleet, &readable),
        conditions: conditions(fleet, &readable).count() as u64,
        first_conditions: conditions(fleet, &readable).take(CONDITIONS_SHOWN).map(shown).collect(),
        limited_reactions: limited(fleet, &readable, app.clock.now()),
        stuck_sinks: stuck(fleet, &readable, app.clock.now()),
        freezes: freezes::of_namespace(&world, &namespace, app.clock.now())
            .into_iter()
            .filter(|view| !view.expired)
            .collect(),
        entities: fleet
            .boards
            .iter()
            .filter(|(name, board)| {
                readable.has_object(ObjectKind::Entity, name.as_str()) && !is_past_run(board)
            })
            .map(|(name, board)| line(fleet, name, board, since))
            .collect(),
        last_event: fleet.last_event().get(),
        warnings: [
            stored::warnings(&world, app.records.transactor.keyring()),
            app.cluster.failures.of(&namespace),
            app.cluster.clocks.borrow().warnings(),
            health.cut_warning().into_iter().chain(health.defects()).collect(),
            app.audit.trouble().into_iter().collect(),
        ]
        .concat(),
        store: Some(store(&health)),
    })
}

/// The first node that does not accept its orders, and why.
fn first_refusing(fleet: &Fleet, readable: &Readable) -> Option<String> {
    if fleet.tally.refusing == 0 {
        return None;
    }
    let refusing = fleet.nodes.keys().filter_map(|name| Some((name, fleet.order_refusal(name)?)));
    let mut seen = refusing.filter(|(name, _)| readable.has_object(ObjectKind::Node, name.as_str()));
    seen.next().map(|(name, reason)| format!("{name}: {reason}"))
}

/// The first node that begins no run, and why.
fn first_not_runnable(fleet: &Fleet, readable: &Readable) -> Option<String> {
    let mut marks = fleet.not_runnable.values().map(|kept| &*kept.value);
    let first = marks.find(|mark| readable.has_object(ObjectKind::Node, mark.node.as_str()))?;
    Some(format!("{} is {}", first.node, first.line()))
}

/// The ensembles of which not all works, and those that were deleted and of which something is still there.
fn impaired(fleet: &Fleet, readable: &Readable, now: Timestamp) -> Vec<ImpairedEnsemble> {
    let is_seen = |name: &EnsembleName| readable.has_object(ObjectKind::Ensemble, name.as_str());
    let seen = fleet.ensembles.iter().filter(|(name, _)| is_seen(name));
    let impaired = seen.filter_map(|(name, kept)| {
        let members = fleet.ensemble_members.get(name);
        let counts = members.map(|members| counts(fleet, &members.value)).unwrap_or_default();
        let wanted = wanted(kept.value.size, &counts);
        let held = members.is_some_and(|members| members.value.is_held(fleet.epoch));
        let unrecorded = fleet.unrecorded_of(name).count();
        let is_to_be_seen = held || unrecorded > 0 || counts.warning > 0;
        (is_to_be_seen || is_impaired(wanted, &counts)).then(|| ImpairedEnsemble {
            ensemble: name.to_string(),
            members: counts.members as u64,
            working: counts.working as u64,
            wanted: wanted as u64,
            osds: counts.osds as u64,
            working_osds: counts.working_osds as u64,
            staying: 0,
            unrecorded: unrecorded as u64,
            warning: counts.warning as u64,
            held,
        })
    });
    let former = fleet.ensemble_members.iter().filter(|(name, _)| !fleet.ensembles.contains_key(*name));
    let left = former.filter(|(name, _)| is_seen(name)).filter_map(|(name, kept)| {
        let staying = kept.value.members.values().filter(|member| is_staying(member, now)).count();
        (staying > 0).then(|| ImpairedEnsemble {
            ensemble: name.to_string(),
            staying: staying as u64,
            ..ImpairedEnsemble::default()
        })
    });
    let unknown =
        fleet.unrecorded.keys().filter(|name| !fleet.ensembles.contains_key(*name) && is_seen(name));
    let unknown = unknown.filter_map(|name| {
        let unrecorded = fleet.unrecorded_of(name).count();
        (unrecorded > 0).then(|| ImpairedEnsemble {
            ensemble: name.to_string(),
            unrecorded: unrecorded as u64,
            ..ImpairedEnsemble::default()
        })
    });
    impaired.chain(left).chain(unknown).collect()
}

/// The conditions of data stores and clusters that are true. Nodes that nobody reaches are counted by their presence.
fn conditions<'a>(fleet: &'a Fleet, readable: &'a Readable) -> impl Iterator<Item = TrueCondition<'a>> {
    let is_seen = |condition: &TrueCondition<'_>| match condition.subject {
        ConditionSubject::Node(_) => false,
        ConditionSubject::Store(node, _) => readable.has_object(ObjectKind::Node, node.as_str()),
        ConditionSubject::Cluster(cluster, _) => readable.has_object(ObjectKind::Cluster, cluster.as_str()),
    };
    fleet.true_conditions().filter(is_seen)
}

fn shown(condition: TrueCondition<'_>) -> ConditionOverview {
    ConditionOverview {
        condition: condition.name.to_owned(),
        subject: condition.subject.to_string(),
        since_ms: condition.since.as_millis(),
    }
}

/// The reactions that fired as often as they may within an hour.
fn limited(fleet: &Fleet, readable: &Readable, now: Timestamp) -> Vec<String> {
    let all = fleet.reactions.values().map(|kept| &*kept.value);
    let seen = all.filter(|reaction| readable.has_object(ObjectKind::Reaction, reaction.name.as_str()));
    let limited = seen.filter(|reaction| is_limited(reaction, now));
    limited.map(|reaction| reaction.name.to_string()).collect()
}

/// The sinks that stopped, or that have failed with the same event for some time.
fn stuck(fleet: &Fleet, readable: &Readable, now: Timestamp) -> Vec<StuckSink> {
    let all = fleet.sinks.values().map(|kept| &*kept.value);
    let seen = all.filter(|sink| readable.has_object(ObjectKind::Sink, sink.name.as_str()));
    let stuck = seen.filter_map(|sink| {
        let state = &*fleet.sink_states.get(&sink.name)?.value;
        let since_ms = stuck_since(sink, state, now)?.as_millis();
        let reason = waits_for(sink, state, now).unwrap_or_default();
        Some(StuckSink { sink: sink.name.to_string(), since_ms, reason })
    });
    stuck.collect()
}

/// Whether it is a run of a workflow that has ended: `run list` has those.
fn is_past_run(board: &Board) -> bool {
    let (entity, progress) = (board.entity(), board.progress());
    let is_run = entity.kind.is_run();
    is_run && progress.active().is_none() && entity.last_request() <= progress.handled
}

fn line(fleet: &Fleet, name: &EntityName, board: &Board, since: Timestamp) -> EntityOverview {
    EntityOverview {
        name: name.to_string(),
        targets: board.counts().targets,
        desired: board.desired().map(Version::to_string),
        requested: board.progress().target.as_ref().map(Version::to_string),
        last_known_good: board.progress().last_known_good.as_ref().map(Version::to_string),
        last_known_bad: board.progress().last_known_bad().map(|bad| bad.version.to_string()),
        known_bad: board.progress().bad.len() as u64,
        // What happened to the version before is over.
        late_failures: fleet
            .late_failures(name, fleet.last_rollout(name).map_or(since, |last| last.started.max(since))),
        reason: fleet.why_rollout(board),
    }
}
