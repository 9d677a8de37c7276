//! A model of the members with a client that writes.

use core::cmp::Reverse;
use std::collections::BTreeMap;
use std::format;
use std::string::ToString;
use std::vec::Vec;

use super::super::*;
use crate::decide::placement::{CandidateNode, EnsembleSize};
use crate::words::name::NodeName;
use crate::words::time::Span;

pub(super) const FAILOVER: Span = Span::from_secs(30);
pub(super) const QUIET: Span = Span::from_secs(3_600);

pub(super) fn at(second: u64) -> Timestamp {
    Timestamp::from_millis(second * 1_000)
}

/// What really runs on a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Process {
    pub(super) is_dead: bool,
    pub(super) agent_is_dead: bool,
    /// Since when it is not heard of.
    pub(super) silent: Option<u64>,
    pub(super) history: u32,
    /// Whom it follows.
    pub(super) follows: Option<MemberNumber>,
    pub(super) offset: u64,
    pub(super) has_data: bool,
}

/// An ensemble with a writing client.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) spec: PrimarySpec,
    pub(super) places: CandidateNodes,
    pub(super) members: BTreeMap<MemberNumber, (NodeName, Process, Option<u64>)>,
    pub(super) record: PrimaryRecord,
    pub(super) last: MemberNumber,
    pub(super) history: u32,
    pub(super) now: u64,
    /// The newest write that was acknowledged in each history.
    pub(super) acknowledged: u64,
    pub(super) promotions: u32,
}

impl Model {
    pub(super) fn new(nodes: usize, size: u32, writes_needed: u32) -> Self {
        let place = |number: usize| {
            (
                format!("n-{number}").parse().unwrap(),
                CandidateNode { matches: true, ..CandidateNode::default() },
            )
        };
        Self {
            spec: PrimarySpec {
                name: "cache".to_string(),
                size: EnsembleSize::Number(size),
                failover_after: FAILOVER,
                join_within: Span::from_secs(60),
                writes_needed,
                copies_needed: writes_needed,
                quiet: QUIET,
                replaced: std::collections::BTreeSet::new(),
            },
            places: (0..nodes).map(place).collect(),
            members: BTreeMap::new(),
            record: PrimaryRecord::default(),
            last: MemberNumber::ZERO,
            history: 0,
            now: 0,
            acknowledged: 0,
            promotions: 0,
        }
    }

    pub(super) fn primary(&mut self) -> Option<&mut Process> {
        let number = self.record.primary?;
        self.members.get_mut(&number).map(|(_, process, _)| process)
    }

    pub(super) fn instances(&self) -> Instances {
        let of = |(number, (node, process, joining)): (&MemberNumber, &(NodeName, Process, Option<u64>))| {
            let state = match (process.silent, joining) {
                (_, Some(since)) => InstanceState::Joining { since: at(*since) },
                (Some(since), None) => InstanceState::Silent { since: at(since) },
                (None, None) => InstanceState::Up,
            };
            let source = process.follows.and_then(|of| self.members.get(&of));
            let data = HistoryPosition {
                history: process.history.to_string(),
                former: None,
                offset: Some(process.offset),
            };
            let instance = Instance {
                node: node.clone(),
                state,
                is_primary: self.record.primary == Some(*number),
                follows: process.follows,
                streams: !process.is_dead && source.is_some_and(|(_, source, _)| !source.is_dead),
                data: process.has_data.then_some(data),
                is_whole: process.has_data,
                may_be_cut: false,
                blocked_since: None,
                refuses_orders: false,
                cut_since: None,
                keys: Some(process.offset),
            };
            (*number, instance)
        };
        self.members.iter().map(of).collect()
    }

    pub(super) fn step(&self) -> PrimaryStep {
        next_step(&self.spec, &self.places, (&self.record, &self.instances()), at(self.now))
    }

    pub(super) fn act(&mut self) -> PrimaryStep {
        let step = self.step();
        assert_eq!(step, self.step());
        match &step {
            PrimaryStep::Add(node) => {
                assert!(self.members.values().all(|(other, _, _)| other != node));
                self.last = self.last.next();
                self.members.insert(self.last, (node.clone(), Process::default(), Some(self.now)));
            }
            PrimaryStep::Remove(number, _) => {
                assert_ne!(self.record.primary, Some(*number), "the primary is never removed");
                self.members.remove(number);
            }
            PrimaryStep::Follow(numbers, of) => {
                for number in numbers {
                    let (_, process, _) = self.members.get_mut(number).unwrap();
                    assert!(process.silent.is_none(), "nobody who is silent obeys");
                    process.follows = *of;
                }
            }
            PrimaryStep::HandOver(to) => self.hand_over(*to),
            PrimaryStep::Promote(number) => self.promote(*number),
            PrimaryStep::Cut(_) | PrimaryStep::Wait(_) | PrimaryStep::Rest => {}
        }
        step
    }

