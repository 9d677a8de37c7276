//! Which event led to another one: the chain from a store that is down to the run that mends it. Decided when events are written, from
//! the newest events and from what is written with them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::records::event::{CausedBy, Event, EventDraft};
use crate::records::key::{AnyRecord, Record};
use crate::records::reaction::{ConditionSubject, ReactionFiring};
use crate::verdict::Write;
use crate::words::counter::Sequence;
use crate::words::name::{Actor, ClusterName, EntityName, NodeName};
use crate::world::fleet::Fleet;

/// For each event that is about to be written: which one led to it, if one did and is among the newest.
///
/// `writes` are what is written with them.
#[must_use]
pub fn causes<'a>(
    fleet: &Fleet,
    events: &[(Actor, EventDraft)],
    writes: impl Iterator<Item = &'a Write> + Clone,
) -> Vec<Option<CausedBy>> {
    let cause = |at: usize| {
        let (actor, event) = events.get(at)?;
        let new = NewEvent { fleet, earlier: events.get(..at)?, actor, event };
        match event.kind {
            "reaction.fired" | "reaction.failed" => {
                let name = event.subject.strip_prefix("reaction/")?;
                new.condition(newest_firing(name, writes.clone())?).map(CausedBy::Event)
            }
            _ => new.cause(),
        }
    };
    (0..events.len()).map(cause).collect()
}

/// What the reaction of this name did last, as it is written.
fn newest_firing<'a>(name: &str, mut writes: impl Iterator<Item = &'a Write>) -> Option<&'a ReactionFiring> {
    writes.find_map(|write| {
        if let Write::Put(record) = write
            && let AnyRecord::Namespaced(Record::Reaction(reaction)) = &**record
        {
            return reaction.firings.last().filter(|_| reaction.name.as_str() == name);
        }
        None
    })
}

/// An event that is about to be written.
struct NewEvent<'a> {
    fleet: &'a Fleet,
    /// Those of the same transaction before it.
    earlier: &'a [(Actor, EventDraft)],
    actor: &'a Actor,
    event: &'a EventDraft,
}

