//! Groups proposals into one transaction. Pure: knows limits and keys, does not access the store.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::shape::ShapeError;
use bellwether_core::records::event::{CausedBy, Event};
use bellwether_core::records::key::{AnyKey, AnyRecord, Key, Record};
use bellwether_core::verdict::Write;
use bellwether_core::words::counter::{Revision, Sequence, Term};
use bellwether_core::words::name::Namespace;
use bellwether_core::words::time::Timestamp;
use bellwether_store::{Compare, MAX_OPS, MAX_TXN_BYTES, Op, Txn};
use bytes::Bytes;

use super::proposal::{CommitError, CommitPipeline, Fence, Proposal, ProposedEvent};
use crate::records::{encoding, key_text};

/// Bytes of a transaction reserved for the overhead of the store. Sequence keys and compares are counted exactly.
const SPARE_BYTES: usize = 16 << 10;

/// Where a compare comes from, to find the cause when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompareOrigin {
    /// The proposal with this index in the group.
    Proposal(usize),
    /// The fence of the leadership.
    Term,
    /// The event numbering of the namespace with this index in the group: another server wrote events.
    Sequence(usize),
    /// The proposals before it in its pipeline.
    Line,
}

/// For each pipeline with groups in flight, what shows that it was committed up to there, if anything does.
#[derive(Debug, Clone, Default)]
pub(super) struct PipelineHeads(Vec<(CommitPipeline, Option<Compare>)>);

impl PipelineHeads {
    fn of(&self, line: &CommitPipeline) -> Option<&Option<Compare>> {
        self.0.iter().find(|(other, _)| other.is(line)).map(|(_, proof)| proof)
    }

    /// Records the proof of the last group of a pipeline.
    fn note(&mut self, line: CommitPipeline, proof: Option<Compare>) {
        self.0.retain(|(other, _)| !other.is(&line));
        self.0.push((line, proof));
    }
}

/// A transaction under construction.
#[derive(Debug)]
pub(super) struct TransactionGroup {
    pub(super) txn: Txn,
    pub(super) guards: Vec<CompareOrigin>,
    pub(super) sequences: BTreeMap<Namespace, (Sequence, Sequence)>,
    /// Number of proposals in it.
    pub(super) count: usize,
    /// What shows that each pipeline was committed, by earlier groups and by this one.
    ahead: PipelineHeads,
    lines: Vec<(CommitPipeline, Option<Compare>)>,
    written: BTreeSet<Bytes>,
    bytes: usize,
    /// The term that its deciders decided in: one compare guards them all, so a proposal of another term goes into another
    /// group.
    term: Option<Term>,
    now: Timestamp,
    fence: Fence,
}

impl TransactionGroup {
    /// An empty group.
    pub(super) fn new(now: Timestamp, fence: Fence, ahead: &PipelineHeads) -> Self {
        Self {
            txn: Txn::default(),
            guards: Vec::new(),
            sequences: BTreeMap::new(),
            count: 0,
            ahead: ahead.clone(),
            lines: Vec::new(),
            written: BTreeSet::new(),
            bytes: 0,
            term: None,
            now,
            fence,
        }
    }

