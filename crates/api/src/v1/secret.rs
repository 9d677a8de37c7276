//! Secrets: the mark that stands for one in params, requests, answers and stored records.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::secret as core;
use bellwether_core::words::counter::SecretRevision;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::access::patterns;
use super::profile::Params;
use super::secret_values::StoredCiphertext;
use crate::shape::{ShapeError, is_zero, read};

/// The member of the object that stands for a secret value of a param.
const MARK: &str = "$secret";

/// The name in a mark of a value of the param's own.
const OWN: &str = "***";

/// What a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretMark<'a> {
    /// A secret value of the param's own.
    Own,
    /// The value of the secret of this name.
    Named(&'a str),
}

impl<'a> SecretMark<'a> {
    /// The mark that a value is; `None` for an ordinary value.
    #[must_use]
    pub fn of(value: &'a Value) -> Option<Self> {
        let members = value.as_object().filter(|members| members.len() == 1)?;
        match members.get(MARK)?.as_str()? {
            OWN => Some(Self::Own),
            name => Some(Self::Named(name)),
        }
    }

    /// The value that stands for the secret.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Self::Own => json!({ MARK: OWN }),
            Self::Named(name) => json!({ MARK: name }),
        }
    }
}

/// Whether a value has the member of a mark anywhere within.
#[must_use]
pub fn has_mark(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key(MARK) || members.values().any(has_mark),
        Value::Array(items) => items.iter().any(has_mark),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Request to create a secret, or to replace one. It has a value or a provider.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretSpec {
    /// The value, any JSON value of at most 32 KiB; absent with a provider, or to keep the present value.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::value::present")]
    #[schema(value_type = Value, required = false)]
    pub value: Option<Value>,
    /// Name of a provider in the configuration of the servers, which reads the value each time that it is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the provider is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The profiles and nodes whose params may name it, as `profile/NAME` and `node/NAME`, the sinks that may sign with it, as
    /// `sink/NAME`, and the ensembles whose clients may use it as a password, as `ensemble/NAME`, each of which may end with `*`, at most
    /// 64. Unchanged if absent; all of a new secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<Vec<String>>,
    /// What it is for, at most 1,024 bytes. Unchanged if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Reason for the change, recorded in the history.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl std::fmt::Debug for SecretSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretSpec").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// A secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Secret {
    /// Name of the secret.
    pub name: String,
    /// Number of its last change, from 1.
    pub revision: u64,
    /// Name of the provider that has its value; absent if it is stored here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the provider is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The profiles and nodes whose params may name it, the sinks that may sign with it, and the ensembles whose clients may use it.
    pub readers: Vec<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of the last change, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// The reason that was given for the last change; may be empty.
    #[serde(default)]
    pub reason: String,
    /// The newest params that have its value, as `profile/NAME/KEY` and `node/NAME/KEY`, the sinks that sign with it, as `sink/NAME`, and
    /// the ensembles whose clients use it, as `ensemble/NAME`, each with the revision of the
    /// secret that they have. Only in the answer about one secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uses: BTreeMap<String, u64>,
    /// Number of further such params, of profiles and nodes that the caller may not read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden_uses: u64,
}

/// The value of a secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RevealedSecret {
    /// The value.
    #[schema(value_type = Value)]
    pub value: Value,
}

impl std::fmt::Debug for RevealedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RevealedSecret").finish_non_exhaustive()
    }
}

/// The secrets that a node may read: those of the params that its order names, and of those that reach it without a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NodeSecrets {
    /// The secrets of each set of params that has any.
    pub params: Vec<ParamSecrets>,
}

/// The secrets of one set of params.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ParamSecrets {
    /// Name of the profile; absent for the node's own params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Revision of the profile, or of the node's params.
    pub revision: u64,
    /// Their values, by the key of the param.
    #[schema(value_type = Object)]
    pub values: Params,
    /// Why others cannot be read now, by the key of the param.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, String>,
}

impl std::fmt::Debug for ParamSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = (&self.profile, self.revision, &self.unavailable);
        f.debug_tuple("ParamSecrets").field(&of).finish_non_exhaustive()
    }
}

