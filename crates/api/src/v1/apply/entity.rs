//! The document of an entity.

use std::collections::BTreeMap;

use bellwether_core::records::entity::{Entity, EntityKind};
use bellwether_core::words::version::Version;
use serde::{Deserialize, Serialize};

use super::ignored::Ignored;
use super::schema;
use crate::shape::object;
use crate::v1;
use crate::v1::entity::EntitySpec;
use crate::v1::external::settings::ExternalSettings;
use crate::v1::labels::labels_out;
use crate::v1::policy::Policy;

/// The desired state of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EntityDocument {
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::entity, required)]
    pub kind: Ignored,
    /// Entity name, a DNS label.
    #[schema(example = "web")]
    pub name: String,
    /// Namespace of the entity. Default: the namespace of the command.
    #[schema(example = "default")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels, at most 64; `apply --prune` selects objects by them.
    #[schema(example = json!({"app": "shop"}))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Selector of the nodes that are its targets, such as `role=web`; `all` for every node of the namespace.
    #[schema(example = "role=web")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selector: String,
    /// Settings of external targets, which controllers report; it takes the place of `selector`. An entity
    /// cannot change from one to the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSettings>,
    /// Name of the profile whose revisions are the entity's versions.
    #[schema(example = "greeting")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Name of the action, defined by each node's agent, whose runs are the entity's versions.
    #[schema(example = "backup")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Desired version; if it differs from the present one, a rollout is requested. With a profile, the
    /// profile's name stands for its newest revision. If absent, the version is left to `rollout start`.
    #[schema(example = "v2")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Reason for the version, recorded in the rollout's history; it is not compared.
    #[schema(example = "ticket 4711")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Rollout policy of the entity.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Who is responsible for the entity: one line of at most 256 bytes. Without it, nobody is named.
    #[schema(example = "shop team")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// What the entity is: one line of at most 1,000 bytes. Without it, the entity is not described.
    #[schema(example = "the shop's web servers")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Ignored.
    #[serde(default, skip_serializing_if = "Ignored::always")]
    #[schema(schema_with = schema::status)]
    pub status: Ignored,
}

impl EntityDocument {
    /// The document of an entity with `version` as its desired version.
    #[must_use]
    pub fn of(entity: &Entity, version: Option<&Version>) -> Self {
        let v1::entity::Entity {
            name, selector, external, profile, action, policy, owner, description, ..
        } = entity.into();
        // The version of an action's run is a number of its own, which a document cannot contain.
        let version = version.filter(|_| !matches!(entity.kind, EntityKind::Action(_)));
        Self {
            name,
            labels: labels_out(&entity.labels),
            selector,
            external,
            profile,
            action,
            version: version.map(ToString::to_string),
            policy,
            owner,
            description,
            ..Self::default()
        }
    }

    /// The entity specification that the document sets.
    #[must_use]
    pub fn spec(&self) -> EntitySpec {
        EntitySpec {
            selector: self.selector.clone(),
            external: self.external.clone(),
            profile: self.profile.clone(),
            action: self.action.clone(),
            policy: self.policy.clone(),
            owner: self.owner.clone(),
            description: self.description.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(owner: &str, description: &str) -> EntityDocument {
        let (owner, description) = (owner.to_owned(), description.to_owned());
        EntityDocument {
            name: "web".to_owned(),
            selector: "all".to_owned(),
            owner,
            description,
            ..EntityDocument::default()
        }
    }

    fn refused(document: &EntityDocument) -> Option<(String, String)> {
        document.spec().info().err().map(|error| (error.place, error.reason))
    }

    #[test]
    fn an_owner_and_a_description_are_one_line_each_of_limited_length() {
        let info = document(" shop team ", "").spec().info().unwrap();
        assert_eq!((info.owner.as_str(), info.description.as_str()), ("shop team", ""));
        assert_eq!(refused(&document(&"é".repeat(128), &"x".repeat(1_000))), None);
        let wrong = [
            (document(&"x".repeat(257), ""), "owner", "at most 256 bytes"),
            (document("a\nb", ""), "owner", "control character '\\n'"),
            (document("\u{1b}[31mred", ""), "owner", "control character '\\u{1b}'"),
            (document("", &"x".repeat(1_001)), "description", "at most 1000 bytes"),
            (document("", "a\tb"), "description", "control character '\\t'"),
        ];
        for (document, field, why) in wrong {
            let (place, reason) = refused(&document).unwrap();
            assert!(
                place == field && reason.starts_with("must be one line") && reason.contains(why),
                "{reason}"
            );
        }
    }
}
