//! The writer: takes queued proposals, commits them in groups, and answers each.

use std::collections::{BTreeMap, VecDeque};

use bellwether_core::words::counter::{Revision, Sequence};
use bellwether_core::words::name::Namespace;
use bellwether_rt::clock::Clock;
use bellwether_rt::fail::{self, FailPoint};
use bellwether_store::{CommitOutcome, Entry, FailedCompare, Store, StoreError, Txn};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::gather::{CompareOrigin, PipelineHeads, TransactionGroup};
use super::proposal::{CommitError, CommitPipeline, Fence, Proposal, Queue, Reply};
use crate::metrics::durations::Durations;
use crate::records::key_text;

/// Most proposals taken from a queue at a time.
const DRAIN: usize = 512;

/// Proposals of nodes that are taken along with those of deciders and people, so that nodes are never starved.
const BESIDE: usize = 64;

/// Most groups in flight: enough for one drain of reports, each with an event.
const ABREAST: usize = 12;

/// Attempts of a group that loses the event numbering to another server, before its proposals conflict.
const SEQUENCE_TRIES: u32 = 64;

/// Commits proposals in groups.
pub(super) struct CommitWriter {
    store: Store,
    clock: Clock,
    fence: Fence,
    /// How long the store took for each transaction.
    durations: Durations,
    /// The number of the last event of each namespace, as far as known.
    last: BTreeMap<Namespace, Sequence>,
}

impl CommitWriter {
    pub(super) const fn new(store: Store, clock: Clock, fence: Fence, durations: Durations) -> Self {
        Self { store, clock, fence, durations, last: BTreeMap::new() }
    }

    /// Commits proposals of deciders and people (`first`) and of nodes, until `stop` or until a queue is closed.
    pub(super) async fn run(mut self, mut first: Queue, mut nodes: Queue, stop: CancellationToken) {
        loop {
            // recv is cancel safe: the losing arm took nothing.
            let (one, beside) = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                one = first.recv() => (one, BESIDE),
                one = nodes.recv() => (one, DRAIN),
            };
            let mut waiting: VecDeque<_> = one.into_iter().collect();
            if waiting.is_empty() {
                return;
            }
            waiting.extend(std::iter::from_fn(|| first.try_recv().ok()).take(DRAIN));
            waiting.extend(std::iter::from_fn(|| nodes.try_recv().ok()).take(beside));
            self.commit_all(waiting).await;
        }
    }

    /// Commits all waiting proposals: several groups are in flight at a time and share the store's disk syncs. A later group
    /// assumes the event numbers of the groups before it, and that their parts of its pipelines succeed; if one of them
    /// fails, it conflicts and is tried again.
    async fn commit_all(&mut self, mut waiting: VecDeque<(Proposal, Reply)>) {
        let mut tries = 0;
        while !waiting.is_empty() {
            let groups = self.groups(&mut waiting).await;
            let outcomes = join_all(groups.iter().map(|(txn, _, _)| self.commit(txn.clone()))).await;
            let moved = outcomes.iter().any(|outcome| matches!(outcome, Ok(CommitOutcome::Committed(_))));
            tries = if moved { 1 } else { tries + 1 };
            let mut again = VecDeque::new();
            let mut numbers = BTreeMap::new();
            for ((_, group, members), outcome) in groups.into_iter().zip(outcomes) {
                if let Ok(CommitOutcome::Conflict { failed, .. }) = &outcome {
                    found_numbers(&group, failed, &mut numbers);
                }
                again.extend(self.settle(&group, members, outcome, tries));
            }
            self.last.append(&mut numbers);
            again.append(&mut waiting);
            waiting = again;
            if moved && waiting.iter().any(|(proposal, _)| proposal.line.is_some()) {
                fail::pass(FailPoint::BetweenSlices);
            }
        }
    }

    /// Commits one transaction. One that conflicts or fails took its time too.
    async fn commit(&self, txn: Txn) -> Result<CommitOutcome, StoreError> {
        let begun = tokio::time::Instant::now();
        let outcome = self.store.commit(txn).await;
        self.durations.observe_since(begun);
        outcome
    }

    /// Forms groups from the waiting proposals, as many as may be in flight.
    async fn groups(
        &mut self,
        waiting: &mut VecDeque<(Proposal, Reply)>,
    ) -> Vec<(Txn, TransactionGroup, Vec<(Proposal, Reply)>)> {
        let mut groups = Vec::new();
        let mut ahead = PipelineHeads::default();
        while groups.len() < ABREAST && !waiting.is_empty() {
            let (mut group, before) =
                (TransactionGroup::new(self.clock.now(), self.fence, &ahead), waiting.len());
            match self.gather(&mut group, waiting).await {
                // The next proposal fits only once the groups in flight are done.
                Ok(members) if members.is_empty() && waiting.len() == before => break,
                Ok(members) if members.is_empty() => {}
                Ok(members) => {
                    let txn = group.close(&mut ahead);
                    self.last.extend(group.sequences.iter().map(|(name, (_, after))| (name.clone(), *after)));
                    groups.push((txn, group, members));
                }
                Err(error) => answer_all(std::mem::take(waiting), &error),
            }
        }
        groups
    }

    /// Moves proposals from the front of the queue into the group while they fit; answers those that can never be committed, or
    /// no longer.
    async fn gather(
        &mut self,
        group: &mut TransactionGroup,
        waiting: &mut VecDeque<(Proposal, Reply)>,
    ) -> Result<Vec<(Proposal, Reply)>, CommitError> {
        let mut members = Vec::new();
        while let Some((proposal, reply)) = waiting.pop_front() {
            if proposal.line.as_ref().is_some_and(CommitPipeline::is_broken) {
                refuse(&proposal, reply, CommitError::Conflict { at: Revision::ZERO });
                continue;
            }
            let last = match self.last(&proposal.namespace).await {
                Ok(last) => last,
                Err(error) => {
                    waiting.push_front((proposal, reply));
                    waiting.extend(members);
                    return Err(CommitError::Store(error));
                }
            };
            match group.add(&proposal, last) {
                Ok(true) => members.push((proposal, reply)),
                Ok(false) => {
                    waiting.push_front((proposal, reply));
                    break;
                }
                Err(error) => refuse(&proposal, reply, error),
            }
        }
        Ok(members)
    }

    /// Answers the proposals of a group that are done; returns those to try again.
    fn settle(
        &mut self,
        group: &TransactionGroup,
        members: Vec<(Proposal, Reply)>,
        outcome: Result<CommitOutcome, StoreError>,
        tries: u32,
    ) -> Vec<(Proposal, Reply)> {
        match outcome {
            Ok(CommitOutcome::Committed(revision)) => {
                for (_, reply) in members {
                    answer(reply, Ok(Revision::new(revision.0)));
                }
                Vec::new()
            }
            Ok(CommitOutcome::Conflict { failed, .. }) => self.sort_out(group, &failed, members, tries),
            Err(error) => {
                self.last.clear();
                answer_all(members, &CommitError::Store(error));
                Vec::new()
            }
        }
    }

    fn sort_out(
        &self,
        group: &TransactionGroup,
        failed: &[FailedCompare],
        members: Vec<(Proposal, Reply)>,
        tries: u32,
    ) -> Vec<(Proposal, Reply)> {
        let mut blamed: BTreeMap<usize, Revision> = BTreeMap::new();
        let mut term_lost = false;
        for compare in failed {
            match group.guards.get(compare.index) {
                Some(CompareOrigin::Proposal(index)) => {
                    let first = compare.found.as_ref().map(|entry| Revision::new(entry.modified.0));
                    let at = blamed.entry(*index).or_default();
                    *at = first.unwrap_or_default().max(*at);
                }
                Some(CompareOrigin::Term) => term_lost = true,
                Some(CompareOrigin::Sequence(_) | CompareOrigin::Line) | None => {}
            }
        }
        let mut again = Vec::new();
        for (index, (proposal, reply)) in members.into_iter().enumerate() {
            if term_lost && proposal.term.is_some() {
                refuse(&proposal, reply, CommitError::LostTerm);
            } else if let Some(at) = blamed.get(&index).copied() {
                refuse(&proposal, reply, CommitError::Conflict { at });
            } else if tries >= SEQUENCE_TRIES {
                refuse(&proposal, reply, CommitError::Conflict { at: Revision::ZERO });
            } else {
                again.push((proposal, reply));
            }
        }
        again
    }

    async fn last(&mut self, namespace: &Namespace) -> Result<Sequence, StoreError> {
        if let Some(last) = self.last.get(namespace) {
            return Ok(*last);
        }
        let entry = self.store.get(key_text::sequence(namespace)).await?;
        let broken =
            || StoreError::Broken { reason: format!("the event number of {namespace} is not a number") };
        let number = number(entry.as_ref()).ok_or_else(broken)?;
        self.last.insert(namespace.clone(), number);
        Ok(number)
    }
}

