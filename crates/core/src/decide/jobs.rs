//! Absorbs what a node reports of the jobs of its runs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::records::job::{Job, JobState, NodeJobs};
use crate::records::key::Record;
use crate::records::report::{EntityReport, Report, TargetActivity};
use crate::records::run::Run;
use crate::records::versioned::Versioned;
use crate::verdict::Write;
use crate::words::counter::AssignmentNumber;
use crate::words::name::{EntityName, LedgerId, NodeName};
use crate::world::fleet::Fleet;

/// The records of jobs to write for a report: of the runs that the node is a target of, or was when a job began that is still open, those
/// that differ from what is stored.
///
/// `told` has the jobs of the runs that the report tells about; of the others nothing has changed. A job that was open is lost
/// when the node's ledger is another one, or the same one that does not know it any more, and cancelled once the node has accepted an
/// order without its run and reports it no longer. Silence changes nothing, unless the run has failed there: then what the node was to
/// begin is not begun.
#[must_use]
pub fn absorb(fleet: &Fleet, report: &Report, told: &BTreeMap<EntityName, Vec<Job>>) -> Vec<Write> {
    let (targeted, open) = (fleet.entities_of_node.get(&report.node), fleet.open_jobs.get(&report.node));
    let runs: BTreeSet<&EntityName> = targeted.chain(open).collect();
    let runs = runs.into_iter().filter_map(|name| fleet.runs.get(name)).map(|kept| &*kept.value);
    runs.filter_map(|run| {
        let before = fleet.jobs.get(&(run.name.clone(), report.node.clone())).map(|kept| &*kept.value);
        let mut after = next(fleet, (run, report), before, told.get(&run.name))?;
        after.failed_for = after.failed_for.max(failed_for(report, &run.name));
        (Some(&after) != before).then(|| Write::put(Record::Jobs(after)))
    })
    .collect()
}

/// What is known of the jobs of a run on the node after the report; `None` if there are none.
fn next(
    fleet: &Fleet,
    (run, report): (&Run, &Report),
    before: Option<&NodeJobs>,
    told: Option<&Vec<Job>>,
) -> Option<NodeJobs> {
    let Some(told) = told else {
        let before = before?.clone();
        let lost = before.ledger.is_some() && report.ledger.is_some() && before.ledger != report.ledger;
        return Some(match (lost, is_withdrawn(fleet, &run.name, report)) {
            (true, _) => before.with_open_ones(JobState::Lost),
            (false, true) => before.with_open_ones(JobState::Cancelled),
            (false, false) => without_missing(fleet, (&run.name, report), before, None),
        });
    };
    let tasks = fleet.tasks_of(run, &report.node);
    let is_of_run = |job: &&Job| {
        let task = usize::try_from(job.index).ok().and_then(|index| tasks.get(index));
        task.is_some_and(|task| task.task == job.task)
    };
    let before = before.cloned().map(|before| match before.ledger == report.ledger {
        true => without_missing(fleet, (&run.name, report), before, Some(told)),
        // What an agent with another ledger saw is not known to this one, and stays.
        false => NodeJobs { closed: false, forgotten: false, ..before.with_open_ones(JobState::Lost) },
    });
    let (closed, forgotten, failed_for) =
        before.as_ref().map_or((false, false, AssignmentNumber::ZERO), |before| {
            (before.closed, before.forgotten, before.failed_for)
        });
    let mut jobs: BTreeMap<u32, Job> = BTreeMap::new();
    jobs.extend(before.into_iter().flat_map(|before| before.jobs).map(|job| (job.index, job)));
    jobs.extend(told.iter().filter(is_of_run).map(|job| (job.index, job.clone())));
    let (name, node, ledger) = (run.name.clone(), report.node.clone(), report.ledger.clone());
    let jobs: Vec<Job> = jobs.into_values().collect();
    (!jobs.is_empty()).then_some(NodeJobs { run: name, node, ledger, jobs, closed, forgotten, failed_for })
}

