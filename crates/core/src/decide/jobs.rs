//! Absorbs what a node reports of the jobs of its runs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::records::job::{Job, JobState, NodeJobs};
use crate::records::key::Record;
use crate::records::report::Report;
use crate::records::run::Run;
use crate::records::versioned::Versioned;
use crate::verdict::Write;
use crate::words::name::{EntityName, LedgerId, NodeName};
use crate::world::fleet::Fleet;

/// The records of jobs to write for a report: of the runs that the node is a target of, or was when a job began that is still open, those
/// that differ from what is stored.
///
/// `told` has the jobs of the runs that the report tells about; of the others nothing has changed. A job that was open is lost
/// when the node's ledger is another one, and cancelled once the node has accepted an order without its run and reports it no
/// longer. Silence changes nothing.
#[must_use]
pub fn absorb(fleet: &Fleet, report: &Report, told: &BTreeMap<EntityName, Vec<Job>>) -> Vec<Write> {
    let (targeted, open) = (fleet.entities_of_node.get(&report.node), fleet.open_jobs.get(&report.node));
    let runs: BTreeSet<&EntityName> = targeted.chain(open).collect();
    let runs = runs.into_iter().filter_map(|name| fleet.runs.get(name)).map(|kept| &*kept.value);
    runs.filter_map(|run| {
        let before = fleet.jobs.get(&(run.name.clone(), report.node.clone())).map(|kept| &*kept.value);
        let after = next(fleet, (run, report), before, told.get(&run.name))?;
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
            (false, false) => before,
        });
    };
    let tasks = fleet.tasks_of(run, &report.node);
    let is_of_run = |job: &&Job| {
        let task = usize::try_from(job.index).ok().and_then(|index| tasks.get(index));
        task.is_some_and(|task| task.task == job.task)
    };
    let closed = before.is_some_and(|before| before.closed && before.ledger == report.ledger);
    let mut jobs: BTreeMap<u32, Job> = BTreeMap::new();
    // What an agent with another ledger saw is not known to this one, and stays.
    if let Some(before) = before.cloned() {
        let same = before.ledger == report.ledger;
        let before = if same { before } else { before.with_open_ones(JobState::Lost) };
        jobs.extend(before.jobs.into_iter().map(|job| (job.index, job)));
    }
    jobs.extend(told.iter().filter(is_of_run).map(|job| (job.index, job.clone())));
    let (name, node, ledger) = (run.name.clone(), report.node.clone(), report.ledger.clone());
    let jobs: Vec<Job> = jobs.into_values().collect();
    (!jobs.is_empty()).then_some(NodeJobs { run: name, node, ledger, jobs, closed })
}

/// Whether the node has accepted an order without the run, and has none of it any more.
fn is_withdrawn(fleet: &Fleet, run: &EntityName, report: &Report) -> bool {
    let order = fleet.orders.get(&report.node).map(|kept| &kept.value);
    !report.entities.contains_key(run)
        && order.is_some_and(|order| {
            order.generation == report.generation && !order.content.entities.contains_key(run)
        })
}

/// The node reported that it finished or skipped the task, which does not run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedAlready;

/// The record of jobs to write when the node's agent, with this ledger, takes the inputs of the task of this index: from then on
/// the task is being executed. The index behind the last task closes the list. `None` if that is what is recorded, as when the agent asks
/// again because it did not get the answer.
///
/// # Errors
/// [`FinishedAlready`]: the agent's ledger is older than what it reported, as after its directory was restored from a copy.
pub fn dispatched(
    fleet: &Fleet,
    (run, node): (&Run, &NodeName),
    ledger: Option<&LedgerId>,
    index: u32,
) -> Result<Option<NodeJobs>, FinishedAlready> {
    let before = fleet.jobs.get(&(run.name.clone(), node.clone())).map(|kept| &*kept.value);
    let (name, node_name) = (run.name.clone(), node.clone());
    let mut after = match before.cloned() {
        Some(before) if before.ledger.as_ref() == ledger => before,
        Some(before) => {
            NodeJobs { ledger: ledger.cloned(), closed: false, ..before.with_open_ones(JobState::Lost) }
        }
        None => {
            NodeJobs { run: name, node: node_name, ledger: ledger.cloned(), jobs: Vec::new(), closed: false }
        }
    };
    let task = usize::try_from(index).ok().and_then(|index| fleet.tasks_of(run, node).get(index));
    match (task, after.jobs.iter_mut().find(|job| job.index == index)) {
        (None, _) => after.closed = true,
        (Some(_), Some(job)) if job.state.is_complete() => return Err(FinishedAlready),
        // A task that failed begins again.
        (Some(task), Some(job)) => {
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
    /// Each task is recorded here before its agent has the inputs for it, so what is not recorded has not begun. A task whose end is not
    /// recorded is begun again only if it is idempotent, and on a logical node, whose former host is known to have ended it.
    #[must_use]
    pub fn goes_on_after(&self, run: &EntityName, node: &NodeName) -> Option<u32> {
        // What has ended begins nowhere any more, also where it never began: nobody expects it.
        if self.has_ended(run) {
            return None;
        }
        let Some(known) = self.jobs.get(&(run.clone(), node.clone())).map(|kept| &*kept.value) else {
            return Some(0);
        };
        let (run, node_of_run) = (self.runs.get(run)?, self.nodes.get(node)?);
        node_of_run.value.logical.as_ref()?;
        let tasks = self.tasks_of(&run.value, node);
        if known.closed {
            return u32::try_from(tasks.len()).ok();
        }
        // In their order. Those that are complete have told their outputs.
        let complete = known.jobs.iter().take_while(|job| job.state.is_complete()).count();
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
        let goes_on = known.jobs.iter().skip(complete).all(may_run_again);
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