impl NewEvent<'_> {
    fn cause(&self) -> Option<CausedBy> {
        let event = self.event;
        let found = match event.subject.split_once('/') {
            Some(("rollout", of)) => return self.of_rollout(of.rsplit_once('/')?.0),
            Some(("target", of)) => {
                let (entity, target) = of.split_once('/')?;
                self.of_target(entity, target)
            }
            Some(("store", of)) if event.kind == "store.unknown" => self.lost_node(of.split_once('/')?.0),
            Some(("cluster", _)) if event.kind == "cluster.member_gone" => {
                return self.earlier(|event| event.kind == "cluster.members_accepted");
            }
            Some(("cluster", name)) => self.of_cluster(name),
            Some(("node", _)) if matches!(event.kind, "node.drained" | "node.drain_failed") => {
                self.newest(&event.subject, |kind| kind == "node.drain_requested")
            }
            Some(("entity", name)) if matches!(event.kind, "run.undone" | "run.nothing_to_undo") => {
                self.of_rollouts(name, |_| true)
            }
            Some(("sink", _)) if event.kind == "sink.dead_lettered" => {
                event.after.as_ref()?.parse().ok().map(Sequence::new)
            }
            _ => None,
        };
        found.map(CausedBy::Event).or_else(|| self.of_actor())
    }

    /// What led to what this actor does: the firing of a reaction, the last change of a schedule, the run of a job.
    fn of_actor(&self) -> Option<CausedBy> {
        match self.actor.as_str().split_once('/')? {
            ("reaction", _) => self.earlier(|event| event.kind == "reaction.fired"),
            ("schedule", _) => {
                let set = |kind: &str| matches!(kind, "schedule.created" | "schedule.changed");
                self.newest(self.actor.as_str(), set).map(CausedBy::Event)
            }
            ("job", job) => self.run(job.split('/').next()?).map(CausedBy::Event),
            _ => None,
        }
    }

    /// What started a run: an operation, or that it undoes another one.
    fn run(&self, name: &str) -> Option<Sequence> {
        let started = |name: &str| self.newest(&format!("entity/{name}"), |kind| kind == "run.started");
        started(name).or_else(|| {
            let run = self.fleet.runs.get(&EntityName::parse(name).ok()?)?;
            let undone = run.value.undoes.as_ref()?;
            self.newest(&format!("entity/{undone}"), |kind| kind == "run.undone")
        })
    }

    /// A rollout begins because of the last change of its entity. Later it goes on as its targets have it, or as a person says.
    fn of_rollout(&self, entity: &str) -> Option<CausedBy> {
        if self.event.kind == "rollout.started" {
            let changed = self.newest(&format!("entity/{entity}"), |_| true);
            return changed.or_else(|| self.run(entity)).map(CausedBy::Event);
        }
        let target = format!("target/{entity}/");
        let earlier = self.earlier(|event| {
            event.subject.starts_with(&target) || event.subject == self.event.subject && is_turn(event.kind)
        });
        earlier.or_else(|| {
            let turn = self.newest(&self.event.subject, is_turn);
            turn.max(self.request(entity)).map(CausedBy::Event)
        })
    }

    /// What became of a target: because its node is lost, or because of where its rollout goes.
    fn of_target(&self, entity: &str, target: &str) -> Option<Sequence> {
        let lost = (self.event.kind == "target.unreachable").then(|| self.lost_node(target)).flatten();
        lost.or_else(|| self.of_rollouts(entity, is_turn).max(self.request(entity)))
    }

    /// The newest event of such a kind about the newest rollout of an entity.
    fn of_rollouts(&self, entity: &str, is: impl Fn(&str) -> bool) -> Option<Sequence> {
        let board = self.fleet.boards.get(&EntityName::parse(entity).ok()?)?;
        self.newest(&format!("rollout/{entity}/{}", board.progress().last), is)
    }

    /// The newest request of a person that is about the rollout of an entity.
    fn request(&self, entity: &str) -> Option<Sequence> {
        let asked = |kind: &str| kind.ends_with("_requested") || kind == "run.retried";
        self.newest(&format!("entity/{entity}"), asked)
    }

    fn lost_node(&self, node: &str) -> Option<Sequence> {
        let subject = format!("node/{node}");
        let lost = self.newest(&subject, |kind| kind == "node.unreachable");
        lost.filter(|lost| self.newest(&subject, |kind| kind == "node.up").is_none_or(|up| up < *lost))
    }

    /// What is true of the data stores of a cluster follows from what a member said since it was told last. A role moves because of
    /// its former holder.
    fn of_cluster(&self, name: &str) -> Option<Sequence> {
        match self.event.kind {
            "cluster.condition_raised" | "cluster.condition_cleared" | "cluster.primary_changed" => {
                let members = self.fleet.membership.members(&ClusterName::parse(name).ok()?);
                let is = |kind: &str| self.leads_to_condition(kind);
                let said =
                    |node: &NodeName| self.fleet.event_index.newest_below(&format!("store/{node}/"), is);
                let before = self.last_about_condition();
                members.filter_map(said).max().filter(|said| before.is_none_or(|before| before < *said))
            }
            "cluster.leader_changed" | "cluster.manager_moved" => {
                let former = self.event.before.as_ref()?;
                let lost = |kind: &str| matches!(kind, "node.unreachable" | "node.decommissioned");
                self.newest(&format!("node/{former}"), lost)
            }
            _ => None,
        }
    }

    /// Whether an event of this kind about a data store leads to what is now true of its cluster.
    fn leads_to_condition(&self, kind: &str) -> bool {
        let is_state = matches!(kind, "store.up" | "store.down" | "store.unknown" | "store.removed");
        let is_role = matches!(kind, "shard.role_changed" | "shard.added" | "shard.removed");
        match (self.event.before.as_deref(), self.event.after.as_deref()) {
            _ if self.event.kind == "cluster.primary_changed" => is_role || kind == "store.up",
            (_, Some("store_down")) => kind == "store.down",
            (_, Some("store_unknown")) => kind == "store.unknown",
            (_, Some("no_primary" | "primary_unknown")) => is_role || is_state && kind != "store.up",
            (Some(condition), _) | (_, Some(condition)) => {
                let also = match condition {
                    "mixed_versions" => kind == "store.version_changed",
                    "several_cluster_ids" => kind == "store.cluster_id_changed",
                    "upstream_not_primary" => {
                        is_role || matches!(kind, "shard.replication_changed" | "store.members_changed")
                    }
                    "members_differ" => kind == "store.members_changed",
                    _ => is_role,
                };
                is_state || also
            }
            (None, None) => false,
        }
    }

    /// The last event that told of the same condition: what led to the present one is newer.
    fn last_about_condition(&self) -> Option<Sequence> {
        let of = |before: &Option<String>, after: &Option<String>| before.clone().or_else(|| after.clone());
        let condition = of(&self.event.before, &self.event.after);
        let is = |event: &Event| {
            event.subject == self.event.subject
                && match self.event.kind {
                    "cluster.primary_changed" => event.kind == self.event.kind,
                    _ => {
                        event.kind.starts_with("cluster.condition_")
                            && of(&event.before, &event.after) == condition
                    }
                }
        };
        self.fleet.events.iter().rev().find(|(_, event)| is(event)).map(|(number, _)| *number)
    }

    /// What raised the condition for which a reaction fired.
    fn condition(&self, ReactionFiring { condition, subject, .. }: &ReactionFiring) -> Option<Sequence> {
        match subject {
            ConditionSubject::Node(node) => self.lost_node(node.as_str()),
            ConditionSubject::Store(..) => {
                let kind = condition.replacen('_', ".", 1);
                self.newest(&format!("{subject}"), |of| of == kind)
            }
            ConditionSubject::Cluster(cluster, probe) => {
                let (about, probe) = (format!("cluster/{cluster}"), format!("{probe}: "));
                let is = |event: &Event| {
                    event.kind == "cluster.condition_raised"
                        && event.subject == about
                        && event.after.as_ref() == Some(condition)
                        && event.cause.starts_with(&probe)
                };
                self.fleet.events.iter().rev().find(|(_, event)| is(event)).map(|(number, _)| *number)
            }
        }
    }

    fn newest(&self, subject: &str, is: impl Fn(&str) -> bool) -> Option<Sequence> {
        self.fleet.event_index.newest(subject, is)
    }

    fn earlier(&self, is: impl Fn(&EventDraft) -> bool) -> Option<CausedBy> {
        self.earlier.iter().rposition(|(_, event)| is(event)).map(CausedBy::Earlier)
    }
}

/// Whether a rollout goes another way with an event of this kind: what became of its targets follows from it.
fn is_turn(kind: &str) -> bool {
    matches!(kind, "rollout.started" | "rollout.rolling_back" | "rollout.resumed")
}

#[cfg(test)]
mod tests;