    /// The replica gets what is left, then they change places.
    pub(super) fn hand_over(&mut self, to: MemberNumber) {
        let from = self.record.primary.unwrap();
        let offset = self.primary().unwrap().offset;
        self.members.get_mut(&to).unwrap().1.offset = offset;
        self.promote(to);
        (self.record.failed_over, self.record.handover) = (None, None);
        self.members.get_mut(&from).unwrap().1.follows = Some(to);
    }

    pub(super) fn promote(&mut self, number: MemberNumber) {
        let is_first = self.record.primary.is_none();
        self.history += 1;
        let (history, acknowledged) = (self.history, self.acknowledged);
        let (_, process, _) = self.members.get_mut(&number).unwrap();
        assert!(process.silent.is_none());
        assert!(is_first || process.offset >= acknowledged, "an acknowledged write is lost: {self:?}");
        (process.history, process.has_data, process.follows) = (history, true, None);
        self.acknowledged = self.acknowledged.min(process.offset);
        self.record.primary = Some(number);
        self.record.history = Some(history.to_string());
        self.promotions += 1;
        if !is_first {
            self.record.failed_over = Some(at(self.now));
        }
    }

    /// The primary takes a write; it is acknowledged once enough replicas have it, see [`Self::copies`].
    pub(super) fn write(&mut self) {
        let Some(primary) = self.primary().filter(|primary| !primary.is_dead) else { return };
        primary.offset += 1;
    }

    /// A replica gets what its primary has.
    pub(super) fn copies(&mut self, which: usize) {
        let Some(number) = self.members.keys().nth(which % self.members.len().max(1)).copied() else {
            return;
        };
        let Some(of) = self.members[&number].1.follows else { return };
        let Some(source) = self.members.get(&of).map(|(_, source, _)| source.clone()) else { return };
        let (_, replica, _) = self.members.get_mut(&number).unwrap();
        if !source.is_dead && source.has_data && !replica.is_dead {
            (replica.offset, replica.history, replica.has_data) = (source.offset, source.history, true);
        }
        self.acknowledge();
    }

    pub(super) fn acknowledge(&mut self) {
        let (Some(number), needed) = (self.record.primary, self.spec.writes_needed as usize) else { return };
        let Some((_, primary, _)) = self.members.get(&number) else { return };
        if needed == 0 || primary.is_dead {
            return;
        }
        let have = self.members.values().filter(|(_, process, _)| {
            process.follows == Some(number)
                && process.history == primary.history
                && process.has_data
                && !process.is_dead
        });
        let mut have: Vec<u64> = have.map(|(_, process, _)| process.offset).collect();
        have.sort_by_key(|offset| Reverse(*offset));
        if let Some(offset) = have.get(needed - 1) {
            self.acknowledged = self.acknowledged.max(*offset);
        }
    }

    pub(super) fn change(&mut self, which: usize, change: impl FnOnce(&mut Process)) {
        let (now, which) = (self.now, which % self.members.len().max(1));
        if let Some((_, process, joining)) = self.members.values_mut().nth(which) {
            change(process);
            match process.is_dead || process.agent_is_dead {
                true => drop(process.silent.get_or_insert(now)),
                false => (process.silent, *joining) = (None, None),
            }
        }
    }

    pub(super) fn joins(&mut self) {
        for (_, process, joining) in self.members.values_mut() {
            if process.silent.is_none() {
                *joining = None;
            }
        }
    }

    pub(super) fn settle(&mut self) -> PrimaryStep {
        for _ in 0..200 {
            self.now += 1;
            self.joins();
            (0..self.members.len()).for_each(|which| self.copies(which));
            let step = self.act();
            let is_done = matches!(step, PrimaryStep::Rest | PrimaryStep::Wait(_));
            if is_done && self.members.values().all(|(_, _, joining)| joining.is_none()) {
                return step;
            }
        }
        panic!("it does not come to rest: {self:?}");
    }
}
