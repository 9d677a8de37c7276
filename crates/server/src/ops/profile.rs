//! Profiles: changing, replacing, deleting. Each change is a new revision; whoever names the one it must follow either
//! gets the very next or changes nothing. What runs where is the rollouts' business.

use std::collections::BTreeSet;

use bellwether_api::shape::{ShapeError, reason};
use bellwether_api::v1::profile::{Params, ProfilePatch, ProfileSpec, canonical, params};
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::profile::{Profile, ProfileRevision};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::{Actor, Namespace, ProfileName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;
use bellwether_core::world::version_resolution::MAX_EDITIONS;
use serde_json::Value;

use super::expectation::{ChangeError, Mismatch, compare, pointer};
use super::json_change::{JsonChange, Rejection};
use super::scope::ProfileScope;
use super::{OpError, cause, event};
use crate::transactor::Transactor;

/// Sets and removes single params; a new profile is made of what is set. Answers the newest revision, which is a new one
/// only if that changes anything.
///
/// # Errors
/// [`OpError::Invalid`] naming the param; [`OpError::NotFound`] for a key to remove; [`OpError::Moved`] when the profile is
/// not at the revision that was named; [`OpError::Differs`] when a param is not as expected.
pub async fn patch(
    transactor: &Transactor,
    scope: ProfileScope<'_>,
    patch: ProfilePatch,
) -> Result<ProfileRevision, OpError> {
    let intent = ProfileChange { scope, reason: reason(&patch.reason)? };
    if let Some(key) = patch.remove.iter().find(|key| patch.set.contains_key(*key)) {
        return Err(ShapeError::at("remove", format!("{key:?} is also in set")).into());
    }
    let keys = patch.if_equal.iter().map(|(key, value)| (key, Some(value)));
    let expected: Vec<(&String, Option<&Value>)> =
        keys.chain(patch.if_absent.iter().map(|key| (key, None))).collect();
    intent
        .run(transactor, |before| {
            for (key, expected) in &expected {
                compare(&pointer(key), before.get(*key), *expected)?;
            }
            let mut params = before.clone();
            for key in &patch.remove {
                let missing = || OpError::NotFound(format!("param {key:?} in profile {}", scope.profile));
                params.remove(key).ok_or_else(missing)?;
            }
            params.extend(patch.set.clone());
            Ok(params)
        })
        .await
}

/// Changes the params as a JSON Patch or a JSON Merge Patch of the object of all params describes it. Answers the newest
/// revision, which is a new one only if that changes anything.
///
/// # Errors
/// As [`patch`]; [`OpError::Invalid`] naming the operation that does not fit.
pub async fn change(
    transactor: &Transactor,
    scope: ProfileScope<'_>,
    change: &JsonChange,
    why: &str,
) -> Result<ProfileRevision, OpError> {
    let intent = ProfileChange { scope, reason: reason(why)? };
    intent
        .run(transactor, |before| {
            let object = Value::Object(before.clone().into_iter().collect());
            match change.applied_to(&object) {
                Ok(Value::Object(params)) => Ok(params.into_iter().collect()),
                Ok(_) => Err(ShapeError::at("the params", "expected an object after the change").into()),
                Err(Rejection::Invalid(error)) => Err(error.into()),
                Err(Rejection::Differs { pointer, value, expected }) => {
                    Err(Mismatch { pointer, found: value, expected: Some(expected) }.into())
                }
            }
        })
        .await
}

/// Sets all params. Answers the newest revision, which is a new one only if that changes anything.
///
/// # Errors
/// As [`patch`].
pub async fn set(
    transactor: &Transactor,
    scope: ProfileScope<'_>,
    spec: ProfileSpec,
) -> Result<ProfileRevision, OpError> {
    let intent = ProfileChange { scope, reason: reason(&spec.reason)? };
    intent
        .run(transactor, |before| {
            let expected = spec.if_equal.as_ref();
            let keys: BTreeSet<&String> =
                expected.into_iter().flat_map(|expected| expected.keys().chain(before.keys())).collect();
            for key in keys {
                compare(&pointer(key), before.get(key), expected.and_then(|expected| expected.get(key)))?;
            }
            Ok(spec.params.clone())
        })
        .await
}

/// Deletes a profile and all its revisions. Its name goes on counting.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] while an entity uses it.
pub async fn delete(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &ProfileName,
) -> Result<(), OpError> {
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let head = fleet.profile(name).ok_or_else(|| OpError::NotFound(format!("profile {name}")))?;
            if let Some(entity) = fleet.entities_of(name).next() {
                let reason = format!("delete profile {name}: entity {} uses it", entity.name);
                let hint = format!("bellwether entity delete {}", entity.name);
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            let annotation = Annotation::of(actor.clone(), now);
            let gone = Profile { deleted: true, annotation, labels: Labels::default(), ..head.clone() };
            let profile_revisions = fleet.revisions_of(name).map(|profile_revision| profile_revision.number);
            let mut writes = vec![Write::put(Record::Profile(gone))];
            writes.extend(
                profile_revisions.map(|number| Write::delete(Key::ProfileRevision(name.clone(), number))),
            );
            let event = event("profile.deleted", format!("profile/{name}"), "files stay as they are");
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

/// A change of a profile, and its reason.
struct ProfileChange<'a> {
    scope: ProfileScope<'a>,
    reason: String,
}

impl ProfileChange<'_> {
    async fn run(
        &self,
        transactor: &Transactor,
        mut change: impl FnMut(&Params) -> Result<Params, ChangeError>,
    ) -> Result<ProfileRevision, OpError> {
        let ProfileScope { namespace, actor, .. } = self.scope;
        transactor.change(namespace, actor, |_, fleet, now| self.write(fleet, now, &mut change)).await
    }

    /// The next revision, with the params that `change` makes of those before; the newest one, and nothing to write, if they
    /// are the same.
    fn write(
        &self,
        fleet: &Fleet,
        now: Timestamp,
        change: impl FnOnce(&Params) -> Result<Params, ChangeError>,
    ) -> Result<(Option<Changeset>, ProfileRevision), OpError> {
        let ProfileScope { profile: name, actor, only_at, .. } = self.scope;
        let head = fleet.profile(name);
        let newest = head.map_or(ProfileRevisionNumber::ZERO, |head| head.newest);
        if let Some(wanted) = only_at.filter(|wanted| *wanted != newest.get()) {
            return Err(moved(name, wanted, head));
        }
        let before = fleet.profile_revisions.get(&(name.clone(), newest)).map(|kept| &*kept.value);
        let params_before = before.map(|before| params(&before.params)).transpose()?.unwrap_or_default();
        let changed = change(&params_before).map_err(|error| match error {
            ChangeError::Other(error) => error,
            ChangeError::Differs(mismatch) => {
                let hint = format!("bellwether profile get {name}");
                mismatch.refusing(&format!("change profile {name}"), newest.get(), hint)
            }
        });
        let text = canonical(&changed?)?;
        if let Some(same) = before.filter(|before| before.params == text) {
            return Ok((None, same.clone()));
        }
        // A deleted profile of this name is gone on from: nodes may still keep params by its numbers.
        let last = fleet.profiles.get(name).map_or(ProfileRevisionNumber::ZERO, |kept| kept.value.newest);
        let annotation = Annotation { by: actor.clone(), reason: self.reason.clone(), at: now };
        let (profile, number) = (name.clone(), last.next());
        let profile_revision =
            ProfileRevision { profile, number, params: text, annotation: annotation.clone() };
        let labels = head.map(|head| head.labels.clone()).unwrap_or_default();
        let head = Profile { name: name.clone(), newest: number, deleted: false, annotation, labels };
        let forgotten = forgotten(fleet, name)?;
        let mut writes = vec![
            Write::put(Record::Profile(head)),
            Write::put(Record::ProfileRevision(profile_revision.clone())),
        ];
        writes.extend(
            forgotten.into_iter().map(|number| Write::delete(Key::ProfileRevision(name.clone(), number))),
        );
        let mut event = event("profile.changed", format!("profile/{name}"), cause(&self.reason));
        event.before = before.map(|before| before.number.to_string());
        event.after = Some(number.to_string());
        Ok((Some(Changeset { writes, events: vec![event] }), profile_revision))
    }
}

/// The revisions that make room for one more.
fn forgotten(fleet: &Fleet, name: &ProfileName) -> Result<Vec<ProfileRevisionNumber>, OpError> {
    let forgotten = fleet.forgettable(name);
    let kept = fleet.revisions_of(name).count().saturating_sub(forgotten.len());
    if kept < MAX_EDITIONS {
        return Ok(forgotten);
    }
    let reason = format!("change profile {name}: {kept} of its revisions are still in use");
    let hint = "update its entities' targets to a newer revision: bellwether status".to_owned();
    Err(OpError::Refused { reason, hint: Some(hint) })
}

fn moved(name: &ProfileName, wanted: u64, head: Option<&Profile>) -> OpError {
    let what = if wanted == 0 {
        format!("create profile {name}")
    } else {
        format!("change profile {name} at revision {wanted}")
    };
    match head {
        Some(head) => {
            let Profile { newest, annotation: Annotation { by, .. }, .. } = head;
            let found = if wanted == 0 { "it exists, at revision" } else { "it is at revision" };
            let reason = format!("{what}: {found} {newest}, by {by}; nothing was changed");
            OpError::Moved { reason, hint: format!("bellwether profile get {name}") }
        }
        None => OpError::Moved {
            reason: format!("{what}: there is no such profile; nothing was changed"),
            hint: format!("bellwether profile set {name} KEY=VALUE --if-revision 0"),
        },
    }
}
