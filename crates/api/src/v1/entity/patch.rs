//! A change of single fields of an entity. Two people who change different fields at once both succeed.

use serde::{Deserialize, Serialize};

use super::{Entity, EntitySpec};
use crate::shape::{ShapeError, object, some_object};
use crate::v1::external::settings::ExternalSettings;
use crate::v1::policy::Policy;

/// Fields of an entity to change; absent fields stay as they are. Creates the entity if it does not exist and `selector` or
/// `external` is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EntityPatch {
    /// Selector of the nodes that are its targets.
    #[schema(example = "role=web")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Settings of external targets to change.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSettings>,
    /// Name of the profile of a new entity; an existing one keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Name of the action of a new entity; an existing one keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Fields of the policy to set.
    #[serde(default, deserialize_with = "object")]
    pub policy: Policy,
    /// Names of policy fields that take their defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
    /// Who is responsible for the entity; empty for no one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What the entity is; empty for no description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// An entity before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PatchedEntity {
    /// The entity as it was; absent if it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Entity>,
    /// The entity as it is now.
    pub after: Entity,
    /// What to know of the entity as it is now; absent if there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// What to know of an entity that was set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EntityWarning {
    /// What is valid and may not be meant; absent if there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl EntityPatch {
    /// The whole entity with these changes; `None` if there is none to change and no targets are named.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn applied_to(&self, old: Option<&Entity>) -> Result<Option<EntitySpec>, ShapeError> {
        if self.selector.is_some() && self.external.is_some() {
            return Err(ShapeError::at("selector", "selector and external exclude each other"));
        }
        if old.is_none() && self.selector.is_none() && self.external.is_none() {
            return Ok(None);
        }
        let (selector, external) = match (&self.selector, &self.external, old) {
            (Some(selector), _, _) => (selector.clone(), None),
            (None, Some(given), old) => {
                let kept = old.and_then(|old| old.external.clone()).unwrap_or_default();
                let settings = ExternalSettings {
                    unreachable_after: given.unreachable_after.clone().or(kept.unreachable_after),
                    remove_after: given.remove_after.clone().or(kept.remove_after),
                };
                (String::new(), Some(settings))
            }
            (None, None, Some(old)) => (old.selector.clone(), old.external.clone()),
            (None, None, None) => (String::new(), None),
        };
        let kept = old.map(|old| old.policy.clone()).unwrap_or_default();
        let text =
            |new: &Option<String>, old: Option<&String>| new.as_ref().or(old).cloned().unwrap_or_default();
        Ok(Some(EntitySpec {
            selector,
            external,
            profile: self.profile.clone(),
            action: self.action.clone(),
            policy: kept.without(&self.unset)?.overlaid(self.policy.clone()),
            owner: text(&self.owner, old.map(|old| &old.owner)),
            description: text(&self.description, old.map(|old| &old.description)),
        }))
    }
}
