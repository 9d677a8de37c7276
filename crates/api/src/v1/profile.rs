//! Profiles and their revisions: requests, answers and stored records.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::profile as core;
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::name::{MAX_PARAM_KEY_BYTES, ParamKey};
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::labels::{labels_in, labels_out};
use super::secret_values::{StoredSecretValues, values_in, values_out};
use crate::shape::{ShapeError, read};

/// Deepest nesting of a param's value. Stored and sent forms nest it further and must remain readable for
/// every parser.
const MAX_DEPTH: usize = 32;

/// Params by key; a value is any JSON value.
pub type Params = BTreeMap<String, Value>;

/// A profile, with the number of its newest revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Profile {
    /// Profile name, a DNS label.
    pub name: String,
    /// Number of the newest revision.
    pub revision: u64,
    /// Whether the profile is deleted; a profile that is created again under this name continues its revision
    /// numbers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Whether a change reaches the nodes that read the profile at once, without a rollout.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// Name of the token that changed it last.
    pub by: String,
    /// Time of the last change, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// The reason that was given for the last change; may be empty.
    #[serde(default)]
    pub reason: String,
    /// Labels that `apply` set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// One revision of a profile. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProfileRevision {
    /// Profile name.
    pub profile: String,
    /// Number of the revision, from 1.
    pub revision: u64,
    /// All params of the revision.
    #[schema(value_type = Object)]
    pub params: Params,
    /// Name of the token that created it.
    pub by: String,
    /// Time of its creation, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// The reason that was given; may be empty.
    #[serde(default)]
    pub reason: String,
}

/// Request to change some params of a profile or a node; creates the profile if it does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamsPatch {
    /// Params to set.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub set: Params,
    /// Keys of params to remove; each must exist.
    #[serde(default)]
    pub remove: Vec<String>,
    /// Params that must have these values; otherwise nothing changes.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    #[schema(value_type = Object)]
    pub if_equal: Params,
    /// Keys of params that must not exist; otherwise nothing changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub if_absent: Vec<String>,
    /// Reason for the change, recorded in the history.
    #[serde(default)]
    pub reason: String,
}

/// Request to replace all params of a profile or a node; creates the profile if it does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamsSpec {
    /// All params of the new revision.
    #[schema(value_type = Object)]
    pub params: Params,
    /// All params that there must be; otherwise nothing changes. Not compared if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub if_equal: Option<Params>,
    /// Reason for the change, recorded in the history.
    #[serde(default)]
    pub reason: String,
}

/// Request to make a profile live, or no longer live.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileLive {
    /// Whether a change reaches the nodes that read the profile at once, without a rollout.
    pub live: bool,
    /// Reason for the change, recorded in the history.
    #[serde(default)]
    pub reason: String,
}

/// Parses params from their stored text.
///
/// # Errors
/// [`ShapeError`] at `params`.
pub fn params(text: &str) -> Result<Params, ShapeError> {
    serde_json::from_str(text).map_err(|error| ShapeError::at("params", error))
}

/// The stored text of params: JSON with ordered keys and without spaces.
///
/// # Errors
/// [`ShapeError`] at `params`, naming a key that is not valid, or when the text is too long.
pub fn canonical(params: &Params) -> Result<String, ShapeError> {
    for (key, value) in params {
        if depth(value) > MAX_DEPTH {
            let reason = format!("the value of {key:?} is nested more than {MAX_DEPTH} levels deep");
            return Err(ShapeError::at("params", reason));
        }
        if ParamKey::parse(key).is_err() {
            let reason = format!(
                "{key:?} is not a valid key: use 1 to {MAX_PARAM_KEY_BYTES} letters, digits and '_ - . /'"
            );
            return Err(ShapeError::at("params", reason));
        }
    }
    let text = serde_json::to_string(params).map_err(|error| ShapeError::at("params", error))?;
    if text.len() > core::MAX_PARAMS_BYTES {
        let (long, most) = (text.len(), core::MAX_PARAMS_BYTES);
        let reason = format!("{long} bytes as JSON, at most {most} allowed; split the profile");
        return Err(ShapeError::at("params", reason));
    }
    Ok(text)
}

