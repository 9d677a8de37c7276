//! What an apply is about: an object, by kind and name, and the document that says what it is to be.

use std::fmt;

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::apply::{
    Document, EntityDocument, FreezeDocument, PauseDocument, ProfileDocument, SlotDocument,
};
use bellwether_core::access::ObjectKind;
use bellwether_core::records::key::{AnyKey, AnyRecord, GlobalKey, GlobalRecord, Key, Record};
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{EntityName, FreezeName, PauseName, ProfileName, SlotName};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::version;

/// An object by kind and name. They are in the order in which they are deleted: what uses another one goes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectId {
    Freeze(FreezeName),
    GlobalFreeze(FreezeName),
    Pause(PauseName),
    Entity(EntityName),
    Slot(SlotName),
    Profile(ProfileName),
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
            Self::Freeze(name) | Self::GlobalFreeze(name) => write!(f, "freeze/{name}"),
            Self::Pause(name) => write!(f, "pause/{name}"),
            Self::Entity(name) => write!(f, "entity/{name}"),
            Self::Slot(name) => write!(f, "slot/{name}"),
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
            Document::Entity(_) => read("name", name).map(ObjectId::Entity),
            Document::Freeze(freeze) if freeze.all_namespaces => {
                read("name", name).map(ObjectId::GlobalFreeze)
            }
            Document::Freeze(_) => read("name", name).map(ObjectId::Freeze),
            Document::Pause(_) => read("name", name).map(ObjectId::Pause),
            Document::Profile(_) => read("name", name).map(ObjectId::Profile),
            Document::Slot(_) => read("name", name).map(ObjectId::Slot),
        };
        let labels = bellwether_api::v1::labels::labels_in(document.labels()).map_err(within)?;
        Ok(Self { id: id.map_err(within)?, labels, document: document.clone() })
    }

    /// When it is set: profiles before the entities that use them.
    pub(super) const fn rank(&self) -> u8 {
        match self.id {
            ObjectId::Profile(_) => 0,
            ObjectId::Slot(_) => 1,
            ObjectId::Entity(_) => 2,
            ObjectId::Pause(_) => 3,
            ObjectId::Freeze(_) | ObjectId::GlobalFreeze(_) => 4,
        }
    }
}

impl ObjectId {
    /// The kind of object.
    pub(super) const fn kind(&self) -> ObjectKind {
        match self {
            Self::Freeze(_) => ObjectKind::Freeze,
            Self::GlobalFreeze(_) => ObjectKind::GlobalFreeze,
            Self::Pause(_) => ObjectKind::Pause,
            Self::Entity(_) => ObjectKind::Entity,
            Self::Slot(_) => ObjectKind::Slot,
            Self::Profile(_) => ObjectKind::Profile,
        }
    }

    /// The name of the object.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Freeze(name) | Self::GlobalFreeze(name) => name.as_str(),
            Self::Pause(name) => name.as_str(),
            Self::Entity(name) => name.as_str(),
            Self::Slot(name) => name.as_str(),
            Self::Profile(name) => name.as_str(),
        }
    }

    /// The key of its record.
    pub(super) fn key(&self) -> AnyKey {
        match self {
            Self::Freeze(name) => Key::Freeze(name.clone()).into(),
            Self::GlobalFreeze(name) => GlobalKey::Freeze(name.clone()).into(),
            Self::Pause(name) => Key::Pause(name.clone()).into(),
            Self::Entity(name) => Key::Entity(name.clone()).into(),
            Self::Slot(name) => Key::Slot(name.clone()).into(),
            Self::Profile(name) => Key::Profile(name.clone()).into(),
        }
    }

    /// The object as it is, as a document; none if there is none of the name.
    pub(super) fn current(&self, world: &World, fleet: &Fleet) -> Option<Document> {
        Some(match self {
            Self::Freeze(name) => {
                Document::Freeze(FreezeDocument::of(&fleet.freezes.get(name)?.value, false))
            }
            Self::GlobalFreeze(name) => {
                Document::Freeze(FreezeDocument::of(&world.freezes.get(name)?.value, true))
            }
            Self::Pause(name) => Document::Pause(PauseDocument::of(&fleet.pauses.get(name)?.value)),
            Self::Entity(name) => {
                let entity = &fleet.entities.get(name)?.value;
                let version = version::requested(fleet, entity);
                Document::Entity(Box::new(EntityDocument::of(entity, version.as_ref())))
            }
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
            Self::Pause(name) => with_labels!(fleet.pauses.get(name), Record::Pause),
            Self::Entity(name) => with_labels!(fleet.entities.get(name), Record::Entity),
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

    /// The event that tells of nothing but other labels.
    pub(super) const fn labelled_event(&self) -> &'static str {
        match self {
            Self::Freeze(_) | Self::GlobalFreeze(_) => "freeze.labelled",
            Self::Pause(_) => "pause.labelled",
            Self::Entity(_) => "entity.labelled",
            Self::Slot(_) => "slot.labelled",
            Self::Profile(_) => "profile.labelled",
        }
    }
}
