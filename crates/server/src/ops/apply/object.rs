//! What an apply is about: an object, by kind and name, and the document that says what it is to be.

use std::fmt;

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::apply::{
    ClusterDocument, Document, EnsembleDocument, EntityDocument, FilterDocument, FreezeDocument,
    NodeDocument, ParamDocument, PauseDocument, ProfileDocument, ReactionDocument, ScheduleDocument,
    SinkDocument, SlotDocument, StageDocument, TaskDocument, WorkflowDocument,
};
use bellwether_core::access::{ObjectKind, Right};
use bellwether_core::records::definition::DefinitionId;
use bellwether_core::records::key::global::{GlobalKey, GlobalRecord};
use bellwether_core::records::key::{AnyKey, AnyRecord, Key, Record};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{
    ClusterName, EnsembleName, EntityName, FilterName, FreezeName, NodeName, ParamKey, PauseName,
    ProfileName, ReactionName, ScheduleName, SinkName, SlotName,
};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::version;
use crate::ops::{definition, node_params, param};

/// An object by kind and name. They are in the order in which they are deleted: what uses another one goes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectId {
    Freeze(FreezeName),
    GlobalFreeze(FreezeName),
    Pause(PauseName),
    Entity(EntityName),
    Schedule(ScheduleName),
    /// A reaction.
    Reaction(ReactionName),
    /// A sink.
    Sink(SinkName),
    Cluster(ClusterName),
    /// An ensemble, which is never deleted by an apply.
    Ensemble(EnsembleName),
    Slot(SlotName),
    Definition(DefinitionId),
    Node(NodeName),
    Profile(ProfileName),
    Param(ParamKey),
    Filter(FilterName),
}

/// An object and what it is to be.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) id: ObjectId,
    pub(super) labels: Labels,
    pub(super) document: Document,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(name) => write!(f, "cluster/{name}"),
            Self::Ensemble(name) => write!(f, "ensemble/{name}"),
            Self::Filter(name) => write!(f, "filter/{name}"),
            Self::Freeze(name) | Self::GlobalFreeze(name) => write!(f, "freeze/{name}"),
            Self::Node(name) => write!(f, "node/{name}"),
            Self::Param(name) => write!(f, "param/{name}"),
            Self::Pause(name) => write!(f, "pause/{name}"),
            Self::Entity(name) => write!(f, "entity/{name}"),
            Self::Schedule(name) => write!(f, "schedule/{name}"),
            Self::Reaction(name) => write!(f, "reaction/{name}"),
            Self::Sink(name) => write!(f, "sink/{name}"),
            Self::Slot(name) => write!(f, "slot/{name}"),
            Self::Definition(id) => write!(f, "{}/{}", id.kind(), id.name()),
            Self::Profile(name) => write!(f, "profile/{name}"),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl Object {
    /// The object of a document.
    pub(super) fn of(document: &Document) -> Result<Self, ShapeError> {
        let place = format!("{}/{}", document.kind(), document.name());
        let within = |error: ShapeError| ShapeError::at(&format!("{place}: {}", error.place), error.reason);
        let name = document.name();
        let id = match document {
            Document::Cluster(_) => read("name", name).map(ObjectId::Cluster),
            Document::Ensemble(_) => read("name", name).map(ObjectId::Ensemble),
            Document::Entity(_) => read("name", name).map(ObjectId::Entity),
            Document::Filter(_) => read("name", name).map(ObjectId::Filter),
            Document::Freeze(freeze) if freeze.all_namespaces => {
                read("name", name).map(ObjectId::GlobalFreeze)
            }
            Document::Freeze(_) => read("name", name).map(ObjectId::Freeze),
            Document::Node(_) => read("name", name).map(ObjectId::Node),
            Document::Param(_) => read("name", name).map(ObjectId::Param),
            Document::Pause(_) => read("name", name).map(ObjectId::Pause),
            Document::Profile(_) => read("name", name).map(ObjectId::Profile),
            Document::Schedule(_) => read("name", name).map(ObjectId::Schedule),
            Document::Reaction(_) => read("name", name).map(ObjectId::Reaction),
            Document::Sink(_) => read("name", name).map(ObjectId::Sink),
            Document::Slot(_) => read("name", name).map(ObjectId::Slot),
            Document::Stage(_) => {
                read("name", name).map(|name| ObjectId::Definition(DefinitionId::Stage(name)))
            }
            Document::Task(_) => {
                read("name", name).map(|name| ObjectId::Definition(DefinitionId::Task(name)))
            }
            Document::Workflow(_) => {
                read("name", name).map(|name| ObjectId::Definition(DefinitionId::Workflow(name)))
            }
        };
        let labels = document.labels().map(bellwether_api::v1::labels::labels_in).transpose();
        let labels = labels.map_err(within)?.unwrap_or_default();
        Ok(Self { id: id.map_err(within)?, labels, document: document.clone() })
    }

    /// When it is set: what others use before them.
    pub(super) const fn rank(&self) -> u8 {
        match self.id {
            ObjectId::Param(_) | ObjectId::Filter(_) => 0,
            ObjectId::Profile(_) => 1,
            ObjectId::Node(_) => 2,
            ObjectId::Slot(_)
            | ObjectId::Cluster(_)
            | ObjectId::Ensemble(_)
            | ObjectId::Definition(DefinitionId::Task(_)) => 3,
            ObjectId::Entity(_) | ObjectId::Definition(DefinitionId::Stage(_)) => 4,
            ObjectId::Pause(_) | ObjectId::Definition(DefinitionId::Workflow(_)) => 5,
            ObjectId::Schedule(_)
            | ObjectId::Reaction(_)
            | ObjectId::Sink(_)
            | ObjectId::Freeze(_)
            | ObjectId::GlobalFreeze(_) => 6,
        }
    }
}