/// The jobs that are recorded for the ledger of the report, where those are lost that it does not know any more. `told` has all of the run
/// that it knows; `None` if that has not changed.
///
/// What it told of it knew: reports are numbered, so that this one is later. What was only dispatched may be on its way to the agent, unless
/// the run has failed there.
fn without_missing(
    fleet: &Fleet,
    (run, report): (&EntityName, &Report),
    mut before: NodeJobs,
    told: Option<&Vec<Job>>,
) -> NodeJobs {
    let order = fleet.orders.get(&report.node).and_then(|kept| kept.value.content.entities.get(run));
    let Some(order) =
        order.filter(|order| order.binding.ledger.is_some() && order.binding.ledger == report.ledger)
    else {
        return before;
    };
    let has_failed = report.entities.get(run).is_some_and(|entity| has_failed_for(entity, order.number));
    // Jobs of the tasks before are those of another ledger.
    let is_missing = |job: &Job| {
        job.index >= order.binding.complete
            && told.is_none_or(|told| told.iter().all(|known| known.index != job.index))
    };
    if told.is_some() && report.sequence > 0 {
        before.forgotten = before.jobs.iter().filter(|job| is_missing(job)).any(|job| match job.state {
            JobState::Running
            | JobState::Incomplete
            | JobState::Finished
            | JobState::Skipped
            | JobState::Failed => true,
            JobState::Created | JobState::Cancelled | JobState::Lost => before.forgotten,
        });
    }
    let (forgotten, is_told) = (before.forgotten, told.is_some());
    for job in before.jobs.iter_mut().filter(|job| is_missing(job)) {
        let is_lost = match job.state {
            JobState::Created => has_failed || forgotten && is_told,
            JobState::Running | JobState::Incomplete => forgotten && is_told,
            JobState::Finished
            | JobState::Skipped
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Lost => false,
        };
        if is_lost {
            job.state = JobState::Lost;
        }
    }
    before
}

/// Whether the node reports that what this assignment asks for has failed.
fn has_failed_for(report: &EntityReport, number: AssignmentNumber) -> bool {
    match report.activity {
        TargetActivity::Failed { .. } => report.answering == number,
        TargetActivity::Nothing | TargetActivity::Applying { .. } | TargetActivity::Waiting { .. } => false,
    }
}

/// The assignment that failed, as a report says; zero if none did.
fn failed_for(report: &Report, run: &EntityName) -> AssignmentNumber {
    let answer = report.entities.get(run).filter(|answer| has_failed_for(answer, answer.answering));
    answer.map_or(AssignmentNumber::ZERO, |answer| answer.answering)
}

/// Whether the node has accepted an order without the run, and has none of it any more.
fn is_withdrawn(fleet: &Fleet, run: &EntityName, report: &Report) -> bool {
    let order = fleet.orders.get(&report.node).map(|kept| &kept.value);
    !report.entities.contains_key(run)
        && order.is_some_and(|order| {
            order.generation == report.generation && !order.content.entities.contains_key(run)
        })
}

/// Why a node does not begin a task: its ledger does not know what it reported, as after its directory was restored from a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchRefusal {
    /// It reported that it finished or skipped the task, which does not run again.
    Finished,
    /// It reported that it began the task, which is not idempotent, and nobody asked for it again.
    Begun,
    /// It does not know other jobs of the run.
    Forgotten,
}

