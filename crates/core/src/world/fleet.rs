//! One namespace of the world: its nodes, entities, rollouts, orders and the newest events.

use alloc::string::String;
use alloc::sync::Arc;

use super::tally::NodeTally;
use super::waits::WaitIndex;
use crate::catalogue::Catalogue;
use crate::catalogue::log::CatalogueLog;
use crate::records::entity::Entity;
use crate::records::event::Event;
use crate::records::external::{Controllers, ExternalTarget};
use crate::records::freeze::Freeze;
use crate::records::hook_answers::HookAnswers;
use crate::records::log::NodeLog;
use crate::records::node::{Marked, Node, Presence};
use crate::records::order::{Order, OrderContent};
use crate::records::pause::NodePause;
use crate::records::profile::{Profile, ProfileRevision};
use crate::records::progress::Progress;
use crate::records::registrations::{KnownService, ServiceRegistrations};
use crate::records::report::Report;
use crate::records::rollout::Rollout;
use crate::records::slot::Slot;
use crate::records::versioned::Versioned;
use crate::records::wait_cycle::WaitCycles;
use crate::rollout::board::Board;
use crate::words::counter::{ProfileRevisionNumber, Revision, RolloutNumber, Sequence};
use crate::words::map::{Map, Set};
use crate::words::name::{
    Category, EntityName, FreezeName, NodeName, PauseName, ProfileName, ServerName, ServiceName, SlotName,
    TargetName,
};
use crate::words::time::Timestamp;

/// Newest events kept in memory; older ones are read from the store.
pub const EVENTS_IN_MEMORY: usize = 4_096;

/// One namespace of the world.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    /// Machines, decommissioned ones included.
    pub nodes: Map<NodeName, Versioned<Node>>,
    /// Their connections.
    pub presences: Map<NodeName, Versioned<Presence>>,
    /// Machines that are expected to join, and who said so.
    pub expected: Map<NodeName, Versioned<Marked>>,
    /// What they last said.
    pub reports: Map<NodeName, Versioned<Report>>,
    /// What they offer.
    pub registrations: Map<NodeName, Versioned<ServiceRegistrations>>,
    /// Services that were ever offered.
    pub services: Map<ServiceName, Versioned<KnownService>>,
    /// Who waits for whom in a circle.
    pub wait_cycles: Option<Versioned<WaitCycles>>,
    /// Who waits for which services.
    pub waits: WaitIndex,
    /// Who offers what, and whether it serves.
    pub catalogue: Catalogue,
    /// What changed in it.
    pub catalogue_log: CatalogueLog,
    /// What they were told.
    pub orders: Map<NodeName, Versioned<Order>>,
    /// Logs of failing runs, without what they say.
    pub logs: Map<(NodeName, Category, EntityName), Versioned<NodeLog>>,
    /// What people want changed.
    pub entities: Map<EntityName, Versioned<Entity>>,
    /// Where that stands.
    pub progresses: Map<EntityName, Versioned<Progress>>,
    /// What was last reported of external targets.
    pub externals: Map<(EntityName, TargetName), Versioned<ExternalTarget>>,
    /// Who reports them.
    pub controllers: Map<EntityName, Versioned<Controllers>>,
    /// By entity: when something is next to be done about an external target that is not reported.
    pub overdue: Map<EntityName, Set<(Timestamp, TargetName)>>,
    /// What controllers answered about the rollouts under way.
    pub answers: Map<EntityName, Versioned<HookAnswers>>,
    /// What is not to be changed.
    pub freezes: Map<FreezeName, Versioned<Freeze>>,
    /// Nodes that start nothing new, by selector.
    pub pauses: Map<PauseName, Versioned<NodePause>>,
    /// What only so many may do at once, as far as there is something to say of it.
    pub slots: Map<SlotName, Versioned<Slot>>,
    /// Every rollout.
    pub rollouts: Map<(EntityName, RolloutNumber), Versioned<Rollout>>,
    /// Revisions of what targets were told; what they were told is on the entity's board.
    pub targets: Map<(EntityName, TargetName), Revision>,
    /// Bags of params, deleted ones included.
    pub profiles: Map<ProfileName, Versioned<Profile>>,
    /// Their revisions.
    pub profile_revisions: Map<(ProfileName, ProfileRevisionNumber), Versioned<ProfileRevision>>,
    /// The newest events.
    pub events: Map<Sequence, Arc<Event>>,
    /// Number of the oldest event that is still kept; zero before the first.
    pub oldest_event: Sequence,
    /// By entity: its members, folded for the rollout decider.
    pub boards: Map<EntityName, Board>,
    /// By entity: revision of the last change to it, its targets or their reports.
    pub touched: Map<EntityName, Revision>,
    /// What each node's order should say.
    pub contents: Map<NodeName, OrderContent>,
    /// Nodes whose order does not say it yet.
    pub stale_orders: Set<NodeName>,
    /// Nodes that are thought to be connected, or were a while ago, by the server that has, or had, the session.
    pub held: Map<Option<ServerName>, Set<NodeName>>,
    /// Targets of removed entities, whose records are to be removed too.
    pub orphans: Set<EntityName>,
    /// How many nodes are how.
    pub tally: NodeTally,
    /// When the next of a node's statuses falls silent, for nodes that have one that will.
    pub silences: Set<(Timestamp, NodeName)>,
    /// While the world is being loaded, indexes wait until all records are there.
    pub(super) loading: bool,
}

impl Fleet {
    /// The last event's number.
    #[must_use]
    pub fn last_event(&self) -> Sequence {
        self.events.last().map_or(Sequence::ZERO, |(sequence, _)| *sequence)
    }

    /// The kept logs of a node.
    pub fn logs_of<'a>(&'a self, node: &'a NodeName) -> impl Iterator<Item = &'a Versioned<NodeLog>> + 'a {
        // "0" sorts first among labels.
        let first = Category::parse("0").ok().zip(EntityName::parse("0").ok());
        let first = first.map(|(category, entity)| (node.clone(), category, entity));
        let from = first.into_iter().flat_map(|first| self.logs.range(first..));
        from.take_while(move |((of, _, _), _)| of == node).map(|(_, kept)| kept)
    }

    /// The pauses that hold a node by their selectors, by name.
    pub fn pauses_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a NodePause> + 'a {
        self.pauses.values().map(|kept| &*kept.value).filter(|pause| pause.holds(node))
    }

    /// Why a node starts nothing new; none when it may. Its own pause comes first, then others by name.
    #[must_use]
    pub fn paused(&self, node: &Node) -> Option<String> {
        let own = node.pause.as_ref().map(Marked::paused);
        own.or_else(|| self.pauses_of(node).next().map(NodePause::line))
    }

    /// Whether a node starts nothing new.
    #[must_use]
    pub fn holds(&self, node: &Node) -> bool {
        node.pause.is_some() || self.pauses_of(node).next().is_some()
    }

    /// A node that is not decommissioned.
    #[must_use]
    pub fn active_node(&self, name: &NodeName) -> Option<&Versioned<Node>> {
        self.nodes.get(name).filter(|node| node.value.decommissioned.is_none())
    }
}
