//! Profiles: changing, replacing, deleting. Each change is a new revision; whoever names the one it must follow either
//! gets the very next or changes nothing. What runs where is the rollouts' business.

use bellwether_api::shape::ShapeError;
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

use super::{OpError, cause, event, reason};
use crate::transactor::Transactor;

/// Sets and removes single params; a new profile is made of what is set. Answers the newest revision, which is a new one
/// only if that changes anything.
///
/// # Errors
/// [`OpError::Invalid`] naming the param; [`OpError::NotFound`] for a key to remove; [`OpError::Moved`] when the profile is
/// not at the revision that was named.
pub async fn patch(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &ProfileName,
    patch: ProfilePatch,
) -> Result<ProfileRevision, OpError> {
    let intent = ProfileChange { actor, reason: reason(&patch.reason)?, reference: patch.reference };
    if let Some(key) = patch.remove.iter().find(|key| patch.set.contains_key(*key)) {
        return Err(ShapeError::at("remove", format!("{key:?} is also in set")).into());
    }
    transactor
        .change(namespace, actor, |_, fleet, now| {
            write(fleet, name, &intent, now, |before| {
                let mut params = before.cloned().unwrap_or_default();
                for key in &patch.remove {
                    let missing = || OpError::NotFound(format!("param {key:?} in profile {name}"));
                    params.remove(key).ok_or_else(missing)?;
                }
                params.extend(patch.set.clone());
                Ok(params)
            })
        })
        .await
}

/// Sets all params. Answers the newest revision, which is a new one only if that changes anything.
///
/// # Errors
/// [`OpError::Invalid`] naming the param; [`OpError::Moved`] when the profile is not at the revision that was named.
pub async fn set(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    name: &ProfileName,
    spec: ProfileSpec,
) -> Result<ProfileRevision, OpError> {
    let intent = ProfileChange { actor, reason: reason(&spec.reason)?, reference: spec.reference };
    transactor
        .change(namespace, actor, |_, fleet, now| {
            write(fleet, name, &intent, now, |_| Ok(spec.params.clone()))
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

/// Who changes a profile, why, and what it must be at.
struct ProfileChange<'a> {
    actor: &'a Actor,
    reason: String,
    reference: Option<u64>,
}

/// The next revision, with the params that `change` makes of those before; the newest one, and nothing to write, if they
/// are the same.
fn write(
    fleet: &Fleet,
    name: &ProfileName,
    intent: &ProfileChange,
    now: Timestamp,
    change: impl FnOnce(Option<&Params>) -> Result<Params, OpError>,
) -> Result<(Option<Changeset>, ProfileRevision), OpError> {
    let head = fleet.profile(name);
    let newest = head.map_or(ProfileRevisionNumber::ZERO, |head| head.newest);
    if let Some(wanted) = intent.reference.filter(|wanted| *wanted != newest.get()) {
        return Err(moved(name, wanted, head));
    }
    let before = fleet.profile_revisions.get(&(name.clone(), newest)).map(|kept| &*kept.value);
    let params_before = before.map(|profile_revision| params(&profile_revision.params)).transpose()?;
    let text = canonical(&change(params_before.as_ref())?)?;
    if let Some(same) = before.filter(|before| before.params == text) {
        return Ok((None, same.clone()));
    }
    // A deleted profile of this name is gone on from: nodes may still keep params by its numbers.
    let last = fleet.profiles.get(name).map_or(ProfileRevisionNumber::ZERO, |kept| kept.value.newest);
    let annotation = Annotation { by: intent.actor.clone(), reason: intent.reason.clone(), at: now };
    let profile_revision = ProfileRevision {
        profile: name.clone(),
        number: last.next(),
        params: text,
        annotation: annotation.clone(),
    };
    let labels = head.map(|head| head.labels.clone()).unwrap_or_default();
    let head =
        Profile { name: name.clone(), newest: profile_revision.number, deleted: false, annotation, labels };
    let forgotten = forgotten(fleet, name)?;
    let mut writes = vec![
        Write::put(Record::Profile(head)),
        Write::put(Record::ProfileRevision(profile_revision.clone())),
    ];
    writes.extend(
        forgotten.into_iter().map(|number| Write::delete(Key::ProfileRevision(name.clone(), number))),
    );
    let mut event = event("profile.changed", format!("profile/{name}"), cause(&intent.reason));
    event.before = before.map(|before| before.number.to_string());
    event.after = Some(profile_revision.number.to_string());
    Ok((Some(Changeset { writes, events: vec![event] }), profile_revision))
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
            hint: format!("bellwether profile set {name} KEY=VALUE --ref 0"),
        },
    }
}