/// The record of jobs to write when the node's agent, with this ledger, takes the inputs of the task of this index: from then on
/// the task is being executed. The index behind the last task closes the list. `None` if that is what is recorded, as when the agent asks
/// again because it did not get the answer.
///
/// # Errors
/// [`DispatchRefusal`]: the agent's ledger is older than what it reported.
pub fn dispatched(
    fleet: &Fleet,
    (run, node): (&Run, &NodeName),
    ledger: Option<&LedgerId>,
    index: u32,
) -> Result<Option<NodeJobs>, DispatchRefusal> {
    let before = fleet.jobs.get(&(run.name.clone(), node.clone())).map(|kept| &*kept.value);
    let (name, node_name) = (run.name.clone(), node.clone());
    let is_same = before.is_some_and(|before| before.ledger.as_ref() == ledger);
    let mut after = match before.cloned() {
        Some(before) if is_same => before,
        Some(before) => NodeJobs {
            ledger: ledger.cloned(),
            closed: false,
            forgotten: false,
            ..before.with_open_ones(JobState::Lost)
        },
        None => NodeJobs {
            run: name,
            node: node_name,
            ledger: ledger.cloned(),
            jobs: Vec::new(),
            closed: false,
            forgotten: false,
            failed_for: AssignmentNumber::ZERO,
        },
    };
    if after.forgotten {
        return Err(DispatchRefusal::Forgotten);
    }
    let order = fleet.orders.get(node).and_then(|kept| kept.value.content.entities.get(&run.name));
    let report = fleet.reports.get(node).and_then(|kept| kept.value.entities.get(&run.name));
    // What it asked for has failed already, once that is reported, in whatever order reports arrive.
    let failed_for = after.failed_for;
    let is_retried = order.is_some_and(|order| {
        let has_failed = report.is_some_and(|report| has_failed_for(report, order.number));
        order.retry.is_some() && failed_for < order.number && !has_failed
    });
    let task = usize::try_from(index).ok().and_then(|index| fleet.tasks_of(run, node).get(index));
    match (task, after.jobs.iter_mut().find(|job| job.index == index)) {
        (None, _) => after.closed = true,
        (Some(task), Some(job)) => {
            let is_refused = match job.state {
                JobState::Finished | JobState::Skipped => return Err(DispatchRefusal::Finished),
                JobState::Running => is_same,
                JobState::Failed | JobState::Lost => is_same && !is_retried,
                // The task asked for it itself, or has not begun.
                JobState::Incomplete | JobState::Created | JobState::Cancelled => false,
            };
            if is_refused && !task.idempotent {
                return Err(DispatchRefusal::Begun);
            }
            // A task that failed begins again.
            *job = Job { attempts: job.attempts, ..Job::created(index, task.task.clone()) };
        }
        (Some(task), None) => after.jobs.push(Job::created(index, task.task.clone())),
    }
    Ok((Some(&after) != before).then_some(after))
}

impl Fleet {
    /// How many tasks of a run are complete on a node, if an agent with another ledger may go on with it after them; `None` if it may
    /// not.
    ///
    /// Each task is recorded here before its agent has the inputs for it, so what is not recorded has not begun; but of a run that was
    /// started in an earlier epoch than the node's ledger was reported, any task may have begun after the backup. A task whose end is not
    /// recorded is begun again only if it is idempotent, and on a logical node, whose former host is known to have ended it.
    #[must_use]
    pub fn goes_on_after(&self, run: &EntityName, node: &NodeName) -> Option<u32> {
        // What has ended begins nowhere any more, also where it never began: nobody expects it.
        if self.has_ended(run) {
            return None;
        }
        let known = self.jobs.get(&(run.clone(), node.clone())).map(|kept| &*kept.value);
        let (run, node_of_run) = (&self.runs.get(run)?.value, self.nodes.get(node)?);
        let is_recorded = self
            .ledger(node)
            .is_none_or(|ledger| run.version().is_ok_and(|version| ledger.others_are_recorded(&version)));
        if known.is_none() && is_recorded {
            return Some(0);
        }
        node_of_run.value.logical.as_ref()?;
        let tasks = self.tasks_of(run, node);
        if known.is_some_and(|known| known.closed) {
            return u32::try_from(tasks.len()).ok();
        }
        // In their order. Those that are complete have told their outputs.
        let jobs = known.map(|known| known.jobs.as_slice()).unwrap_or_default();
        let in_order =
            (0..).zip(jobs).take_while(|(index, job)| job.index == *index && job.state.is_complete());
        let complete = in_order.count();
        let may_run_again = |job: &Job| {
            let task = usize::try_from(job.index).ok().and_then(|index| tasks.get(index));
            let has_ended = match job.state {
                JobState::Failed | JobState::Cancelled => true,
                JobState::Created
                | JobState::Running
                | JobState::Incomplete
                | JobState::Lost
                | JobState::Finished
                | JobState::Skipped => false,
            };
            !has_ended && task.is_some_and(|task| task.idempotent)
        };
        let goes_on = jobs.iter().skip(complete).all(may_run_again)
            && (is_recorded || tasks.iter().skip(complete).all(|task| task.idempotent));
        u32::try_from(complete).ok().filter(|_| goes_on)
    }

    /// The jobs of a run, by node.
    pub fn jobs_of<'a>(&'a self, run: &'a EntityName) -> impl Iterator<Item = &'a Versioned<NodeJobs>> {
        let from = self.jobs.range((run.clone(), NodeName::first())..);
        from.take_while(move |((of, _), _)| of == run).map(|(_, kept)| kept)
    }
}

#[cfg(test)]
mod tests;
