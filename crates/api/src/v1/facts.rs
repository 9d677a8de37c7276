//! Facts of nodes: reports of agents and stored records, and the answer to a requested rescan.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::records::facts as core;
use bellwether_core::words::counter::RescanNumber;
use bellwether_core::words::facts::Facts;
use bellwether_core::words::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};
use crate::value::{json, value};

/// The facts of a node, as its agent reports them and as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NodeFacts {
    /// Node name.
    pub node: String,
    /// Number of the last rescan that the agent did; 0 if it did none.
    #[serde(default)]
    pub rescan: u64,
    /// Time of the report, in milliseconds since the Unix epoch, by the server's clock; what an agent sends is ignored.
    #[serde(default)]
    pub received_at_ms: u64,
    /// The facts by name: at most 64, and 64 KiB.
    #[schema(value_type = Object)]
    pub facts: BTreeMap<String, serde_json::Value>,
}

/// A requested rescan of a node's facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RequestedRescan {
    /// Its number. The rescan is done once the node shows this number, or a larger one, as `facts.rescan`.
    pub rescan: u64,
}

impl From<&core::NodeFacts> for NodeFacts {
    fn from(from: &core::NodeFacts) -> Self {
        Self {
            node: from.node.to_string(),
            rescan: from.rescan.get(),
            received_at_ms: from.received_at.as_millis(),
            facts: from.facts.iter().map(|(name, value)| (name.to_owned(), json(value))).collect(),
        }
    }
}

impl TryFrom<NodeFacts> for core::NodeFacts {
    type Error = ShapeError;
    fn try_from(from: NodeFacts) -> Result<Self, ShapeError> {
        let facts = from.facts.iter().map(|(name, fact)| (Arc::from(name.as_str()), value(fact)));
        Ok(Self {
            node: read("node", &from.node)?,
            received_at: Timestamp::from_millis(from.received_at_ms),
            rescan: RescanNumber::new(from.rescan),
            facts: Facts::new(facts.collect()).map_err(|error| ShapeError::at("facts", error))?,
        })
    }
}
