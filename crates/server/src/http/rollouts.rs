//! Rollouts and targets over HTTP.

use axum::extract::State;
use bellwether_api::list::JsonRow;
use bellwether_api::list::tables::{ROLLOUTS, TARGETS};
use bellwether_api::problem::Code;
use bellwether_api::shape::{ShapeError, read_some};
use bellwether_api::v1;
use bellwether_api::v1::node::PresenceState;
use bellwether_api::v1::rollout::{NewRollout, Rollout, RolloutOperation, RolloutView, StartedRollout};
use bellwether_api::v1::target::{TargetPhase, TargetView};
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::records::rollout::Rollout as KeptRollout;
use bellwether_core::records::target::AssignmentOutcome;
use bellwether_core::rollout::board::{Board, BoardTarget};
use bellwether_core::rollout::external::group as group_of;
use bellwether_core::rollout::observation::{TargetStage, phase};
use bellwether_core::words::counter::RolloutNumber;
use bellwether_core::words::name::{EntityName, Namespace, TargetName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::entities::missing;
use super::input::{Entity, JsonAnswer, JsonBody, NamespacePath, Number, OptionalBody, QueryParams, Word};
use super::list::{ListAnswer, ListQuery};
use super::problem::Failure;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::rollout::RolloutVerb;
use crate::ops::scope::EntityScope;

pub(crate) async fn start(
    State(app): State<AppState>,
    caller: Authenticated,
    NamespacePath(namespace): NamespacePath,
    Entity(name): Entity,
    JsonBody(request): JsonBody<NewRollout>,
) -> Result<JsonAnswer<StartedRollout>, Failure> {
    known(&app, &namespace, &name)?;
    app.hooks.permit(&request.policy)?;
    let scope = EntityScope { namespace: &namespace, entity: &name, actor: &caller.actor() };
    let of_entity = caller.require(Right::update(ObjectKind::Entity), Some(name.as_str()), Some(&namespace));
    let started = ops::rollout::start(&app.records.transactor, scope, of_entity.is_ok(), request).await?;
    Ok(JsonAnswer(started))
}

/// Refuses an entity that does not exist, with a hint.
fn known(app: &AppState, namespace: &Namespace, name: &EntityName) -> Result<(), Failure> {
    let world = app.world();
    let found = world.fleets.get(namespace).is_some_and(|fleet| fleet.entities.contains_key(name));
    if found { Ok(()) } else { Err(missing(name)) }
}

pub(crate) async fn act(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), Entity(name), Word(asked)): (NamespacePath, Entity, Word),
    OptionalBody(RolloutOperation { version, stage, reason }): OptionalBody<RolloutOperation>,
) -> Result<JsonAnswer<Empty>, Failure> {
    let verb = match asked.as_str() {
        "pause" => RolloutVerb::Pause,
        "resume" => RolloutVerb::Resume,
        "approve" => RolloutVerb::Approve(stage),
        "abort" => RolloutVerb::Abort,
        "undo" => RolloutVerb::Undo,
        "retry" => RolloutVerb::Retry(read_some("version", version.as_deref())?),
        other => {
            let detail = format!("cannot find the rollout operation {other:?}");
            return Err(
                Failure::new(Code::NotFound, detail).hint("pause, resume, approve, abort, undo, retry")
            );
        }
    };
    let field = format!("/{asked}");
    caller.require_field(
        Right::update(ObjectKind::Rollout),
        &field,
        (Some(name.as_str()), Some(&namespace)),
    )?;
    if version.is_some() && !matches!(verb, RolloutVerb::Retry(_)) {
        return Err(ShapeError::at("version", "only retry takes a version").into());
    }
    if stage.is_some() && !matches!(verb, RolloutVerb::Approve(_)) {
        return Err(ShapeError::at("stage", "only approve takes a stage").into());
    }
    known(&app, &namespace, &name)?;
    let scope = EntityScope { namespace: &namespace, entity: &name, actor: &caller.actor() };
    ops::rollout::act(&app.records.transactor, scope, verb, &reason).await?;
    Ok(JsonAnswer(Empty {}))
}

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Entity(name): Entity,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &ROLLOUTS, &[])?;
    let start: Option<u64> = read_some("after", list.start())?;
    let below = RolloutNumber::new(start.unwrap_or(u64::MAX));
    let now = app.clock.now();
    let world = app.world();
    let fleet = world.fleets.get(&namespace).filter(|fleet| fleet.entities.contains_key(&name));
    let fleet = fleet.ok_or_else(|| missing(&name))?;
    let (of, first) = (name.clone(), (name.clone(), RolloutNumber::ZERO));
    let all = fleet.rollouts.range(first..(name, below)).map(|(_, kept)| &kept.value);
    let mut newest: Vec<_> = all.collect();
    newest.reverse();
    let rows =
        newest.into_iter().map(|rollout| JsonRow::new(&as_of_now(fleet, &of, rollout), &ROLLOUTS, now));
    let is_after = |row: &JsonRow<Rollout>, after: &str| row.id().parse::<u64>().ok() < after.parse().ok();
    list.answer_rows(rows, is_after, world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), Entity(name), Number(number)): (NamespacePath, Entity, Number),
) -> Result<JsonAnswer<Rollout>, Failure> {
    let world = app.world();
    let kept = world.fleets.get(&namespace).and_then(|fleet| {
        let kept = fleet.rollouts.get(&(name.clone(), RolloutNumber::new(number)))?;
        Some(as_of_now(fleet, &name, &kept.value))
    });
    let missing = || {
        Failure::new(Code::NotFound, format!("cannot find rollout {number} of entity {name}"))
            .hint(format!("list them: bellwether rollout history {name}"))
    };
    kept.map(JsonAnswer).ok_or_else(missing)
}