    /// Adds a proposal if it fits; returns whether it did.
    ///
    /// # Errors
    /// [`CommitError`] when it can never be committed.
    pub(super) fn add(&mut self, proposal: &Proposal, last: Sequence) -> Result<bool, CommitError> {
        let mut part = ProposalPart::new(proposal)?;
        let (first, so_far) = self.sequences.get(&proposal.namespace).copied().unwrap_or((last, last));
        let after = part.number(proposal, so_far, self.now)?;
        if part.compares.len() + 2 > MAX_OPS
            || part.ops.len() + 1 > MAX_OPS
            || part.bytes > MAX_TXN_BYTES - SPARE_BYTES
        {
            return Err(CommitError::TooLarge);
        }
        let namespaces = self.sequences.len() + 1;
        // Behind a group in flight whose success could not be seen, it waits for the next round.
        let Some(behind) = self.behind(proposal.line.as_ref()) else { return Ok(false) };
        let behind_bytes = behind.as_ref().map_or(0, compared);
        let guards = namespaces + usize::from(behind.is_some());
        let fits = self.txn.compares.len() + part.compares.len() + guards < MAX_OPS
            && self.txn.ops.len() + part.ops.len() + namespaces <= MAX_OPS
            && self.bytes + part.bytes + behind_bytes <= MAX_TXN_BYTES - SPARE_BYTES;
        let other_term = self.term.is_some() && proposal.term.is_some() && self.term != proposal.term;
        // All compares of a transaction hold at its start: what this one has seen must not be written by one before it in there.
        let mut touched = part.keys.iter().chain(&part.seen);
        if !fits || other_term || touched.any(|key| self.written.contains(key)) {
            return Ok(false);
        }
        if let (Some(term), false) = (proposal.term, self.term.is_some() || !self.fence.compares) {
            let revision = bellwether_store::Revision(term.get().saturating_sub(self.fence.term_base));
            self.txn.compares.push(Compare::Created { key: key_text::LEADER.into(), revision });
            self.guards.push(CompareOrigin::Term);
            self.term = Some(term);
        }
        if let Some(behind) = behind {
            self.txn.compares.push(behind);
            self.guards.push(CompareOrigin::Line);
            self.bytes += behind_bytes;
        }
        if let Some(line) = &proposal.line {
            // All of a group is committed or nothing: any part of it proves the others.
            let before = self.lines.extract_if(.., |(other, _)| other.is(line)).find_map(|(_, proof)| proof);
            self.lines.push((line.clone(), part.proof.take().or(before)));
        }
        self.guards.extend(part.compares.iter().map(|_| CompareOrigin::Proposal(self.count)));
        self.txn.compares.append(&mut part.compares);
        self.txn.ops.append(&mut part.ops);
        self.written.append(&mut part.keys);
        self.bytes += part.bytes;
        self.count += 1;
        if after > so_far {
            self.sequences.insert(proposal.namespace.clone(), (first, after));
        }
        Ok(true)
    }

    /// The compare for earlier groups of the pipeline, for its first proposal in this group, if there is one; `None` if nothing can be
    /// compared.
    #[expect(clippy::option_option, reason = "whether it may follow, and what then has to hold")]
    fn behind(&self, line: Option<&CommitPipeline>) -> Option<Option<Compare>> {
        let first = line.filter(|line| !self.lines.iter().any(|(other, _)| other.is(line)));
        match first.and_then(|line| self.ahead.of(line)) {
            None => Some(None),
            Some(proof) => proof.clone().map(Some),
        }
    }

    /// Adds the event numbering, records the last changes of its pipelines, and returns the transaction.
    pub(super) fn close(&mut self, ahead: &mut PipelineHeads) -> Txn {
        for (line, proof) in self.lines.drain(..) {
            ahead.note(line, proof);
        }
        for (index, (namespace, (before, after))) in self.sequences.iter().enumerate() {
            let key = key_text::sequence(namespace);
            let guard = match before.get() {
                0 => Compare::Absent { key: key.clone() },
                number => Compare::Value { key: key.clone(), value: number.to_string().into() },
            };
            self.txn.compares.push(guard);
            self.guards.push(CompareOrigin::Sequence(index));
            self.txn.ops.push(Op::Put { key, value: after.to_string().into(), lease: None });
        }
        std::mem::take(&mut self.txn)
    }
}

/// A proposal's part of a transaction.
struct ProposalPart {
    compares: Vec<Compare>,
    ops: Vec<Op>,
    /// What it writes.
    keys: BTreeSet<Bytes>,
    /// What it compares besides.
    seen: Vec<Bytes>,
    /// A change that only this proposal makes: an event or an order, which have numbers of their own. A record that is gone, or has a
    /// certain value, may be so because of somebody else.
    proof: Option<Compare>,
    bytes: usize,
}

