//! Documents of reactions.

use std::collections::BTreeMap;

use bellwether_core::records::reaction as core;
use serde::{Deserialize, Serialize};

use super::ignored::Ignored;
use super::schema;
use crate::shape::object;
use crate::v1::policy::Policy;
use crate::v1::reaction::{Reaction, ReactionSpec};

/// The desired state of a reaction to conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReactionDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::reaction, required)]
    pub kind: Ignored,
    /// Reaction name, a DNS label.
    #[schema(example = "promote")]
    pub name: String,
    /// Namespace of the reaction. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Filter of the conditions that it is about, over `condition`, `cluster`, `node` and `probe`.
    #[schema(example = "condition = no_primary and cluster = db")]
    pub on: String,
    /// Name of the workflow; it need not exist yet.
    #[schema(example = "promote-replica")]
    pub workflow: String,
    /// The nodes that run it: `subject` (the node of which the condition is true), `manager` or `members` (of the cluster), or a filter of
    /// nodes. Default `subject`.
    #[schema(example = "manager")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// How long the condition must have been true, at most `24h`. Default `0s`.
    #[schema(example = "30s")]
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    /// How long after a firing there is no other for the same subject, at most `24h`. Default `10m`.
    #[schema(example = "10m")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<String>,
    /// Most firings within an hour, for all subjects, 1 to 60. Default 6.
    #[schema(example = 6)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_hour: Option<u32>,
    /// Whether it starts nothing. Default false.
    #[schema(example = false)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Policy of its runs; absent fields take their defaults, as for a run that is started by hand.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Reason for the change, recorded in its event; it is not compared.
    #[schema(example = "agreed with the owners of the data")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

impl ReactionDocument {
    /// The document of a reaction.
    #[must_use]
    pub fn of(reaction: &core::Reaction) -> Self {
        let shape = Reaction::from(reaction);
        let ReactionSpec { on, workflow, nodes, hold, cooldown, max_per_hour, suspended, policy, .. } =
            shape.spec();
        Self {
            name: shape.name,
            labels: shape.labels,
            on,
            workflow,
            nodes,
            hold,
            cooldown,
            max_per_hour,
            suspended,
            policy,
            ..Self::default()
        }
    }

    /// The reaction that the document sets.
    #[must_use]
    pub fn spec(&self) -> ReactionSpec {
        ReactionSpec {
            on: self.on.clone(),
            workflow: self.workflow.clone(),
            nodes: self.nodes.clone(),
            hold: self.hold.clone(),
            cooldown: self.cooldown.clone(),
            max_per_hour: self.max_per_hour,
            suspended: self.suspended,
            policy: self.policy.clone(),
            reason: self.reason.clone(),
        }
    }
}