/// The number of the last event, as its record has it.
fn number(entry: Option<&Entry>) -> Option<Sequence> {
    let Some(entry) = entry else { return Some(Sequence::ZERO) };
    Some(Sequence::new(std::str::from_utf8(&entry.value).ok()?.parse().ok()?))
}

/// Notes the number of the last event of each namespace of a group that was not committed: what is in the store, or else what the
/// group assumed rightly. Later groups assumed that of this one.
fn found_numbers(
    group: &TransactionGroup,
    failed: &[FailedCompare],
    numbers: &mut BTreeMap<Namespace, Sequence>,
) {
    let found: BTreeMap<usize, Option<Sequence>> = failed
        .iter()
        .filter_map(|compare| match group.guards.get(compare.index) {
            Some(CompareOrigin::Sequence(index)) => Some((*index, number(compare.found.as_ref()))),
            Some(CompareOrigin::Proposal(_) | CompareOrigin::Term | CompareOrigin::Line) | None => None,
        })
        .collect();
    for (index, (namespace, (before, _))) in group.sequences.iter().enumerate() {
        let last = found.get(&index).copied().flatten().unwrap_or(*before);
        let known = numbers.entry(namespace.clone()).or_default();
        *known = last.max(*known);
    }
}

fn answer(reply: Reply, result: Result<Revision, CommitError>) {
    if reply.send(result).is_err() {
        tracing::debug!("the caller of a commit is gone");
    }
}

/// Later proposals of its pipeline fail as well.
fn refuse(proposal: &Proposal, reply: Reply, error: CommitError) {
    if let Some(line) = &proposal.line {
        line.abort();
    }
    answer(reply, Err(error));
}

fn answer_all(waiting: impl IntoIterator<Item = (Proposal, Reply)>, error: &CommitError) {
    for (proposal, reply) in waiting {
        refuse(&proposal, reply, error.clone());
    }
}
