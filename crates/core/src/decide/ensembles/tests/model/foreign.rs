//! Members of the store that are not of the ensemble: something else runs them, and they come, go and die.

use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::vec::Vec;

use super::Installation;
use super::store::{Entry, Store};
use crate::records::annotation::Annotation;
use crate::records::ensemble::EnsembleSize;
use crate::records::ensemble_adoption::{Adoption, AdoptionSource};
use crate::words::counter::MemberNumber;
use crate::words::name::NodeName;

/// What happens to a member that is not of the ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum ForeignAct {
    /// It does not answer any more.
    Stop,
    /// It answers again, unless it was lost.
    Start,
    /// It is gone for good.
    Lose,
    /// A person removes it by hand, as far as the store lets them.
    RemoveByHand,
    /// A person adds one by hand, as far as the store lets them.
    AddByHand,
    /// A person asks that it is removed.
    Ask,
}

/// A member that is not of the ensemble.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Foreign {
    answers: bool,
    is_whole: bool,
}

impl Installation {
    /// Nodes beside a store of so many members that something else runs.
    pub(in super::super) fn adopting(nodes: usize, foreign: usize, size: EnsembleSize) -> Self {
        let mut installation = Self::new(nodes, size);
        for _ in 0..foreign {
            installation.store.insert_foreign();
        }
        let endpoints = BTreeSet::from(["http://10.0.0.9:2379".parse().unwrap()]);
        let source = AdoptionSource { endpoints };
        installation.members.adoption = Some(Adoption::of(&source));
        installation.ensemble.adopt = Some(source);
        installation
    }

    /// The ids of the members that are not of the ensemble.
    pub(in super::super) fn foreign_ids(&self) -> Vec<String> {
        self.store.foreign.keys().cloned().collect()
    }

    pub(in super::super) fn foreign(&mut self, act: ForeignAct, which: usize) {
        self.seen();
        let ids = self.foreign_ids();
        let id = ids.get(which % ids.len().max(1)).cloned();
        if act == ForeignAct::AddByHand && !ids.is_empty() {
            let has_learner = self.store.entries.values().any(|entry| !entry.votes);
            if !has_learner && self.store.working() == self.store.voters() && ids.len() < 4 {
                self.store.insert_foreign();
            }
        }
        let Some(id) = id else { return };
        let known = self.store.foreign.get_mut(&id).unwrap();
        match act {
            ForeignAct::Stop => known.answers = false,
            ForeignAct::Start => known.answers = known.is_whole,
            ForeignAct::Lose => (known.answers, known.is_whole) = (false, false),
            ForeignAct::RemoveByHand => {
                if self.store.has_quorum() && ids.len() > 1 {
                    self.store.remove(&id);
                }
            }
            ForeignAct::AddByHand => {}
            ForeignAct::Ask => self.ask_for(&id),
        }
    }

    /// A person asks that a member is removed that is not of the ensemble.
    pub(in super::super) fn ask_for(&mut self, id: &String) {
        let asked = Annotation::of("ann".parse().unwrap(), self.at());
        let Some(adoption) = &mut self.members.adoption else { return };
        if adoption.foreign.contains_key(id) {
            adoption.removals.insert(id.clone(), asked);
            self.store.asked.insert(id.clone());
        }
    }

    /// A person asks for the removal of those that are gone for good.
    pub(super) fn ask_for_lost(&mut self) {
        let lost = self.store.foreign.iter().filter(|(_, foreign)| !foreign.is_whole);
        for id in lost.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.ask_for(&id);
        }
    }

    pub(super) fn has_removals(&self) -> bool {
        self.members.adoption.as_ref().is_some_and(|adoption| !adoption.removals.is_empty())
    }

    /// Whether a node reads the store, and changes it, through another member that it is told of: one that was there before, or one of the ensemble.
    pub(super) fn reads_outside(&self, name: &NodeName) -> bool {
        let host = self.hosts.get(name).filter(|host| host.is_heard());
        let Some(told) = host.and_then(|host| host.order.as_ref()?.adoption.as_ref()) else { return false };
        let is_told = |entry: &Entry| {
            let of = format!("{}:2379", entry.node);
            told.endpoints.iter().any(|endpoint| endpoint.authority() == of)
        };
        let mut own = self.store.entries.iter();
        let answers = self.store.foreign.values().any(|foreign| foreign.answers)
            || own.any(|(id, entry)| self.store.alive.contains(id) && is_told(entry));
        self.store.has_quorum() && answers
    }
}

impl Store {
    fn insert_foreign(&mut self) {
        let node: NodeName = format!("f-{}", self.given).parse().unwrap();
        let url = format!("http://{node}:2380");
        let id = self.insert(Entry { node, url, number: MemberNumber::ZERO, votes: true });
        self.foreign.insert(id, Foreign { answers: true, is_whole: true });
    }

    /// Those that are not lost answer again.
    pub(super) fn mend_foreign(&mut self) {
        for foreign in self.foreign.values_mut() {
            foreign.answers = foreign.is_whole;
        }
    }

    /// Which members have data and which answer, of the ensemble and of others.
    pub(super) fn see(&mut self, mut whole: BTreeSet<String>, mut alive: BTreeSet<String>) {
        let of = |is: fn(&Foreign) -> bool| {
            let found = self.foreign.iter().filter(|(_, foreign)| is(foreign));
            found.map(|(id, _)| id.clone()).collect::<Vec<_>>()
        };
        whole.extend(of(|foreign| foreign.is_whole));
        alive.extend(of(|foreign| foreign.answers));
        (self.whole, self.alive) = (whole, alive);
        self.elect();
    }
}
