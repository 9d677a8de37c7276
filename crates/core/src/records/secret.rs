//! Secrets: values that are encrypted where they are stored. Written only by operations, and again under a newer key by the leader.
//!
//! No record has the text of a secret: params have a mark in its place, and the ciphertext is kept beside them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::access::NamePattern;
use crate::records::annotation::Annotation;
use crate::words::counter::SecretRevision;
use crate::words::name::{ParamKey, ProviderName, SecretKeyId, SecretName};

/// Longest value of a secret, as JSON, in bytes.
pub const MAX_SECRET_BYTES: usize = 32 << 10;

/// A secret of a namespace. Params name it, and then have a copy of the value that it had when they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name.
    pub name: SecretName,
    /// Number of its last change, from 1.
    pub revision: SecretRevision,
    /// Where its value is.
    pub source: SecretSource,
    /// The profiles and nodes whose params may have it, as `profile/NAME` and `node/NAME`.
    pub readers: Vec<NamePattern>,
    /// What it is for; may be empty.
    pub description: String,
    /// Who changed it last, when and why.
    pub annotation: Annotation,
}

/// Where the value of a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In the record, encrypted.
    Stored(Ciphertext),
    /// Elsewhere: a program on the server reads it each time.
    Provided {
        /// The program.
        provider: ProviderName,
        /// What it is asked for.
        reference: String,
    },
}

/// A text that is encrypted and authenticated, together with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ciphertext {
    /// The key that it is encrypted with.
    pub key: SecretKeyId,
    /// Nonce and ciphertext, in base64.
    pub text: String,
}

/// The value of a param that is a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretValue {
    /// A value of its own.
    Own(Ciphertext),
    /// That of a secret of the namespace.
    Copy {
        /// The secret.
        secret: SecretName,
        /// The revision of the secret that was copied.
        revision: SecretRevision,
        /// The copy; none of a secret that a provider has, which is read each time.
        text: Option<Ciphertext>,
    },
}

/// The secret values of some params, by key.
pub type SecretValues = BTreeMap<ParamKey, SecretValue>;

impl SecretValue {
    /// The ciphertext; `None` if there is none in the store.
    #[must_use]
    pub const fn ciphertext(&self) -> Option<&Ciphertext> {
        match self {
            Self::Own(text) | Self::Copy { text: Some(text), .. } => Some(text),
            Self::Copy { text: None, .. } => None,
        }
    }
}
