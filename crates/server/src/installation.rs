//! What a store belongs to: one installation, with one authority. Owns the record that says so, and refuses a store that is
//! another's, or that a newer release wrote.

use bellwether_core::words::counter::{Revision, Term};
use bellwether_store::{CommitOutcome, Compare, Op, Range, Store, StoreError, Txn};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::records::key_text;

/// The layout of the store that this release reads and writes.
pub const FORMAT: u32 = 1;

/// What a store belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    /// Its id, made once.
    pub id: String,
    /// The layout of the store.
    pub format: u32,
    /// SHA-256 of the certificate of its authority, lower-case hex.
    pub ca_fingerprint: String,
    /// What is added to revisions of this store to make terms: more than any term that was given when the records were
    /// elsewhere, so that orders only move forward.
    #[serde(default)]
    pub term_base: u64,
    /// Where its records have gone, if they are no longer kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    /// The store did not answer.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Nobody made an installation in it.
    #[error("find an installation in the store: make one with `bellwether server init`")]
    Missing,
    /// There is one already.
    #[error("make an installation in the store: it holds installation {id} already, and is left as it is")]
    Present {
        /// Which.
        id: String,
    },
    /// There is something that is not ours to touch.
    #[error(
        "make an installation in the store: under our keys there is {key}, which no installation wrote; use another prefix"
    )]
    Foreign {
        /// The first key found.
        key: String,
    },
    /// It belongs to another authority.
    #[error(
        "use the store: installation {id} has the authority {theirs}, and the one here is {ours}; copy pki/ca.pem and \
         pki/ca.key from one of its servers, or name another store"
    )]
    Another {
        /// Which installation.
        id: String,
        /// The fingerprint of its CA, cut.
        theirs: String,
        /// The fingerprint of ours, cut.
        ours: String,
    },
    /// Its records have gone to another store.
    #[error(
        "use the store: the records of installation {id} have gone to {place}; start the server with that store"
    )]
    Moved {
        /// Which installation.
        id: String,
        /// Where.
        place: String,
    },
    /// A newer release wrote it.
    #[error(
        "use the store: it has format {found}, and this release knows formats up to {FORMAT}; install a newer release"
    )]
    Newer {
        /// Its format.
        found: u32,
    },
    /// What is there says nothing.
    #[error("read what the store belongs to: {reason}; restore a backup")]
    Unreadable {
        /// Why.
        reason: String,
    },
}

impl Installation {
    /// A new one with this authority.
    #[must_use]
    pub fn new(ca_fingerprint: String) -> Self {
        Self { id: Uuid::now_v7().to_string(), format: FORMAT, ca_fingerprint, term_base: 0, moved_to: None }
    }

    /// What the store belongs to, if anything.
    ///
    /// # Errors
    /// [`InstallationError`] when that cannot be read, or is newer.
    pub async fn read(store: &Store) -> Result<Option<Self>, InstallationError> {
        let Some(entry) = store.get(key_text::META.into()).await? else { return Ok(None) };
        let unreadable =
            |error: serde_json::Error| InstallationError::Unreadable { reason: error.to_string() };
        // The format first: a newer one may have other fields.
        let format: StoreFormat = serde_json::from_slice(&entry.value).map_err(unreadable)?;
        if format.format > FORMAT {
            return Err(InstallationError::Newer { found: format.format });
        }
        serde_json::from_slice(&entry.value).map(Some).map_err(unreadable)
    }

    /// Writes it, if nothing is there.
    ///
    /// # Errors
    /// [`InstallationError::Present`] when somebody was faster.
    pub async fn write(&self, store: &Store) -> Result<(), InstallationError> {
        let put = Op::Put { key: key_text::META.into(), value: self.to_bytes()?, lease: None };
        let txn = Txn { compares: vec![Compare::Absent { key: key_text::META.into() }], ops: vec![put] };
        match store.commit(txn).await? {
            CommitOutcome::Committed(_) => Ok(()),
            CommitOutcome::Conflict { .. } => {
                Err(InstallationError::Present { id: "made just now".to_owned() })
            }
        }
    }

    /// Its stored form.
    ///
    /// # Errors
    /// [`InstallationError::Unreadable`], which it never is.
    pub fn to_bytes(&self) -> Result<Bytes, InstallationError> {
        let bytes = serde_json::to_vec(self);
        bytes.map(Bytes::from).map_err(|error| InstallationError::Unreadable { reason: error.to_string() })
    }

    /// Refuses a store that has one, or anything but the tokens of an `init` that was interrupted.
    ///
    /// # Errors
    /// [`InstallationError::Present`] and [`InstallationError::Foreign`].
    pub async fn room_for_one(store: &Store) -> Result<(), InstallationError> {
        if let Some(there) = Self::read(store).await? {
            return Err(InstallationError::Present { id: there.id });
        }
        let page = store.list(Range::prefix(key_text::ROOT), None, 64).await?;
        let own = |key: &[u8]| matches!(key_text::read(key), Some(place) if place.is_of_init());
        match page.entries.iter().find(|entry| !own(&entry.key)) {
            Some(entry) => {
                Err(InstallationError::Foreign { key: String::from_utf8_lossy(&entry.key).into_owned() })
            }
            None => Ok(()),
        }
    }

    /// Refuses another authority's store, and one whose records have gone elsewhere.
    ///
    /// # Errors
    /// [`InstallationError::Another`] and [`InstallationError::Moved`].
    pub fn belongs_to(&self, ca_fingerprint: &str) -> Result<(), InstallationError> {
        if let Some(place) = &self.moved_to {
            return Err(InstallationError::Moved { id: self.id.clone(), place: place.clone() });
        }
        if self.ca_fingerprint == ca_fingerprint {
            return Ok(());
        }
        let cut = |text: &str| text.chars().take(16).collect();
        Err(InstallationError::Another {
            id: self.id.clone(),
            theirs: cut(&self.ca_fingerprint),
            ours: cut(ca_fingerprint),
        })
    }

    /// The term of a leadership that was taken at this revision.
    #[must_use]
    pub fn term(&self, taken_at: Revision) -> Term {
        Term::new(self.term_base.saturating_add(taken_at.get()))
    }
}

#[derive(Deserialize)]
struct StoreFormat {
    format: u32,
}
