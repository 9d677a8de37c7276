//! Declared params: requests, answers and stored records.

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::param as core;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shape::{ShapeError, read};

/// Request to declare a param, or to change its declaration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamSpec {
    /// JSON Schema (2020-12) of its values, without references, at most 16 KiB; any value if it is empty.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub schema: serde_json::Map<String, Value>,
    /// Value for nodes that have none from elsewhere; no default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::value::present")]
    #[schema(value_type = Value, required = false)]
    pub default: Option<Value>,
    /// What the param is for, at most 1,024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether its values are secrets: encrypted where they are stored, and shown to nobody who may not reveal them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
}

/// A declared param.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Param {
    /// Key of the param.
    pub key: String,
    /// JSON Schema (2020-12) of its values.
    #[schema(value_type = Object)]
    pub schema: Value,
    /// Value for nodes that have none from elsewhere; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::value::present")]
    #[schema(value_type = Value, required = false)]
    pub default: Option<Value>,
    /// What the param is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether its values are secrets: encrypted where they are stored, and shown to nobody who may not reveal them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Name of the token that declared it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
}

/// Stored record of a declared param.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredParam {
    /// Key of the param.
    pub key: String,
    /// JSON Schema (2020-12) of its values.
    pub schema: Value,
    /// What the param is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether its values are secrets: encrypted where they are stored, and shown to nobody who may not reveal them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Name of the token that declared it last.
    pub by: String,
    /// Time of that, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
}

impl TryFrom<&core::ParamDeclaration> for StoredParam {
    type Error = ShapeError;
    fn try_from(from: &core::ParamDeclaration) -> Result<Self, ShapeError> {
        Ok(Self {
            key: from.key.to_string(),
            schema: serde_json::from_str(&from.schema).map_err(|error| ShapeError::at("schema", error))?,
            description: from.description.clone(),
            secret: from.secret,
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
        })
    }
}

impl TryFrom<StoredParam> for core::ParamDeclaration {
    type Error = ShapeError;
    fn try_from(from: StoredParam) -> Result<Self, ShapeError> {
        Ok(Self {
            key: read("key", &from.key)?,
            schema: from.schema.to_string(),
            description: from.description,
            secret: from.secret,
            annotation: Annotation::of(read("by", &from.by)?, Timestamp::from_millis(from.at_ms)),
        })
    }
}
