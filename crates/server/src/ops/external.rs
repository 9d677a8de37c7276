//! External targets: controllers report them, and are told what each is to run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_api::shape::{ShapeError, read, read_some};
use bellwether_api::v1::external::{ExpectedVersion, ExpectedVersions, TargetReports};
use bellwether_core::decide::rollout::decide;
use bellwether_core::records::external::{ExternalTarget, MAX_REPORTED, StalenessLimits};
use bellwether_core::records::key::{Key, Record};
use bellwether_core::rollout::external::{self, GroupConflict, TargetReport};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::name::{Actor, EntityName, Namespace, TargetName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::{OpError, event};
use crate::transactor::Transactor;

/// Targets per commit: below the store's 128 operations, leaving room for events and the record of controllers.
const PER_COMMIT: usize = 50;

/// How long an answer waits for what the reports bring about to be decided.
const DECIDED_WITHIN: Duration = Duration::from_secs(5);

/// Whose targets, and who reports them.
#[derive(Debug, Clone, Copy)]
pub struct ExternalScope<'a> {
    /// The namespace.
    pub namespace: &'a Namespace,
    /// The entity.
    pub entity: &'a EntityName,
    /// Who sent the reports; events name them.
    pub actor: &'a Actor,
}

/// One thing that a controller says.
#[derive(Debug, Clone)]
enum ReportLine {
    Seen(TargetReport, Option<AssignmentNumber>),
    Gone(TargetName),
}

/// Reports as they were read.
#[derive(Debug)]
struct ParsedReports {
    controller: Actor,
    take_over: bool,
    groups: BTreeSet<String>,
    words: Vec<ReportLine>,
    complete: bool,
}

/// Takes in what a controller saw; answers the names of the targets that were reported, in that order.
///
/// Reports are taken in by and by: after an error some may be in, and sending all of them again does no harm.
///
/// # Errors
/// [`OpError::Invalid`] naming the field; [`OpError::NotFound`]; [`OpError::Refused`] when the entity picks nodes, or
/// another controller reports these targets.
pub async fn absorb(
    transactor: &Transactor,
    of: ExternalScope<'_>,
    reports: &TargetReports,
) -> Result<Vec<TargetName>, OpError> {
    let mut heard = ParsedReports::read(of.actor, reports)?;
    let names: Vec<TargetName> = heard.seen().cloned().collect();
    if heard.complete {
        let world = transactor.world();
        let reported: BTreeSet<&TargetName> = names.iter().collect();
        let fleet = world.fleets.get(of.namespace);
        let known = fleet.into_iter().flat_map(|fleet| fleet.externals_of(of.entity)).map(|(name, _)| name);
        let of_group = known.filter(|name| heard.groups.contains(external::group(name)));
        let gone: Vec<ReportLine> =
            of_group.filter(|name| !reported.contains(name)).cloned().map(ReportLine::Gone).collect();
        heard.words.extend(gone);
    }
    // Even without a word, it is known who reports.
    let slices = heard.words.chunks(PER_COMMIT).map(Some);
    for slice in if heard.words.is_empty() { vec![None] } else { slices.collect() } {
        transactor
            .change(of.namespace, of.actor, |_, fleet, now| {
                Ok::<_, OpError>((take(fleet, of, &heard, (slice.unwrap_or_default(), now))?, ()))
            })
            .await?;
    }
    Ok(names)
}