/// Depth of a value; a scalar has depth 1. Parsed JSON is at most 128 deep, so this cannot exhaust the stack.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => fields.values().map(depth).max().unwrap_or_default(),
    };
    inner + 1
}

impl From<&core::Profile> for Profile {
    fn from(from: &core::Profile) -> Self {
        Self {
            name: from.name.to_string(),
            revision: from.newest.get(),
            deleted: from.deleted,
            live: from.live,
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
            labels: labels_out(&from.labels),
        }
    }
}

impl TryFrom<Profile> for core::Profile {
    type Error = ShapeError;
    fn try_from(from: Profile) -> Result<Self, ShapeError> {
        Ok(Self {
            name: read("name", &from.name)?,
            newest: ProfileRevisionNumber::new(from.revision),
            deleted: from.deleted,
            live: from.live,
            annotation: Annotation {
                by: read("by", &from.by)?,
                at: Timestamp::from_millis(from.at_ms),
                reason: from.reason,
            },
            labels: labels_in(&from.labels)?,
        })
    }
}

impl TryFrom<&core::ProfileRevision> for ProfileRevision {
    type Error = ShapeError;
    fn try_from(from: &core::ProfileRevision) -> Result<Self, ShapeError> {
        Ok(Self {
            profile: from.profile.to_string(),
            revision: from.number.get(),
            params: params(&from.params)?,
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        })
    }
}

/// Stored record of a revision of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredProfileRevision {
    /// The revision as everybody may see it, with marks in place of secrets.
    #[serde(flatten)]
    pub revision: ProfileRevision,
    /// The values of the secrets, encrypted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: StoredSecretValues,
}

impl TryFrom<&core::ProfileRevision> for StoredProfileRevision {
    type Error = ShapeError;
    fn try_from(from: &core::ProfileRevision) -> Result<Self, ShapeError> {
        Ok(Self { revision: from.try_into()?, secrets: values_out(&from.secrets) })
    }
}

impl TryFrom<StoredProfileRevision> for core::ProfileRevision {
    type Error = ShapeError;
    fn try_from(from: StoredProfileRevision) -> Result<Self, ShapeError> {
        let StoredProfileRevision { revision: from, secrets } = from;
        Ok(Self {
            secrets: values_in(secrets)?,
            profile: read("profile", &from.profile)?,
            number: ProfileRevisionNumber::new(from.revision),
            params: canonical(&from.params)?,
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
    fn params_have_one_form_whatever_order_they_came_in() {
        let one = params(r#"{"b": {"y":1, "x":[true,null]}, "a": "ü"}"#).unwrap();
        assert_eq!(canonical(&one).unwrap(), r#"{"a":"ü","b":{"x":[true,null],"y":1}}"#);
    }

    #[test]
    fn keys_that_are_none_and_too_much_of_it_are_refused_with_what_is_allowed() {
        for bad in ["", "a b", "ä", "a{b", &"k".repeat(129)] {
            let error = canonical(&Params::from([(bad.to_owned(), Value::Null)])).unwrap_err();
            assert!(error.to_string().contains("letters, digits"), "{error}");
        }
        let nested =
            |levels: usize| params(&format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels)));
        assert!(canonical(&nested(MAX_DEPTH).unwrap()).is_ok());
        let error = canonical(&nested(MAX_DEPTH + 1).unwrap()).unwrap_err().to_string();
        assert!(error.contains("nested more than 32 levels deep"), "{error}");
        let long = Value::String("x".repeat(core::MAX_PARAMS_BYTES));
        let error = canonical(&Params::from([("a".to_owned(), long)])).unwrap_err().to_string();
        assert!(error.contains("65536"), "{error}");
    }
}
