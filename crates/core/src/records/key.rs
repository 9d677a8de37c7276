//! Which record: the typed key, and the record with it. How a key reads as text is the store's business elsewhere.

use alloc::string::String;

use super::entity::Entity;
use super::event::Event;
use super::external::{Controllers, ExternalTarget};
use super::freeze::Freeze;
use super::hook_answers::HookAnswers;
use super::log::NodeLog;
use super::node::{Node, Presence};
use super::order::Order;
use super::pause::NodePause;
use super::profile::{Profile, ProfileRevision};
use super::progress::Progress;
use super::registrations::{KnownService, ServiceRegistrations};
use super::report::Report;
use super::rollout::Rollout;
use super::server::{Leader, Server};
use super::slot::Slot;
use super::target::TargetState;
use super::token::{JoinToken, Token};
use super::wait_cycle::WaitCycles;
use crate::records::annotation::Annotation;
use crate::words::counter::{ProfileRevisionNumber, RolloutNumber, Sequence};
use crate::words::name::{
    Category, EntityName, FreezeName, NodeName, PauseName, ProfileName, ServerName, ServiceName, SlotName,
    TargetName,
};

/// Which record, within its namespace (tokens, servers and their leader live outside of any).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A node.
    Node(NodeName),
    /// A node's presence.
    Presence(NodeName),
    /// A node that is expected to join.
    Expected(NodeName),
    /// A node's report.
    Report(NodeName),
    /// What a node offers.
    Registrations(NodeName),
    /// A service's name.
    Service(ServiceName),
    /// The circular waits.
    WaitCycles,
    /// A node's order.
    Order(NodeName),
    /// A kept log of a node.
    Log(NodeName, Category, EntityName),
    /// An entity.
    Entity(EntityName),
    /// An entity's progress.
    Progress(EntityName),
    /// One of an entity's rollouts.
    Rollout(EntityName, RolloutNumber),
    /// One of an entity's targets.
    Target(EntityName, TargetName),
    /// What was reported of one of an entity's external targets.
    ExternalTarget(EntityName, TargetName),
    /// Who reports an entity's external targets.
    Controllers(EntityName),
    /// What an entity's controllers answered.
    HookAnswers(EntityName),
    /// A freeze.
    Freeze(FreezeName),
    /// A freeze that holds in every namespace.
    GlobalFreeze(FreezeName),
    /// A pause of several nodes.
    Pause(PauseName),
    /// A slot.
    Slot(SlotName),
    /// A profile.
    Profile(ProfileName),
    /// One of a profile's revisions.
    ProfileRevision(ProfileName, ProfileRevisionNumber),
    /// An event.
    Event(Sequence),
    /// A server.
    Server(ServerName),
    /// Who leads.
    Leader,
    /// A token, by its secret's hash.
    Token(String),
    /// A join token, by its secret's hash.
    JoinToken(String),
}

/// A record with what its key needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A node.
    Node(Node),
    /// A node's presence.
    Presence(NodeName, Presence),
    /// A node that is expected to join: who said so, when and why.
    Expected(NodeName, Annotation),
    /// A node's report.
    Report(Report),
    /// What a node offers.
    Registrations(ServiceRegistrations),
    /// A service's name.
    Service(KnownService),
    /// The circular waits.
    WaitCycles(WaitCycles),
    /// A node's order.
    Order(NodeName, Order),
    /// A kept log of a node.
    Log(NodeLog),
    /// An entity.
    Entity(Entity),
    /// An entity's progress.
    Progress(EntityName, Progress),
    /// One of an entity's rollouts.
    Rollout(EntityName, Rollout),
    /// One of an entity's targets.
    Target(EntityName, TargetName, TargetState),
    /// What was reported of one of an entity's external targets.
    ExternalTarget(EntityName, TargetName, ExternalTarget),
    /// Who reports an entity's external targets.
    Controllers(EntityName, Controllers),
    /// What an entity's controllers answered.
    HookAnswers(EntityName, HookAnswers),
    /// A freeze.
    Freeze(Freeze),
    /// A freeze that holds in every namespace.
    GlobalFreeze(Freeze),
    /// A pause of several nodes.
    Pause(NodePause),
    /// A slot.
    Slot(Slot),
    /// A profile.
    Profile(Profile),
    /// One of a profile's revisions.
    ProfileRevision(ProfileRevision),
    /// An event.
    Event(Event),
    /// A server.
    Server(Server),
    /// Who leads.
    Leader(Leader),
    /// A token.
    Token(Token),
    /// A join token.
    JoinToken(JoinToken),
}

impl Record {
    /// Where it is kept.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Node(node) => Key::Node(node.name.clone()),
            Self::Presence(node, _) => Key::Presence(node.clone()),
            Self::Expected(node, _) => Key::Expected(node.clone()),
            Self::Report(report) => Key::Report(report.node.clone()),
            Self::Registrations(registrations) => Key::Registrations(registrations.node.clone()),
            Self::Service(service) => Key::Service(service.name.clone()),
            Self::WaitCycles(_) => Key::WaitCycles,
            Self::Order(node, _) => Key::Order(node.clone()),
            Self::Log(log) => Key::Log(log.node.clone(), log.category.clone(), log.entity.clone()),
            Self::Entity(entity) => Key::Entity(entity.name.clone()),
            Self::Progress(entity, _) => Key::Progress(entity.clone()),
            Self::Rollout(entity, rollout) => Key::Rollout(entity.clone(), rollout.number),
            Self::Target(entity, target, _) => Key::Target(entity.clone(), target.clone()),
            Self::ExternalTarget(entity, target, _) => Key::ExternalTarget(entity.clone(), target.clone()),
            Self::Controllers(entity, _) => Key::Controllers(entity.clone()),
            Self::HookAnswers(entity, _) => Key::HookAnswers(entity.clone()),
            Self::Freeze(freeze) => Key::Freeze(freeze.name.clone()),
            Self::GlobalFreeze(freeze) => Key::GlobalFreeze(freeze.name.clone()),
            Self::Pause(pause) => Key::Pause(pause.name.clone()),
            Self::Slot(slot) => Key::Slot(slot.name.clone()),
            Self::Profile(profile) => Key::Profile(profile.name.clone()),
            Self::ProfileRevision(profile_revision) => {
                Key::ProfileRevision(profile_revision.profile.clone(), profile_revision.number)
            }
            Self::Event(event) => Key::Event(event.sequence),
            Self::Server(server) => Key::Server(server.name.clone()),
            Self::Leader(_) => Key::Leader,
            Self::Token(token) => Key::Token(token.secret_hash.clone()),
            Self::JoinToken(token) => Key::JoinToken(token.secret_hash.clone()),
        }
    }
}