/// A key that secrets are encrypted with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SecretKey {
    /// Id of the key: the first half of its fingerprint.
    pub id: String,
    /// Whether new secrets are encrypted with it.
    pub active: bool,
    /// The live servers that have it.
    pub servers: Vec<String>,
    /// Number of stored secrets that are encrypted with it, with the keys of certificate authorities.
    pub secrets: u64,
}

/// The keys that secrets are encrypted with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SecretKeys {
    /// The keys that a live server has or a stored secret needs, the newest first.
    pub keys: Vec<SecretKey>,
    /// What is wrong, and what to do about it.
    pub warnings: Vec<String>,
}

/// Stored record of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSecret {
    /// Name of the secret.
    pub name: String,
    /// Number of its last change, from 1.
    pub revision: u64,
    /// Its value, encrypted; absent with a provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<StoredCiphertext>,
    /// Name of the provider that has its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What the provider is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The profiles and nodes whose params may name it.
    pub readers: Vec<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of the last change, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// The reason that was given for the last change; may be empty.
    #[serde(default)]
    pub reason: String,
}

impl From<&core::Secret> for Secret {
    fn from(from: &core::Secret) -> Self {
        let (provider, reference) = provided(&from.source);
        Self {
            name: from.name.to_string(),
            revision: from.revision.get(),
            provider,
            reference,
            readers: from.readers.iter().map(ToString::to_string).collect(),
            description: from.description.clone(),
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
            uses: BTreeMap::new(),
            hidden_uses: 0,
        }
    }
}

fn provided(source: &core::SecretSource) -> (Option<String>, Option<String>) {
    match source {
        core::SecretSource::Stored(_) => (None, None),
        core::SecretSource::Provided { provider, reference } => {
            (Some(provider.to_string()), Some(reference.clone()))
        }
    }
}

impl From<&core::Secret> for StoredSecret {
    fn from(from: &core::Secret) -> Self {
        let (provider, reference) = provided(&from.source);
        let value = match &from.source {
            core::SecretSource::Stored(text) => Some(text.into()),
            core::SecretSource::Provided { .. } => None,
        };
        Self {
            name: from.name.to_string(),
            revision: from.revision.get(),
            value,
            provider,
            reference,
            readers: from.readers.iter().map(ToString::to_string).collect(),
            description: from.description.clone(),
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        }
    }
}

impl TryFrom<StoredSecret> for core::Secret {
    type Error = ShapeError;
    fn try_from(from: StoredSecret) -> Result<Self, ShapeError> {
        let source = match (from.value, from.provider) {
            (Some(text), _) => core::SecretSource::Stored(text.try_into()?),
            (None, Some(provider)) => core::SecretSource::Provided {
                provider: read("provider", &provider)?,
                reference: from.reference.unwrap_or_default(),
            },
            (None, None) => return Err(ShapeError::at("value", "a secret without a value or a provider")),
        };
        Ok(Self {
            name: read("name", &from.name)?,
            revision: SecretRevision::new(from.revision),
            source,
            readers: patterns("readers", &from.readers)?,
            description: from.description,
            annotation: Annotation {
                by: read("by", &from.by)?,
                at: Timestamp::from_millis(from.at_ms),
                reason: from.reason,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_an_object_of_one_member_and_is_found_at_any_depth() {
        let own = SecretMark::Own.to_value();
        assert_eq!(SecretMark::of(&own), Some(SecretMark::Own));
        let named = SecretMark::Named("db/password").to_value();
        assert_eq!(SecretMark::of(&named), Some(SecretMark::Named("db/password")));
        for other in [json!("***"), json!({"$secret": 1}), json!({"$secret": "a", "b": 1}), json!([own])] {
            assert_eq!(SecretMark::of(&other), None, "{other}");
        }
        assert!(has_mark(&json!({"a": [1, {"b": {"$secret": 1}}]})));
        assert!(!has_mark(&json!({"a": ["$secret", {"b": 1}]})));
    }

    #[test]
    fn what_has_a_value_is_not_printed_for_debugging() {
        let spec = SecretSpec { value: Some(json!("hunter2")), ..SecretSpec::default() };
        let read = ParamSecrets { values: [("a".to_owned(), json!("hunter2"))].into(), ..Default::default() };
        let printed = format!("{spec:?} {read:?} {:?}", RevealedSecret { value: json!("hunter2") });
        assert!(!printed.contains("hunter2"), "{printed}");
    }
}
