//! Documents of shared data: declared params, the params and profiles of nodes, and saved filters. They carry no labels, and are never pruned.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ignored::Ignored;
use super::schema;
use crate::v1::filter::{DEFAULT_LIST, Filter, FilterSpec};
use crate::v1::node_params::{NodeParams, NodeProfiles};
use crate::v1::param::{Param, ParamSpec};
use crate::v1::profile::{Params, ParamsSpec};

/// The desired declaration of a param.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParamDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::param, required)]
    pub kind: Ignored,
    /// Key of the param.
    #[schema(example = "web/workers")]
    pub name: String,
    /// Namespace of the param. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// JSON Schema (2020-12) of its values, without references, at most 16 KiB; any value if it is empty.
    #[schema(value_type = Object, example = json!({"type": "integer"}))]
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub schema: Map<String, Value>,
    /// Value for nodes that have none from elsewhere; there is none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::value::present")]
    #[schema(value_type = Value, required = false)]
    pub default: Option<Value>,
    /// What the param is for, at most 1,024 bytes.
    #[schema(example = "worker processes of the web server")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether its values are secrets: encrypted where they are stored, and shown to nobody who may not reveal them.
    #[schema(example = false)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

/// The desired params of a node, and the profiles that it reads. The node must exist, or be expected.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::node, required)]
    pub kind: Ignored,
    /// Node name.
    #[schema(example = "web-1")]
    pub name: String,
    /// Namespace of the node. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// All params of the node's own.
    #[schema(value_type = Object, example = json!({"web/workers": 8}))]
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// The profiles that it reads, the one that takes precedence first; up to 32.
    #[schema(example = json!(["site-a"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// Reason for the change, recorded in its event; it is not compared.
    #[schema(example = "the machine has more cores")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

/// The desired text of a saved filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::filter, required)]
    pub kind: Ignored,
    /// Filter name, a DNS label.
    #[schema(example = "old")]
    pub name: String,
    /// Namespace of the filter. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The list that it is of, as its path ends. Default nodes.
    #[schema(example = "nodes")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The filter; it may name other saved filters as `@NAME`.
    #[schema(example = "age > 30d and not cordoned")]
    pub filter: String,
    /// What it is for, at most 1,024 bytes.
    #[schema(example = "machines to replace")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

impl FilterDocument {
    /// The document of a saved filter.
    #[must_use]
    pub fn of(filter: Filter) -> Self {
        let Filter { name, of, filter, description, .. } = filter;
        Self { name, of: Some(of), filter, description, ..Self::default() }
    }

    /// What the document saves.
    #[must_use]
    pub fn spec(&self) -> FilterSpec {
        FilterSpec {
            of: self.of.clone().unwrap_or_else(|| DEFAULT_LIST.to_owned()),
            filter: self.filter.clone(),
            description: self.description.clone(),
        }
    }
}

impl ParamDocument {
    /// The document of a declared param.
    #[must_use]
    pub fn of(param: Param) -> Self {
        let Param { key: name, schema, default, description, secret, .. } = param;
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        };
        Self { name, schema, default, description, secret, ..Self::default() }
    }

    /// The declaration that the document sets.
    #[must_use]
    pub fn spec(&self) -> ParamSpec {
        ParamSpec {
            schema: self.schema.clone(),
            default: self.default.clone(),
            description: self.description.clone(),
            secret: self.secret,
        }
    }
}

impl NodeDocument {
    /// The document of what a node has.
    #[must_use]
    pub fn of(node: NodeParams) -> Self {
        let NodeParams { node: name, params, profiles, .. } = node;
        Self { name, params, profiles, ..Self::default() }
    }

    /// The params that the document sets.
    #[must_use]
    pub fn params_spec(&self) -> ParamsSpec {
        ParamsSpec { params: self.params.clone(), if_equal: None, reason: self.reason.clone() }
    }

    /// The profiles that the document sets.
    #[must_use]
    pub fn profiles_spec(&self) -> NodeProfiles {
        NodeProfiles { profiles: self.profiles.clone(), reason: self.reason.clone() }
    }
}
