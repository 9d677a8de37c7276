//! What the data stores of targets keep from starting: followers first, and never fewer voters than a quorum by our own hand. Owns the
//! texts about it.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::pass::Pass;
use crate::records::policy::ordering::TargetOrder;
use crate::records::probes::StoreState;
use crate::rollout::board::phase::QUEUED;
use crate::rollout::stores::{StoreEnvironment, StoreRole, StoreStanding, quorum};
use crate::words::name::{ClusterName, NodeName, ProbeName, TargetName};
use crate::words::plural::plural;
use crate::words::time::Timestamp;

/// Most names in one reason.
const NAMED: usize = 5;

/// Why nothing starts while the servers have not listened to every node yet.
const UNHEARD: &str = "the servers have just begun to listen: nobody knows yet which data stores are up";

/// What data stores keep targets from starting.
pub(super) struct StoreGate<'a> {
    stores: &'a StoreEnvironment,
    probe: &'a ProbeName,
    /// By cluster: the targets that are to be updated or are in flight.
    open: BTreeMap<&'a ClusterName, Vec<TargetName>>,
    in_flight: BTreeSet<TargetName>,
    /// Whether followers come first: for updates only, since what is bad is rolled back in any order.
    in_order: bool,
    needs_quorum: bool,
    /// Until when what is known of the stores may be what another leader, or nobody, had heard.
    unheard_until: Option<Timestamp>,
}

/// Why a target must not start now, in one line for people.
pub(super) enum StoreBlock {
    /// For a reason of its own, or of its cluster.
    Own(String),
    /// Others come first.
    Turn(String),
}

/// The class of a target: those of a lower one come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StoreClass {
    /// It is down, or of another cluster: its update costs this one nothing.
    Down,
    /// It is up, with this role.
    Up(StoreRole),
}

impl<'a> StoreGate<'a> {
    /// The gate of a policy that names a store; `None` for another one. `in_order` for updates.
    pub(super) fn of(pass: &Pass<'a>, in_order: bool) -> Option<Self> {
        let policy = &pass.board.entity().policy;
        let in_order = in_order && policy.order == TargetOrder::FollowersFirst;
        let stores = pass.environment.stores.as_deref()?;
        let mut gate = Self {
            stores,
            probe: stores.probe.as_ref()?,
            open: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            in_order,
            needs_quorum: policy.quorum,
            unheard_until: Some(pass.environment.watch.settled())
                .filter(|settled| *settled > pass.now && (policy.quorum || in_order)),
        };
        for member in pass.board.tree().iter() {
            if member.place.in_flight {
                gate.in_flight.insert(member.name.clone());
            } else if !QUEUED.has(member.place.phase) {
                continue;
            }
            if let Some(cluster) = stores.clusters.get(&member.name) {
                gate.open.entry(cluster).or_default().push(member.name.clone());
            }
        }
        Some(gate)
    }

    /// Time from which on the stores are known.
    pub(super) const fn until(&self) -> Option<Timestamp> {
        self.unheard_until
    }

    /// Why a target must not start now; `None` if it may.
    pub(super) fn reason(&self, target: &TargetName) -> Option<StoreBlock> {
        self.own_reason(target).map(StoreBlock::Own).or_else(|| {
            let cluster = self.stores.clusters.get(target).filter(|_| !self.in_flight.contains(target))?;
            self.too_early(cluster, target, self.standing(cluster, target)?).map(StoreBlock::Turn)
        })
    }

    /// Why a target must not start now, whatever others do first.
    fn own_reason(&self, target: &TargetName) -> Option<String> {
        if self.in_flight.contains(target) {
            return None;
        }
        let Some(cluster) = self.stores.clusters.get(target) else {
            let why = || {
                format!(
                    "{target} is in no cluster: change the filter of one so that it matches, or unset store, order and quorum in the policy"
                )
            };
            return self.in_order.then(why);
        };
        if self.unheard_until.is_some() {
            return Some(UNHEARD.to_owned());
        }
        if self.stores.split.contains(cluster) && (self.in_order || self.needs_quorum) {
            return Some(format!(
                "the data stores of cluster {cluster} belong to several clusters, none of which has the most of them: see bellwether cluster view {cluster}"
            ));
        }
        let Some(standing) = self.standing(cluster, target) else {
            let probe = self.probe;
            let why = || {
                format!(
                    "{target} has no data store {probe} that is known: name it in its agent's configuration, [probe.{probe}]"
                )
            };
            return self.in_order.then(why);
        };
        if standing.state == StoreState::Unknown && self.in_order {
            return Some(format!("nobody knows the state of data store {} on {target}", self.probe));
        }
        self.lacks_quorum(cluster, target, &[])
    }

