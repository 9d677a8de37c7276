//! Conversion of records to documents, and of documents to the specifications that they set.

use bellwether_core::records::freeze::Freeze as FreezeRecord;
use bellwether_core::records::pause::NodePause;
use bellwether_core::records::profile::{Profile, ProfileRevision};
use bellwether_core::records::slot::{CAPACITY, LEASE, Slot};

use super::document::{FreezeDocument, PauseDocument, ProfileDocument, SlotDocument};
use crate::shape::ShapeError;
use crate::v1::freeze::{Freeze, FreezeSpec};
use crate::v1::labels::labels_out;
use crate::v1::pause::PauseSpec;
use crate::v1::profile::{ParamsSpec, params};
use crate::v1::slot::SlotSpec;

impl FreezeDocument {
    /// The document of a freeze.
    #[must_use]
    pub fn of(freeze: &FreezeRecord, all_namespaces: bool) -> Self {
        let lasts = freeze.until.map(|until| until.since(freeze.annotation.at).to_string());
        let Freeze { name, entity, targets, kind, reason, labels, .. } = freeze.into();
        let freeze_kind = Some(kind);
        Self { name, all_namespaces, labels, entity, targets, freeze_kind, reason, lasts, ..Self::default() }
    }

    /// The freeze specification that the document sets.
    #[must_use]
    pub fn spec(&self) -> FreezeSpec {
        FreezeSpec {
            entity: self.entity.clone(),
            targets: self.targets.clone(),
            kind: self.freeze_kind,
            reason: self.reason.clone(),
            lasts: self.lasts.clone(),
        }
    }
}

impl PauseDocument {
    /// The document of a pause.
    #[must_use]
    pub fn of(pause: &NodePause) -> Self {
        let labels = labels_out(&pause.labels);
        let (name, nodes, reason) =
            (pause.name.to_string(), pause.nodes.to_string(), pause.annotation.reason.clone());
        Self { name, labels, nodes, reason, ..Self::default() }
    }

    /// The pause specification that the document sets.
    #[must_use]
    pub fn spec(&self) -> PauseSpec {
        PauseSpec { nodes: self.nodes.clone(), reason: self.reason.clone() }
    }
}

impl ProfileDocument {
    /// The document of a profile at its newest revision.
    ///
    /// # Errors
    /// [`ShapeError`] when the params are not a JSON object.
    pub fn of(profile: &Profile, newest: &ProfileRevision) -> Result<Self, ShapeError> {
        let (name, labels) = (profile.name.to_string(), labels_out(&profile.labels));
        Ok(Self { name, labels, live: profile.live, params: params(&newest.params)?, ..Self::default() })
    }

    /// The profile specification that the document sets.
    #[must_use]
    pub fn spec(&self) -> ParamsSpec {
        ParamsSpec { params: self.params.clone(), if_equal: None, reason: self.reason.clone() }
    }
}

impl SlotDocument {
    /// The document of a slot.
    #[must_use]
    pub fn of(slot: &Slot) -> Self {
        let (capacity, lease) = (Some(slot.capacity), Some(slot.lease.to_string()));
        Self {
            name: slot.name.to_string(),
            labels: labels_out(&slot.labels),
            capacity,
            lease,
            ..Self::default()
        }
    }

    /// The slot specification that the document sets; absent fields take their defaults, not the slot's
    /// present values.
    #[must_use]
    pub fn spec(&self) -> SlotSpec {
        let lease = self.lease.clone().unwrap_or_else(|| LEASE.to_string());
        SlotSpec { capacity: Some(self.capacity.unwrap_or(CAPACITY)), lease: Some(lease) }
    }
}