/// A rollout with its present counts: while it is in progress, its record has those of the time at which its last batch was opened.
fn as_of_now(fleet: &Fleet, name: &EntityName, kept: &KeptRollout) -> Rollout {
    let board = fleet.boards.get(name).filter(|board| {
        let progress = board.progress();
        progress.last == kept.number && progress.active().is_some()
    });
    let counts = board.map_or(kept.counts, Board::counts);
    Rollout { counts: counts.into(), ..kept.into() }
}

/// The active rollout, or the last one; with `wait`, once something of the entity changed after `index`.
pub(crate) async fn current(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Entity(name): Entity,
    query: QueryParams,
) -> Result<JsonAnswer<RolloutView>, Failure> {
    query.only(&["index", "wait"])?;
    let (index, wait) = (query.index()?, query.wait()?);
    if !wait.is_zero() {
        let mut worlds = app.records.transactor.follow();
        let news = worlds.wait_for(|world| {
            let touched = world.fleets.get(&namespace).and_then(|fleet| fleet.touched.get(&name));
            touched.is_none_or(|touched| touched > index)
        });
        // All arms only wait; the world is read below.
        tokio::select! {
            _ = news => {}
            () = tokio::time::sleep(wait) => {}
            () = app.stop.cancelled() => {}
        }
    }
    let world = app.world();
    let now = app.clock.now();
    view(&world, &namespace, &name, now).map(JsonAnswer).ok_or_else(|| missing(&name))
}

/// An entity's rollout with its counts and thresholds.
pub(crate) fn view(
    world: &World,
    namespace: &Namespace,
    name: &EntityName,
    now: Timestamp,
) -> Option<RolloutView> {
    let fleet = world.fleets.get(namespace)?;
    let board = fleet.boards.get(name)?;
    let progress = board.progress();
    let rollout = fleet.rollouts.get(&(name.clone(), progress.last));
    let counts = match (rollout, progress.active()) {
        (Some(kept), None) => kept.value.counts,
        (Some(_) | None, _) => board.counts(),
    };
    let thresholds = board.thresholds();
    Some(RolloutView {
        // A run has a list of its nodes, which nobody needs each time that one of them changes.
        entity: bellwether_api::v1::entity::Entity { nodes: Vec::new(), ..board.entity().into() },
        progress: progress.into(),
        desired: board.desired().map(ToString::to_string),
        rollout: rollout.map(|kept| as_of_now(fleet, name, &kept.value)),
        counts: counts.into(),
        needed: thresholds.needed,
        tolerated: thresholds.tolerated,
        batch: thresholds.batch,
        reason: fleet.why_rollout(board),
        now_ms: now.as_millis(),
        revision: fleet.touched.get(name).map_or(0, |revision| revision.get()),
    })
}