    /// Those of the targets, which may start each, that may start together.
    pub(super) fn together(&self, targets: Vec<TargetName>) -> Vec<TargetName> {
        let mut chosen: Vec<TargetName> = Vec::new();
        for target in targets {
            let cluster = self.stores.clusters.get(&target);
            if cluster.is_none_or(|cluster| self.lacks_quorum(cluster, &target, &chosen).is_none()) {
                chosen.push(target);
            }
        }
        chosen
    }

    fn standing(&self, cluster: &ClusterName, target: &TargetName) -> Option<StoreStanding> {
        let node = NodeName::parse(target.as_str()).ok()?;
        self.stores.members.get(cluster)?.get(&node).copied()
    }

    fn class(&self, cluster: &ClusterName, target: &TargetName) -> Option<StoreClass> {
        let StoreStanding { state, role, is_foreign, .. } = self.standing(cluster, target)?;
        match state {
            StoreState::Up if is_foreign => Some(StoreClass::Down),
            StoreState::Down => Some(StoreClass::Down),
            StoreState::Up => Some(StoreClass::Up(role)),
            StoreState::Unknown => None,
        }
    }

    /// Whether targets of a lower class are not done yet.
    fn too_early(
        &self,
        cluster: &ClusterName,
        target: &TargetName,
        standing: StoreStanding,
    ) -> Option<String> {
        let own = self.class(cluster, target).filter(|_| self.in_order)?;
        let is_before = |other: &&TargetName| {
            self.class(cluster, other).is_some_and(|class| class < own) || self.in_flight.contains(*other)
        };
        let before: Vec<&TargetName> = self
            .open
            .get(cluster)
            .into_iter()
            .flatten()
            .filter(|other| *other != target)
            .filter(is_before)
            .collect();
        let is_lower = before.iter().any(|other| self.class(cluster, other) != Some(own));
        if !is_lower {
            return None;
        }
        let names: Vec<&str> = before.iter().take(NAMED).map(|name| name.as_str()).collect();
        let more = before.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let role = standing.role.as_str();
        Some(format!(
            "{target} is {role} in cluster {cluster}, and is updated after {}{more}",
            names.join(", ")
        ))
    }

    /// Whether the cluster would have no quorum while the target and these others are updated.
    fn lacks_quorum(
        &self,
        cluster: &ClusterName,
        target: &TargetName,
        chosen: &[TargetName],
    ) -> Option<String> {
        let members = self.stores.members.get(cluster).filter(|_| self.needs_quorum)?;
        let own = self.standing(cluster, target)?;
        if !own.role.votes() || !own.is_counted {
            return None;
        }
        let voters = members.values().filter(|member| member.role.votes()).count();
        let is_away = |node: &NodeName| {
            let is = |other: &TargetName| other.as_str() == node.as_str();
            self.in_flight.iter().any(is) || chosen.iter().any(is)
        };
        let counts = |(node, member): &(&NodeName, &StoreStanding)| {
            member.role.votes() && member.is_counted && !is_away(node)
        };
        let up = members.iter().filter(counts).count();
        let needed = quorum(voters);
        if up > needed {
            return None;
        }
        if voters == 1 {
            return Some(format!(
                "{target} has the only voting store of cluster {cluster}, which has no quorum without it: unset quorum in the policy to update it all the same"
            ));
        }
        let missing = members
            .iter()
            .filter(|(node, member)| member.role.votes() && (!member.is_counted || is_away(node)));
        let missing: Vec<String> =
            missing.take(NAMED).map(|(node, member)| missing_text(node, *member, is_away(node))).collect();
        let away =
            if missing.is_empty() { String::new() } else { format!("; not counted: {}", missing.join(", ")) };
        Some(format!(
            "cluster {cluster} has {up} of {} up and needs {needed}{away}",
            plural(voters, "voting store")
        ))
    }
}

/// A voter that does not count, with the reason.
fn missing_text(node: &NodeName, member: StoreStanding, is_away: bool) -> String {
    let why = match member.state {
        _ if is_away => "being updated",
        StoreState::Up if member.is_foreign => "of another cluster",
        StoreState::Up => "its agent is not in contact",
        StoreState::Down => "down",
        StoreState::Unknown => "unknown",
    };
    format!("{node} ({why})")
}