impl ProposalPart {
    fn new(proposal: &Proposal) -> Result<Self, CommitError> {
        let (compares, ops, keys, seen) = (Vec::new(), Vec::new(), BTreeSet::new(), Vec::new());
        let mut part = Self { compares, ops, keys, seen, proof: None, bytes: 0 };
        for (key, revision) in &proposal.seen {
            let key = key_text::of_any(&proposal.namespace, key);
            part.compares.push(unchanged(&key, *revision));
            part.seen.push(key);
        }
        for (write, revision) in &proposal.writes {
            let key = key_text::of_any(&proposal.namespace, &write.key());
            part.compares.extend(guard(&key, write, *revision));
            part.bytes += 2 * key.len();
            match write {
                Write::Put(record) => {
                    let is_numbered = matches!(&**record, AnyRecord::Namespaced(Record::Order(..)));
                    part.put(key, encoding::write_any(record), is_numbered)?;
                }
                Write::Delete(_) => {
                    part.keys.insert(key.clone());
                    part.ops.push(Op::Delete { key });
                }
            }
        }
        Ok(part)
    }

    /// Appends the proposal's events, numbered after `last`; returns the last number used.
    fn number(
        &mut self,
        proposal: &Proposal,
        last: Sequence,
        now: Timestamp,
    ) -> Result<Sequence, CommitError> {
        let mut sequence = last;
        for ProposedEvent { actor, draft, caused_by } in &proposal.events {
            sequence = sequence.next();
            let caused_by = caused_by.map(|by| match by {
                CausedBy::Event(number) => number,
                CausedBy::Earlier(position) => Sequence::new(last.next().get() + position as u64),
            });
            let event = Event {
                sequence,
                time: now,
                actor: actor.clone(),
                kind: draft.kind.to_owned(),
                subject: draft.subject.clone(),
                before: draft.before.clone(),
                after: draft.after.clone(),
                cause: draft.cause.clone(),
                caused_by,
            };
            let key = key_text::of(&proposal.namespace, &Key::Event(sequence));
            self.bytes += key.len();
            self.put(key, encoding::write(&Record::Event(event)), true)?;
        }
        Ok(sequence)
    }

    fn put(
        &mut self,
        key: Bytes,
        value: Result<Bytes, ShapeError>,
        is_numbered: bool,
    ) -> Result<(), CommitError> {
        let value = value.map_err(CommitError::Shape)?;
        self.bytes += value.len();
        if is_numbered {
            self.proof = Some(Compare::Value { key: key.clone(), value: value.clone() });
        }
        self.keys.insert(key.clone());
        self.ops.push(Op::Put { key, value, lease: None });
        Ok(())
    }
}

/// Bytes of a compare.
fn compared(compare: &Compare) -> usize {
    match compare {
        Compare::Value { key, value } => key.len() + value.len(),
        Compare::Absent { key } | Compare::Modified { key, .. } | Compare::Created { key, .. } => key.len(),
    }
}

/// The compare for a write that was decided on `revision`. Events never change, so that deleting one needs
/// none.
fn guard(key: &Bytes, write: &Write, revision: Revision) -> Option<Compare> {
    match write {
        Write::Delete(AnyKey::Namespaced(Key::Event(_))) => None,
        Write::Put(_) | Write::Delete(_) => Some(unchanged(key, revision)),
    }
}

/// Compares that a record is unchanged since `revision`, or absent if that is zero.
fn unchanged(key: &Bytes, revision: Revision) -> Compare {
    match revision {
        Revision::ZERO => Compare::Absent { key: key.clone() },
        revision => {
            Compare::Modified { key: key.clone(), revision: bellwether_store::Revision(revision.get()) }
        }
    }
}