pub(crate) async fn targets(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Entity(name): Entity,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &TARGETS, &["group"])?;
    let after: Option<TargetName> = read_some("after", list.start())?;
    let group: Option<String> = query.get("group")?;
    let world = app.world();
    let time = app.why_time(&world);
    let fleet = world.fleets.get(&namespace).ok_or_else(|| missing(&name))?;
    let board = fleet.boards.get(&name).ok_or_else(|| missing(&name))?;
    let wanted = board.targets().filter(|target| target.observation.is_some());
    let wanted = wanted.filter(|target| group.as_ref().is_none_or(|wanted| *wanted == group_of(target.name)));
    let wanted = wanted.filter(|target| after.as_ref().is_none_or(|after| target.name > after));
    let source = &board.entity().source;
    let wanted = wanted.filter(|target| query.readable.has_target(source, target.name.as_str()));
    let view = |target: BoardTarget<'_>| {
        let reason = world.why_target(fleet, board, target.name, time);
        target_view(target, reason)
    };
    list.answer_json((&TARGETS, time.now), wanted.map(view), world.revision)
}

fn target_view(target: BoardTarget<'_>, reason: String) -> TargetView {
    let phase = phase(target.observation, target.state);
    let (word, mut since) = word(&phase);
    let mut evidence = None;
    match target.state.map(|state| &state.outcome) {
        Some(AssignmentOutcome::Succeeded { at, .. } | AssignmentOutcome::Unreachable { at, .. }) => {
            since = Some(*at)
        }
        Some(AssignmentOutcome::Failed { at, evidence: seen }) => {
            since = Some(*at);
            evidence = Some(v1::evidence::Evidence::from(&**seen));
        }
        Some(AssignmentOutcome::InFlight) => since = since.or(target.state.map(|state| state.assigned_at)),
        None => {}
    }
    TargetView {
        name: target.name.to_string(),
        phase: word,
        since_ms: since.map(Timestamp::as_millis),
        assigned: target.state.map(|state| state.version.to_string()),
        assigned_at_ms: target.state.map(|state| state.assigned_at.as_millis()),
        assignment: target.state.map(|state| state.assignment.get()),
        running: target.observation.and_then(|observation| Some(observation.running.as_ref()?.to_string())),
        rollout: target.state.map(|state| state.rollout.get()),
        presence: target.observation.map_or(PresenceState::Never, |observation| observation.contact.into()),
        reason,
        evidence,
    }
}

const fn word(phase: &TargetStage) -> (TargetPhase, Option<Timestamp>) {
    match phase {
        TargetStage::Idle => (TargetPhase::Idle, None),
        TargetStage::Assigned => (TargetPhase::Assigned, None),
        TargetStage::Applying { .. } => (TargetPhase::Applying, None),
        TargetStage::Soaking { since } => (TargetPhase::Soaking, Some(*since)),
        TargetStage::Settling => (TargetPhase::Settling, None),
        TargetStage::Blocked { .. } => (TargetPhase::Blocked, None),
        TargetStage::Succeeded => (TargetPhase::Succeeded, None),
        TargetStage::RolledBack => (TargetPhase::RolledBack, None),
        TargetStage::Drifted { .. } => (TargetPhase::Drifted, None),
        TargetStage::Failed => (TargetPhase::Failed, None),
        TargetStage::Unreachable => (TargetPhase::Unreachable, None),
    }
}