impl ParsedReports {
    fn read(actor: &Actor, reports: &TargetReports) -> Result<Self, ShapeError> {
        let said = reports.targets.len().saturating_add(reports.removed.len());
        if said > MAX_REPORTED {
            let reason = format!("{said} are more than {MAX_REPORTED}; send several reports");
            return Err(ShapeError::at("targets", reason));
        }
        let group = reports.group.as_deref();
        if group.is_some_and(|group| group.is_empty() || group.contains('/')) {
            return Err(ShapeError::at("group", "it is empty or contains '/'; leave it out, or name one"));
        }
        let mut words = Vec::with_capacity(said);
        for (at, report) in reports.targets.iter().enumerate() {
            let place = |field: &str| format!("targets[{at}].{field}");
            let target = whole(&place("name"), group, &report.name)?;
            let running = read_some(&place("running"), report.running.as_deref())?;
            let report_of = TargetReport { target, running, error: report.error.clone() };
            words.push(ReportLine::Seen(report_of, report.assignment.map(AssignmentNumber::new)));
        }
        for (at, name) in reports.removed.iter().enumerate() {
            words.push(ReportLine::Gone(whole(&format!("removed[{at}]"), group, name)?));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = words.iter().map(ReportLine::target).find(|name| !names.insert((*name).clone()))
        {
            return Err(ShapeError::at("targets", format!("{twice} is named twice")));
        }
        let mut groups: BTreeSet<String> =
            words.iter().map(|word| external::group(word.target()).to_owned()).collect();
        match group {
            Some(group) => drop(groups.insert(group.to_owned())),
            None if reports.complete || groups.is_empty() => drop(groups.insert(String::new())),
            None => {}
        }
        let controller = read_some("controller", reports.controller.as_deref())?;
        Ok(Self {
            controller: controller.unwrap_or_else(|| actor.clone()),
            take_over: reports.take_over,
            groups,
            words,
            complete: reports.complete,
        })
    }

    fn seen(&self) -> impl Iterator<Item = &TargetName> {
        self.words.iter().filter_map(|word| match word {
            ReportLine::Seen(report, _) => Some(&report.target),
            ReportLine::Gone(_) => None,
        })
    }
}

impl ReportLine {
    const fn target(&self) -> &TargetName {
        match self {
            Self::Seen(report, _) => &report.target,
            Self::Gone(target) => target,
        }
    }
}

fn whole(place: &str, group: Option<&str>, name: &str) -> Result<TargetName, ShapeError> {
    match group {
        Some(group) => read(place, &format!("{group}/{name}")),
        None => read(place, name),
    }
}

/// What a slice of what was heard changes, if anything.
fn take(
    fleet: &Fleet,
    of: ExternalScope<'_>,
    heard: &ParsedReports,
    (words, now): (&[ReportLine], Timestamp),
) -> Result<Option<Changeset>, OpError> {
    let patience = patience(fleet, of.entity)?;
    let mut changeset = Changeset::default();
    claim(fleet, of, heard, (patience, now), &mut changeset)?;
    for word in words {
        let key = (of.entity.clone(), word.target().clone());
        let known = fleet.externals.get(&key).map(|kept| &*kept.value);
        match word {
            ReportLine::Seen(report, answering) => {
                let new = external::absorb(known, report, *answering, now);
                if external::is_news(known, &new, patience.grain()) {
                    changeset.writes.push(Write::put(Record::ExternalTarget(key.0, key.1, new)));
                }
            }
            ReportLine::Gone(target) if known.is_some() => {
                let subject = format!("target/{}/{target}", of.entity);
                changeset.events.push(event("target.gone", subject, "its controller says so"));
                changeset.writes.push(Write::Delete(Key::ExternalTarget(key.0, key.1)));
            }
            ReportLine::Gone(_) => {}
        }
    }
    Ok((!changeset.writes.is_empty()).then_some(changeset))
}

/// How long the entity's targets may be silent, if they are external at all.
fn patience(fleet: &Fleet, entity: &EntityName) -> Result<StalenessLimits, OpError> {
    if !fleet.entities.contains_key(entity) {
        return Err(OpError::NotFound(format!("entity {entity}")));
    }
    fleet.staleness(entity).ok_or_else(|| OpError::Refused {
        reason: format!(
            "take reports of targets of entity {entity}: its targets are nodes, which report themselves"
        ),
        hint: Some("make another entity for them: bellwether entity set NAME --external".to_owned()),
    })
}

fn claim(
    fleet: &Fleet,
    of: ExternalScope<'_>,
    heard: &ParsedReports,
    (patience, now): (StalenessLimits, Timestamp),
    changeset: &mut Changeset,
) -> Result<(), OpError> {
    let known = fleet.controllers.get(of.entity).map(|kept| (*kept.value).clone()).unwrap_or_default();
    let mut controllers = known.clone();
    for group in &heard.groups {
        let claimed =
            external::claim(&controllers, (group, &heard.controller), heard.take_over, patience, now);
        if let Some(claimed) = claimed.map_err(conflict)? {
            controllers = claimed;
        }
        let before = known.0.get(group).map(|controller| controller.name.to_string());
        if before.as_deref() != Some(heard.controller.as_str()) {
            let what = if group.is_empty() { "its targets".to_owned() } else { format!("group {group}") };
            let told =
                event("entity.controller", format!("entity/{}", of.entity), format!("it reports {what}"));
            let after = Some(heard.controller.to_string());
            changeset.events.push(bellwether_core::records::event::EventDraft { before, after, ..told });
        }
    }
    if controllers != known {
        changeset.writes.push(Write::put(Record::Controllers(of.entity.clone(), controllers)));
    }
    Ok(())
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

/// What targets are to run, once what is known about them was decided on, and remembers what their controller is told.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] as [`absorb`].
pub async fn expected(
    transactor: &Transactor,
    of: ExternalScope<'_>,
    names: &[TargetName],
) -> Result<ExpectedVersions, OpError> {
    let mut worlds = transactor.follow();
    let decided = worlds.wait_for(|world| is_decided(world, of, transactor.now()));
    if tokio::time::timeout(DECIDED_WITHIN, decided).await.is_err() {
        tracing::warn!(entity = %of.entity, "answering a controller before everything was decided");
    }
    let mut told = BTreeMap::new();
    for slice in names.chunks(PER_COMMIT) {
        let answered = transactor
            .change(of.namespace, of.actor, |_, fleet, _| {
                patience(fleet, of.entity)?;
                Ok::<_, OpError>(tell(fleet, of, slice))
            })
            .await?;
        told.extend(answered);
    }
    let world = transactor.world();
    let fleet = world.fleets.get(of.namespace);
    let board = fleet.and_then(|fleet| Some((fleet, fleet.boards.get(of.entity)?)));
    let (fleet, board) = board.ok_or_else(|| OpError::NotFound(format!("entity {}", of.entity)))?;
    let progress = board.progress();
    let last = fleet.rollouts.get(&(of.entity.clone(), progress.last)).map(|kept| &kept.value);
    let text = |version: Option<&bellwether_core::words::version::Version>| version.map(ToString::to_string);
    let targets = names.iter().map(|name| {
        let (version, assignment) = told.remove(name).unzip();
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

/// Whether deciding now would change nothing.
fn is_decided(world: &World, of: ExternalScope<'_>, now: Timestamp) -> bool {
    let board = world.fleets.get(of.namespace).and_then(|fleet| fleet.boards.get(of.entity));
    board.is_none_or(|board| {
        let verdict = decide(board, &world.environment(of.namespace, of.entity), now);
        verdict.targets.is_empty() && verdict.progress.is_none() && verdict.rollouts.is_empty()
    })
}

type AssignedVersions = BTreeMap<TargetName, (String, u64)>;

/// What these are to run, and the writes that remember that their controller knows.
fn tell(fleet: &Fleet, of: ExternalScope<'_>, names: &[TargetName]) -> (Option<Changeset>, AssignedVersions) {
    let (mut changeset, mut told) = (Changeset::default(), BTreeMap::new());
    let Some(board) = fleet.boards.get(of.entity) else { return (None, told) };
    for name in names {
        let Some((version, assignment)) = board.expected(name) else { continue };
        told.insert(name.clone(), (version.to_string(), assignment.get()));
        let known = fleet.externals.get(&(of.entity.clone(), name.clone()));
        if let Some(known) = known.filter(|known| known.value.told != assignment) {
            let new = ExternalTarget { told: assignment, ..ExternalTarget::clone(&known.value) };
            changeset.writes.push(Write::put(Record::ExternalTarget(of.entity.clone(), name.clone(), new)));
        }
    }
    ((!changeset.writes.is_empty()).then_some(changeset), told)
}
