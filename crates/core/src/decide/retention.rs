//! Retention: removes old events, and records of removed entities. The history of an existing entity is kept.

use alloc::vec;
use alloc::vec::Vec;

use crate::records::key::Key;
use crate::verdict::{Changeset, Verdict, Write};
use crate::words::counter::Sequence;
use crate::words::name::{EntityName, NodeName, TargetName};
use crate::world::fleet::Fleet;
use crate::world::fold::observations::of_entity;

/// Most events kept per namespace: about a gigabyte at worst, enough for years of a fleet with few changes.
pub const EVENTS_KEPT: u64 = 1_000_000;

/// Most removals in one verdict; the rest follows in the next pass.
const AT_ONCE: usize = 512;

/// Writes per changeset, well below the limit of a commit.
const PER_ATOM: usize = 64;

/// Removes records that are no longer needed, a bounded number at a time.
///
/// Woken by: events and removed entities.
#[must_use]
pub fn decide(fleet: &Fleet, keep: u64) -> Verdict {
    let last = fleet.last_event().get();
    let oldest = fleet.oldest_event.get();
    let first_kept = last.saturating_sub(keep).saturating_add(1);
    let old = (oldest.max(1)..first_kept).take(AT_ONCE).map(|number| Key::Event(Sequence::new(number)));
    let orphans = fleet.orphans.iter().flat_map(|name| fleet.leftovers(name)).take(AT_ONCE);
    let mut keys: Vec<Key> = orphans.collect();
    if oldest > 0 {
        keys.extend(old);
    }
    let changesets = keys
        .chunks(PER_ATOM)
        .map(|keys| Changeset { writes: keys.iter().cloned().map(Write::delete).collect(), events: vec![] });
    Verdict { changesets: changesets.collect(), wake: None }
}

impl Fleet {
    /// Records that are left of a removed entity.
    pub(crate) fn leftovers<'a>(&'a self, name: &'a EntityName) -> impl Iterator<Item = Key> + 'a {
        let targets = of_entity(&self.targets, name);
        let targets = targets.map(|(target, _)| Key::Target(name.clone(), target.clone()));
        let externals = of_entity(&self.externals, name);
        let externals = externals.map(|(target, _)| Key::ExternalTarget(name.clone(), target.clone()));
        let controllers = self.controllers.get(name).map(|_| Key::Controllers(name.clone()));
        let rollouts = self.rollouts.range((name.clone(), Default::default())..).map(|(key, _)| key);
        let rollouts = rollouts.take_while(move |(entity, _)| entity == name);
        let rollouts = rollouts.map(|(entity, number)| Key::Rollout(entity.clone(), *number));
        let jobs = self.jobs_of(name).map(|kept| Key::Jobs(name.clone(), kept.value.node.clone()));
        let lists = self.lists_of(name).map(|kept| Key::TaskList(name.clone(), kept.value.node.clone()));
        let progress = self.progresses.get(name).map(|_| Key::Progress(name.clone()));
        let answers = self.answers.get(name).map(|_| Key::HookAnswers(name.clone()));
        // Before what names their nodes: without that, nobody would find them.
        self.logs_left(name)
            .chain(targets)
            .chain(externals)
            .chain(jobs)
            .chain(lists)
            .chain(rollouts)
            .chain(progress)
            .chain(answers)
            .chain(controllers)
    }

    /// The logs of an entity on the nodes that were assigned it, or began a job of it.
    fn logs_left<'a>(&'a self, name: &'a EntityName) -> impl Iterator<Item = Key> + 'a {
        let assigned = of_entity(&self.targets, name).map(|(target, _)| target.clone());
        let assigned = assigned.filter_map(|target| NodeName::parse(target.as_str()).ok());
        let is_assigned =
            |node: &NodeName| self.targets.contains_key(&(name.clone(), TargetName::from(node)));
        let began = self.jobs_of(name).map(|kept| kept.value.node.clone());
        let nodes = assigned.chain(began.filter(move |node| !is_assigned(node)));
        nodes.flat_map(move |node| {
            let logs = self.logs_of(&node).map(|kept| &kept.value).filter(|log| log.entity == *name);
            let keys = logs.map(|log| Key::Log(log.node.clone(), log.category.clone(), log.entity.clone()));
            keys.collect::<Vec<_>>()
        })
    }
}

#[cfg(test)]
mod tests;