impl ObjectId {
    /// The kind of object.
    pub(super) const fn kind(&self) -> ObjectKind {
        match self {
            Self::Cluster(_) => ObjectKind::Cluster,
            Self::Ensemble(_) => ObjectKind::Ensemble,
            Self::Filter(_) => ObjectKind::Filter,
            Self::Freeze(_) => ObjectKind::Freeze,
            Self::GlobalFreeze(_) => ObjectKind::GlobalFreeze,
            Self::Node(_) => ObjectKind::Node,
            Self::Param(_) => ObjectKind::Param,
            Self::Pause(_) => ObjectKind::Pause,
            Self::Entity(_) => ObjectKind::Entity,
            Self::Schedule(_) => ObjectKind::Schedule,
            Self::Reaction(_) => ObjectKind::Reaction,
            Self::Sink(_) => ObjectKind::Sink,
            Self::Slot(_) => ObjectKind::Slot,
            Self::Definition(DefinitionId::Stage(_)) => ObjectKind::Stage,
            Self::Definition(DefinitionId::Task(_)) => ObjectKind::Task,
            Self::Definition(DefinitionId::Workflow(_)) => ObjectKind::Workflow,
            Self::Profile(_) => ObjectKind::Profile,
        }
    }

    /// The rights to set it.
    pub(super) fn rights(&self) -> Vec<Right> {
        match self {
            // Only these fields of a node are set.
            Self::Node(_) => {
                ["/params", "/profiles"].map(|field| Right::update_field(ObjectKind::Node, field)).to_vec()
            }
            Self::Cluster(_)
            | Self::Ensemble(_)
            | Self::Filter(_)
            | Self::Freeze(_)
            | Self::GlobalFreeze(_)
            | Self::Pause(_)
            | Self::Entity(_)
            | Self::Schedule(_)
            | Self::Reaction(_)
            | Self::Sink(_)
            | Self::Slot(_)
            | Self::Definition(_)
            | Self::Profile(_)
            | Self::Param(_) => vec![Right::update(self.kind())],
        }
    }

