//! Operations on external targets: controllers report them, and get the version that each is expected to run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_api::shape::{ShapeError, read_some};
use bellwether_api::v1::external::{ExpectedVersion, ExpectedVersions, TargetReports};
use bellwether_core::decide::rollout::decide;
use bellwether_core::records::external::{ExternalTarget, MAX_REPORTED, StalenessLimits};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::rollout::external::{self, GroupClaim, GroupConflict, TargetReport};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::name::{Actor, EntityName, TargetName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

mod complete;

use self::complete::{CompletePage, whole};
use super::scope::EntityScope;
use super::{OpError, event};
use crate::transactor::Transactor;

/// Targets per commit: below the store's limit of 128 operations, with room for events and the record of controllers.
const PER_COMMIT: usize = 50;

/// Longest wait of a response for the decisions that follow from the reports.
const DECIDED_WITHIN: Duration = Duration::from_secs(5);

/// Most targets about which decisions may be due, of a response that waits for them: their records are written within some
/// hundred milliseconds. With more of them, it contains what is decided already.
const AWAITED: usize = 1_000;

/// One line of a controller's reports.
#[derive(Debug, Clone)]
enum ReportLine {
    Seen(TargetReport),
    Gone(TargetName),
}

/// A controller's reports, parsed.
#[derive(Debug)]
struct ParsedReports {
    controller: Actor,
    take_over: bool,
    groups: BTreeSet<String>,
    lines: Vec<ReportLine>,
    /// Which names the report is complete for; `None` if it is not.
    complete: Option<CompletePage>,
}

/// Absorbs a controller's reports; returns the names of the reported targets, in order.
///
/// Reports are committed in several transactions: after an error some may be committed, and sending all again is safe.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::NotFound`]; [`OpError::Refused`] when the entity's targets are nodes,
/// or another controller reports these targets.
pub async fn absorb(
    transactor: &Transactor,
    scope: EntityScope<'_>,
    reports: &TargetReports,
) -> Result<Vec<TargetName>, OpError> {
    let mut parsed = ParsedReports::read(scope.actor, reports)?;
    let names: Vec<TargetName> = parsed.seen().cloned().collect();
    if let Some(page) = &parsed.complete {
        let gone = complete::gone(transactor, scope, page, &names)?;
        parsed.lines.extend(gone.into_iter().map(ReportLine::Gone));
    }
    // Empty reports also record who reports.
    let slices = parsed.lines.chunks(PER_COMMIT).map(Some);
    for slice in if parsed.lines.is_empty() { vec![None] } else { slices.collect() } {
        transactor
            .change(scope.namespace, scope.actor, |_, fleet, now| {
                Ok::<_, OpError>((take(fleet, scope, &parsed, slice.unwrap_or_default(), now)?, ()))
            })
            .await?;
    }
    Ok(names)
}

impl ParsedReports {
    fn read(actor: &Actor, reports: &TargetReports) -> Result<Self, ShapeError> {
        let said = reports.targets.len().saturating_add(reports.removed.len());
        if said > MAX_REPORTED {
            let reason = format!("{said} given, at most {MAX_REPORTED} allowed; send several reports");
            return Err(ShapeError::at("targets", reason));
        }
        let group = reports.group.as_deref();
        if group.is_some_and(|group| group.is_empty() || group.contains('/')) {
            return Err(ShapeError::at("group", "must not be empty or contain '/'"));
        }
        let mut lines = Vec::with_capacity(said);
        for (at, report) in reports.targets.iter().enumerate() {
            let place = |field: &str| format!("targets[{at}].{field}");
            let target = whole(&place("name"), group, &report.name)?;
            let running = read_some(&place("running"), report.running.as_deref())?;
            if report.error.as_ref().is_some_and(|error| error.trim().is_empty()) {
                return Err(ShapeError::at(
                    &place("error"),
                    "must not be empty; leave it out for a healthy target",
                ));
            }
            let (error, assignment) = (report.error.clone(), report.assignment.map(AssignmentNumber::new));
            lines.push(ReportLine::Seen(TargetReport { target, running, error, assignment }));
        }
        for (at, name) in reports.removed.iter().enumerate() {
            lines.push(ReportLine::Gone(whole(&format!("removed[{at}]"), group, name)?));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = lines.iter().map(ReportLine::target).find(|name| !names.insert((*name).clone()))
        {
            return Err(ShapeError::at("targets", format!("{twice} is listed twice")));
        }
        let mut groups: BTreeSet<String> =
            lines.iter().map(|line| external::group(line.target()).to_owned()).collect();
        match group {
            Some(group) => drop(groups.insert(group.to_owned())),
            None if reports.complete || groups.is_empty() => drop(groups.insert(String::new())),
            None => {}
        }
        let complete = {
            let seen: Vec<&TargetName> = lines.iter().filter_map(ReportLine::seen).collect();
            complete::page(reports, &groups, &seen)?
        };
        let controller = read_some("controller", reports.controller.as_deref())?;
        Ok(Self {
            controller: controller.unwrap_or_else(|| actor.clone()),
            take_over: reports.take_over,
            groups,
            lines,
            complete,
        })
    }

    fn seen(&self) -> impl Iterator<Item = &TargetName> {
        self.lines.iter().filter_map(ReportLine::seen)
    }
}

impl ReportLine {
    const fn seen(&self) -> Option<&TargetName> {
        match self {
            Self::Seen(report) => Some(&report.target),
            Self::Gone(_) => None,
        }
    }

    const fn target(&self) -> &TargetName {
        match self {
            Self::Seen(report) => &report.target,
            Self::Gone(target) => target,
        }
    }
}

/// The changes of one slice of reports, if there are any.
fn take(
    fleet: &Fleet,
    scope: EntityScope<'_>,
    parsed: &ParsedReports,
    lines: &[ReportLine],
    now: Timestamp,
) -> Result<Option<Changeset>, OpError> {
    let limits = limits(fleet, scope.entity)?;
    let mut changeset = claim(fleet, scope.entity, parsed, limits, now)?;
    for line in lines {
        let key = (scope.entity.clone(), line.target().clone());
        let known = fleet.externals.get(&key).map(|kept| &*kept.value);
        match line {
            ReportLine::Seen(report) => {
                let board = fleet.boards.get(scope.entity);
                let expected = board.and_then(|board| board.expected(line.target()));
                let new = external::absorb(known, report, expected, limits, now);
                let soak_ends = board.and_then(|board| board.soak_ends(line.target(), new.healthy_since));
                if external::is_news(known, &new, limits.grain(), soak_ends) {
                    changeset.writes.push(Write::put(Record::ExternalTarget(key.0, key.1, new)));
                }
            }
            ReportLine::Gone(target) if known.is_some() => {
                let subject = format!("target/{}/{target}", scope.entity);
                changeset.events.push(event(
                    "target.gone",
                    subject,
                    "its controller reported that it is gone",
                ));
                changeset.writes.push(Write::delete(Key::ExternalTarget(key.0, key.1)));
            }
            ReportLine::Gone(_) => {}
        }
    }
    Ok((!changeset.writes.is_empty()).then_some(changeset))
}

/// How long the entity's targets may be silent. Refuses an entity whose targets are nodes.
fn limits(fleet: &Fleet, entity: &EntityName) -> Result<StalenessLimits, OpError> {
    if !fleet.entities.contains_key(entity) {
        return Err(OpError::NotFound(format!("entity {entity}")));
    }
    fleet.staleness(entity).ok_or_else(|| OpError::Refused {
        reason: format!(
            "accept reports about targets of entity {entity}: its targets are nodes, which report themselves"
        ),
        hint: Some("create another entity for them: bellwether entity set NAME --external".to_owned()),
    })
}

/// The change of the entity's controllers; empty if none is due.
fn claim(
    fleet: &Fleet,
    entity: &EntityName,
    parsed: &ParsedReports,
    limits: StalenessLimits,
    now: Timestamp,
) -> Result<Changeset, OpError> {
    let mut changeset = Changeset::default();
    let known = fleet.controllers.get(entity).map(|kept| (*kept.value).clone()).unwrap_or_default();
    let mut controllers = known.clone();
    for group in &parsed.groups {
        let claim = GroupClaim { group, controller: &parsed.controller, take_over: parsed.take_over };
        let claimed = external::claim(&controllers, claim, limits, now);
        if let Some(claimed) = claimed.map_err(conflict)? {
            controllers = claimed;
        }
        let before = known.0.get(group).map(|controller| controller.name.to_string());
        if before.as_deref() != Some(parsed.controller.as_str()) {
            let what = if group.is_empty() { "its targets".to_owned() } else { format!("group {group}") };
            let assigned =
                event("entity.controller", format!("entity/{entity}"), format!("it reports {what}"));
            let after = Some(parsed.controller.to_string());
            changeset.events.push(bellwether_core::records::event::EventDraft { before, after, ..assigned });
        }
    }
    if controllers != known {
        changeset.writes.push(Write::put(Record::Controllers(entity.clone(), controllers)));
    }
    Ok(changeset)
}

fn conflict(conflict: GroupConflict) -> OpError {
    let hint = match &conflict {
        GroupConflict::Other { .. } => {
            "stop the other controller, or send \"take_over\": true once; each group has one controller"
        }
        GroupConflict::TooMany => "put more targets into each group",
    };
    OpError::Refused { reason: conflict.to_string(), hint: Some(hint.to_owned()) }
}

/// The expected versions of targets, once the deciders have processed their reports; records that the controller has them.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] as for [`absorb`].
pub async fn expected(
    transactor: &Transactor,
    scope: EntityScope<'_>,
    names: &[TargetName],
) -> Result<ExpectedVersions, OpError> {
    if tokio::time::timeout(DECIDED_WITHIN, decided(transactor, scope)).await.is_err() {
        tracing::warn!(entity = %scope.entity, "answering a controller before all decisions were made");
    }
    let mut assigned = BTreeMap::new();
    for slice in names.chunks(PER_COMMIT) {
        let answered = transactor
            .change(scope.namespace, scope.actor, |_, fleet, now| {
                limits(fleet, scope.entity)?;
                Ok::<_, OpError>(assign_expected(fleet, scope, slice, now))
            })
            .await?;
        assigned.extend(answered);
    }
    let world = transactor.world();
    let fleet = world.fleets.get(scope.namespace);
    let board = fleet.and_then(|fleet| Some((fleet, fleet.boards.get(scope.entity)?)));
    let (fleet, board) = board.ok_or_else(|| OpError::NotFound(format!("entity {}", scope.entity)))?;
    let progress = board.progress();
    let last = fleet.rollouts.get(&(scope.entity.clone(), progress.last)).map(|kept| &kept.value);
    let text = |version: Option<&bellwether_core::words::version::Version>| version.map(ToString::to_string);
    let targets = names.iter().map(|name| {
        let (version, assignment) = assigned.remove(name).unzip();
        ExpectedVersion { name: name.to_string(), version, assignment }
    });
    Ok(ExpectedVersions {
        targets: targets.collect(),
        status: last.map(|rollout| (&rollout.state).into()),
        rolling: text(last.filter(|rollout| !rollout.is_over()).map(|rollout| &rollout.version)),
        last_known_good: text(progress.last_known_good.as_ref()),
        last_known_bad: text(progress.bad.first().map(|bad| &bad.version)),
    })
}

/// Waits until another decision would change nothing, or too much to wait for.
async fn decided(transactor: &Transactor, scope: EntityScope<'_>) {
    let mut worlds = transactor.follow();
    loop {
        // A clone: while the world is borrowed, no other is published.
        let world = worlds.borrow_and_update().clone();
        if is_decided(&world, scope, transactor.now()) || worlds.changed().await.is_err() {
            return;
        }
    }
}

/// Whether another decision would change nothing, or more than a response waits for.
fn is_decided(world: &World, scope: EntityScope<'_>, now: Timestamp) -> bool {
    let board = world.fleets.get(scope.namespace).and_then(|fleet| fleet.boards.get(scope.entity));
    board.is_none_or(|board| {
        if board.has_due_beyond(AWAITED, now) {
            return true;
        }
        let verdict = decide(board, &world.environment(scope.namespace, scope.entity), now);
        let nothing = verdict.targets.is_empty() && verdict.progress.is_none() && verdict.rollouts.is_empty();
        nothing || verdict.targets.len() > AWAITED
    })
}

type AssignedVersions = BTreeMap<TargetName, (String, u64)>;

/// The expected versions of these targets, and the writes that record that the controller has them.
fn assign_expected(
    fleet: &Fleet,
    scope: EntityScope<'_>,
    names: &[TargetName],
    now: Timestamp,
) -> (Option<Changeset>, AssignedVersions) {
    let (mut changeset, mut assigned) = (Changeset::default(), BTreeMap::new());
    let Some(board) = fleet.boards.get(scope.entity) else { return (None, assigned) };
    for name in names {
        let Some((version, assignment)) = board.expected(name) else { continue };
        assigned.insert(name.clone(), (version.to_string(), assignment.get()));
        let known = fleet.externals.get(&(scope.entity.clone(), name.clone()));
        if let Some(known) = known.filter(|known| known.value.assigned != assignment) {
            let new = ExternalTarget {
                assigned: assignment,
                contact_since: now,
                ..ExternalTarget::clone(&known.value)
            };
            changeset.writes.push(Write::put(Record::ExternalTarget(
                scope.entity.clone(),
                name.clone(),
                new,
            )));
        }
    }
    ((!changeset.writes.is_empty()).then_some(changeset), assigned)
}
