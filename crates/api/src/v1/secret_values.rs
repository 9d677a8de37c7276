//! The secret values of params as they are stored: encrypted, beside the params that have marks in their place.

use std::collections::BTreeMap;

use bellwether_core::records::secret as core;
use bellwether_core::words::counter::SecretRevision;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read, try_map_from};

/// Stored form of an encrypted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCiphertext {
    /// Id of the key that it is encrypted with.
    pub key: String,
    /// Nonce and ciphertext, in base64.
    pub text: String,
}

/// Stored form of the secret value of a param.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSecretValue {
    /// The secret that it is a copy of; absent for a value of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The revision of that secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The value, encrypted; absent if a provider has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<StoredCiphertext>,
}

/// The stored form of the secret values of params.
pub type StoredSecretValues = BTreeMap<String, StoredSecretValue>;

/// The stored form of secret values.
#[must_use]
pub fn values_out(from: &core::SecretValues) -> StoredSecretValues {
    let out = |value: &core::SecretValue| match value {
        core::SecretValue::Own(text) => {
            StoredSecretValue { secret: None, revision: None, value: Some(text.into()) }
        }
        core::SecretValue::Copy { secret, revision, text } => StoredSecretValue {
            secret: Some(secret.to_string()),
            revision: Some(revision.get()),
            value: text.as_ref().map(StoredCiphertext::from),
        },
    };
    from.iter().map(|(key, value)| (key.to_string(), out(value))).collect()
}

/// Reads stored secret values.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn values_in(from: StoredSecretValues) -> Result<core::SecretValues, ShapeError> {
    try_map_from(from.into_iter().map(|(key, stored)| {
        let StoredSecretValue { secret, revision, value } = stored;
        let text = value.map(core::Ciphertext::try_from).transpose()?;
        let value = match (secret, text) {
            (None, Some(text)) => core::SecretValue::Own(text),
            (None, None) => return Err(ShapeError::at("secrets", "a value of its own without a text")),
            (Some(secret), text) => core::SecretValue::Copy {
                secret: read("secrets.secret", &secret)?,
                revision: SecretRevision::new(revision.unwrap_or_default()),
                text,
            },
        };
        Ok((read("secrets", &key)?, value))
    }))
}

impl From<&core::Ciphertext> for StoredCiphertext {
    fn from(from: &core::Ciphertext) -> Self {
        Self { key: from.key.to_string(), text: from.text.clone() }
    }
}

impl TryFrom<StoredCiphertext> for core::Ciphertext {
    type Error = ShapeError;
    fn try_from(from: StoredCiphertext) -> Result<Self, ShapeError> {
        Ok(Self { key: read("key", &from.key)?, text: from.text })
    }
}