    /// The name of the object.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Cluster(name) => name.as_str(),
            Self::Ensemble(name) => name.as_str(),
            Self::Filter(name) => name.as_str(),
            Self::Freeze(name) | Self::GlobalFreeze(name) => name.as_str(),
            Self::Node(name) => name.as_str(),
            Self::Param(name) => name.as_str(),
            Self::Pause(name) => name.as_str(),
            Self::Entity(name) => name.as_str(),
            Self::Schedule(name) => name.as_str(),
            Self::Reaction(name) => name.as_str(),
            Self::Sink(name) => name.as_str(),
            Self::Slot(name) => name.as_str(),
            Self::Definition(id) => id.name(),
            Self::Profile(name) => name.as_str(),
        }
    }

    /// The key of its record.
    pub(super) fn key(&self) -> AnyKey {
        match self {
            Self::Cluster(name) => Key::Cluster(name.clone()).into(),
            Self::Ensemble(name) => Key::Ensemble(name.clone()).into(),
            Self::Filter(name) => Key::Filter(name.clone()).into(),
            Self::Freeze(name) => Key::Freeze(name.clone()).into(),
            Self::GlobalFreeze(name) => GlobalKey::Freeze(name.clone()).into(),
            Self::Node(name) => Key::NodeParams(name.clone()).into(),
            Self::Param(name) => Key::Param(name.clone()).into(),
            Self::Pause(name) => Key::Pause(name.clone()).into(),
            Self::Entity(name) => Key::Entity(name.clone()).into(),
            Self::Schedule(name) => Key::Schedule(name.clone()).into(),
            Self::Reaction(name) => Key::Reaction(name.clone()).into(),
            Self::Sink(name) => Key::Sink(name.clone()).into(),
            Self::Slot(name) => Key::Slot(name.clone()).into(),
            Self::Definition(id) => Key::Definition(id.clone()).into(),
            Self::Profile(name) => Key::Profile(name.clone()).into(),
        }
    }

    /// The object as it is, as a document; none if there is none of the name.
    pub(super) fn current(&self, world: &World, fleet: &Fleet) -> Option<Document> {
        Some(match self {
            Self::Cluster(name) => Document::Cluster(ClusterDocument::of(&fleet.clusters.get(name)?.value)),
            Self::Ensemble(name) => {
                Document::Ensemble(Box::new(EnsembleDocument::of(&fleet.ensembles.get(name)?.value)))
            }
            Self::Filter(name) => {
                let filter = &fleet.filters.get(name)?.value;
                Document::Filter(FilterDocument::of((&**filter).into()))
            }
            Self::Freeze(name) => {
                Document::Freeze(FreezeDocument::of(&fleet.freezes.get(name)?.value, false))
            }
            Self::GlobalFreeze(name) => {
                Document::Freeze(FreezeDocument::of(&world.freezes.get(name)?.value, true))
            }
            Self::Node(name) => {
                let has = node_params::get(fleet, name).ok()?;
                Document::Node(NodeDocument::of((&has).try_into().ok()?))
            }
            Self::Param(name) => Document::Param(ParamDocument::of(param::get(fleet, name).ok()??)),
            Self::Pause(name) => Document::Pause(PauseDocument::of(&fleet.pauses.get(name)?.value)),
            Self::Entity(name) => {
                let entity = &fleet.entities.get(name)?.value;
                let version = version::requested(fleet, entity);
                Document::Entity(Box::new(EntityDocument::of(entity, version.as_ref())))
            }
            Self::Definition(id) => defined(fleet, id)?,
            Self::Schedule(name) => {
                Document::Schedule(Box::new(ScheduleDocument::of(&fleet.schedules.get(name)?.value)))
            }
            Self::Reaction(name) => {
                Document::Reaction(Box::new(ReactionDocument::of(&fleet.reactions.get(name)?.value)))
            }
            Self::Sink(name) => Document::Sink(Box::new(SinkDocument::of(&fleet.sinks.get(name)?.value))),
            Self::Slot(name) => Document::Slot(SlotDocument::of(&fleet.slots.get(name)?.value)),
            Self::Profile(name) => {
                let profile = fleet.profile(name)?;
                let newest = fleet.profile_revisions.get(&(name.clone(), profile.newest))?;
                Document::Profile(ProfileDocument::of(profile, &newest.value).ok()?)
            }
        })
    }

    /// The record with other labels; none if it has these, or if there is none.
    pub(super) fn labelled(&self, world: &World, fleet: &Fleet, labels: &Labels) -> Option<AnyRecord> {
        macro_rules! with_labels {
            ($found:expr, $record:path) => {{
                let mut record = (*$found?.value).clone();
                let differ = record.labels != *labels;
                record.labels = labels.clone();
                differ.then(|| AnyRecord::from($record(record)))
            }};
        }
        match self {
            Self::Freeze(name) => with_labels!(fleet.freezes.get(name), Record::Freeze),
            Self::GlobalFreeze(name) => with_labels!(world.freezes.get(name), GlobalRecord::Freeze),
            Self::Filter(_) | Self::Node(_) | Self::Param(_) => None,
            Self::Cluster(name) => with_labels!(fleet.clusters.get(name), Record::Cluster),
            Self::Ensemble(name) => with_labels!(fleet.ensembles.get(name), Record::Ensemble),
            Self::Pause(name) => with_labels!(fleet.pauses.get(name), Record::Pause),
            Self::Entity(name) => with_labels!(fleet.entities.get(name), Record::Entity),
            Self::Definition(id) => with_labels!(fleet.definitions.get(id), Record::Definition),
            Self::Schedule(name) => with_labels!(fleet.schedules.get(name), Record::Schedule),
            Self::Reaction(name) => with_labels!(fleet.reactions.get(name), Record::Reaction),
            Self::Sink(name) => with_labels!(fleet.sinks.get(name), Record::Sink),
            Self::Profile(name) => with_labels!(fleet.profiles.get(name), Record::Profile),
            Self::Slot(name) => {
                let slot = fleet.slots.get(name).map(|kept| (*kept.value).clone());
                let mut slot =
                    slot.unwrap_or_else(|| bellwether_core::records::slot::Slot::fresh(name.clone()));
                let differ = slot.labels != *labels;
                slot.labels = labels.clone();
                differ.then(|| AnyRecord::from(Record::Slot(slot)))
            }
        }
    }

    /// The event that tells of nothing but other labels; of a kind without labels, none is ever made.
    pub(super) const fn labelled_event(&self) -> &'static str {
        match self {
            Self::Cluster(_) => "cluster.labelled",
            Self::Ensemble(_) => "ensemble.labelled",
            Self::Filter(_) => "filter.changed",
            Self::Freeze(_) | Self::GlobalFreeze(_) => "freeze.labelled",
            Self::Node(_) => "node.changed",
            Self::Param(_) => "param.declared",
            Self::Pause(_) => "pause.labelled",
            Self::Entity(_) => "entity.labelled",
            Self::Schedule(_) => "schedule.labelled",
            Self::Reaction(_) => "reaction.labelled",
            Self::Sink(_) => "sink.labelled",
            Self::Slot(_) => "slot.labelled",
            Self::Definition(DefinitionId::Stage(_)) => "stage.labelled",
            Self::Definition(DefinitionId::Task(_)) => "task.labelled",
            Self::Definition(DefinitionId::Workflow(_)) => "workflow.labelled",
            Self::Profile(_) => "profile.labelled",
        }
    }
}

/// The document of a task, a stage or a workflow as it is. What names it is not read: no document has it.
fn defined(fleet: &Fleet, id: &DefinitionId) -> Option<Document> {
    let users = definition::Users::new();
    Some(match id {
        DefinitionId::Task(name) => {
            Document::Task(TaskDocument::of(definition::task_view(fleet, &users, name).ok()??))
        }
        DefinitionId::Stage(name) => {
            Document::Stage(StageDocument::of(definition::stage_view(fleet, &users, name).ok()??))
        }
        DefinitionId::Workflow(name) => {
            Document::Workflow(WorkflowDocument::of(definition::workflow_view(fleet, name).ok()??))
        }
    })
}
