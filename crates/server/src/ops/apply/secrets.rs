//! Changes of secret values, which no comparison of documents shows.

use bellwether_api::v1::apply::FieldChange;
use bellwether_core::records::secret::{SecretValue, SecretValues};
use bellwether_core::world::fleet::Fleet;

use super::object::ObjectId;

/// The secret values of an object; none of an object without params.
pub(super) fn of(id: &ObjectId, fleet: &Fleet) -> SecretValues {
    let found = match id {
        ObjectId::Node(name) => fleet.node_params.get(name).map(|kept| &kept.value.secrets),
        ObjectId::Profile(name) => fleet.profile(name).and_then(|head| {
            let newest = fleet.profile_revisions.get(&(name.clone(), head.newest))?;
            Some(&newest.value.secrets)
        }),
        ObjectId::Cluster(_)
        | ObjectId::Ensemble(_)
        | ObjectId::Definition(_)
        | ObjectId::Entity(_)
        | ObjectId::Filter(_)
        | ObjectId::Freeze(_)
        | ObjectId::GlobalFreeze(_)
        | ObjectId::Param(_)
        | ObjectId::Pause(_)
        | ObjectId::Schedule(_)
        | ObjectId::Reaction(_)
        | ObjectId::Sink(_)
        | ObjectId::Slot(_) => None,
    };
    found.cloned().unwrap_or_default()
}

/// The params whose secret value changes and whose mark does not.
pub(super) fn changes(before: &SecretValues, after: &SecretValues) -> Vec<FieldChange> {
    let shown = |value: &SecretValue| match value {
        SecretValue::Own(_) => "***".to_owned(),
        SecretValue::Copy { secret, revision, .. } => format!("revision {revision} of secret {secret}"),
    };
    let changed = after.iter().filter_map(|(key, new)| {
        let old = before.get(key).filter(|old| *old != new)?;
        let same_mark = match (old, new) {
            (SecretValue::Own(_), SecretValue::Own(_)) => true,
            (SecretValue::Copy { secret: old, .. }, SecretValue::Copy { secret: new, .. }) => old == new,
            (SecretValue::Own(_), SecretValue::Copy { .. })
            | (SecretValue::Copy { .. }, SecretValue::Own(_)) => false,
        };
        let field = format!("params.{key}");
        same_mark.then(|| FieldChange { field, old: Some(shown(old)), new: Some(shown(new)) })
    });
    changed.collect()
}
