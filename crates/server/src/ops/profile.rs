//! Profiles: changing, replacing, deleting. Each change is a new revision; whoever names the one it must follow either
//! gets the very next or changes nothing. What runs where is the rollouts' business.

use bellwether_api::shape::ShapeError;
use bellwether_api::shape::reason;
use bellwether_api::v1::profile::{Params, canonical, params};
use bellwether_core::access::Identity;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::profile::{Profile, ProfileRevision};
use bellwether_core::records::secret::SecretValues;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::ParamKey;
use bellwether_core::words::name::{Actor, ClusterName, Namespace, ProfileName};
use bellwether_core::words::precedence::{DEFAULTS_PROFILE, GLOBAL_PROFILE};
use bellwether_core::words::role_params::CLUSTER_PROFILE;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_core::world::version_resolution::MAX_EDITIONS;
use serde_json::Value;

use super::expectation::ChangeError;
use super::params::secrets::{ParamsOwner, Sealing};
use super::params::{ParamsRequest, schema};
use super::scope::ProfileScope;
use super::{OpError, cause, event};
use crate::secrets::keyring::Keyring;
use crate::transactor::Transactor;

/// Changes the params of a profile; a new profile is made of what is set. Answers the newest revision, which is a new one only
/// if that changes anything.
///
/// # Errors
/// [`OpError::Invalid`] naming the param, or the operation that does not fit; [`OpError::NotFound`] for a key to remove;
/// [`OpError::Moved`] when the profile is not at the revision that was named; [`OpError::Differs`] when a param is not as
/// expected; [`OpError::Forbidden`] for a secret that is named newly, by who may not read of it.
pub async fn change(
    transactor: &Transactor,
    scope: ProfileScope<'_>,
    ParamsRequest { change, who, why }: ParamsRequest<'_>,
) -> Result<ProfileRevision, OpError> {
    change.validate()?;
    refuse_defaults(scope.profile)?;
    let intent = ProfileChange { scope, reason: reason(why)?, who: Some(who) };
    let whose = format!("profile {}", scope.profile);
    intent.run(transactor, |before| change.applied_to(before, &whose)).await
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
    refuse_defaults(name)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let head = fleet.profile(name).ok_or_else(|| OpError::NotFound(format!("profile {name}")))?;
            if let Some(entity) = fleet.entities_of(name).next() {
                let reason = format!("delete profile {name}: entity {} uses it", entity.name);
                let hint = format!("bellwether entity delete {}", entity.name);
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            if let Some(cluster) = sharing(fleet, name) {
                let reason = format!("delete profile {name}: the members of cluster {cluster} share it");
                let hint = format!("bellwether cluster delete {cluster}");
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            let annotation = Annotation::of(actor.clone(), now);
            let gone =
                Profile { deleted: true, live: false, annotation, labels: Labels::default(), ..head.clone() };
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

/// Makes a profile live, or no longer live. Changes nothing if it is.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Moved`] when the profile is not at the revision that was named; [`OpError::Refused`] to make
/// one live that an entity uses.
pub async fn set_live(
    transactor: &Transactor,
    scope: ProfileScope<'_>,
    live: bool,
    why: &str,
) -> Result<Profile, OpError> {
    let ProfileScope { namespace, profile: name, actor, only_at } = scope;
    let why = reason(why)?;
    refuse_defaults(name)?;
    transactor
        .compare_together(namespace, actor, &Key::Profile(name.clone()).into(), |_, fleet, now| {
            let head = fleet.profile(name).ok_or_else(|| OpError::NotFound(format!("profile {name}")))?;
            if let Some(wanted) = only_at.filter(|wanted| *wanted != head.newest.get()) {
                return Err(moved(name, wanted, Some(head)));
            }
            if head.live == live {
                return Ok((None, head.clone()));
            }
            if let Some(entity) = fleet.entities_of(name).next().filter(|_| live) {
                let entity = &entity.name;
                let reason =
                    format!("make profile {name} live: entity {entity} uses it, and rolls its changes out");
                let hint = "use another profile: bellwether profile set NAME KEY=VALUE".to_owned();
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            if let Some(cluster) = sharing(fleet, name) {
                let reason =
                    format!("make profile {name} not live: the members of cluster {cluster} share it");
                let hint = format!("bellwether cluster delete {cluster}");
                return Err(OpError::Refused { reason, hint: Some(hint) });
            }
            let annotation = Annotation { by: actor.clone(), reason: why.clone(), at: now };
            let after = Profile { live, annotation, ..head.clone() };
            let mut event = event("profile.live_changed", format!("profile/{name}"), cause(&why));
            event.before = Some(head.live.to_string());
            event.after = Some(live.to_string());
            let writes = vec![Write::put(Record::Profile(after.clone()))];
            Ok((Some(Changeset { writes, events: vec![event] }), after))
        })
        .await
}

/// A change of a profile, and its reason.
struct ProfileChange<'a> {
    scope: ProfileScope<'a>,
    reason: String,
    /// Who names secrets in it; nobody if it names none that were not named before.
    who: Option<&'a Identity>,
}

impl ProfileChange<'_> {
    async fn run(
        &self,
        transactor: &Transactor,
        mut change: impl FnMut(&Params) -> Result<Params, ChangeError>,
    ) -> Result<ProfileRevision, OpError> {
        let ProfileScope { namespace, actor, .. } = self.scope;
        let record = Key::Profile(self.scope.profile.clone()).into();
        transactor
            .compare_together(namespace, actor, &record, |world, fleet, now| {
                self.write((world, fleet), transactor.keyring(), now, &mut change)
            })
            .await
    }

    /// The next revision, with the params that `change` makes of those before; the newest one, and nothing to write, if they
    /// are the same.
    fn write(
        &self,
        (world, fleet): (&World, &Fleet),
        keyring: &Keyring,
        now: Timestamp,
        change: impl FnOnce(&Params) -> Result<Params, ChangeError>,
    ) -> Result<(Option<Changeset>, ProfileRevision), OpError> {
        let ProfileScope { namespace, profile: name, actor, only_at } = self.scope;
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
        let mut changed = changed?;
        if sharing(fleet, name).is_some() {
            // Whoever reads it finds it by this, also after all params were replaced.
            changed.entry(CLUSTER_PROFILE.to_owned()).or_insert_with(|| Value::String(name.to_string()));
        }
        schema::check(fleet, &params_before, &changed)?;
        let (none, owner) = (SecretValues::new(), ParamsOwner::Profile(name));
        let sealing = Sealing { keyring, world, fleet, namespace, owner, who: self.who };
        let secrets = sealing.seal(before.map_or(&none, |before| &before.secrets), &mut changed)?;
        let text = canonical(&changed)?;
        if let Some(same) = before.filter(|before| before.params == text && before.secrets == secrets) {
            return Ok((None, same.clone()));
        }
        // A deleted profile of this name is gone on from: nodes may still keep params by its numbers.
        let last = fleet.profiles.get(name).map_or(ProfileRevisionNumber::ZERO, |kept| kept.value.newest);
        let annotation = Annotation { by: actor.clone(), reason: self.reason.clone(), at: now };
        let (profile, number) = (name.clone(), last.next_in(fleet.epoch));
        let profile_revision =
            ProfileRevision { profile, number, params: text, secrets, annotation: annotation.clone() };
        let labels = head.map(|head| head.labels.clone()).unwrap_or_default();
        let live = head.is_some_and(|head| head.live) || *name == defaults_profile();
        let head = Profile { name: name.clone(), newest: number, deleted: false, live, annotation, labels };
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

/// The profile that the members of a cluster share.
pub(super) struct SharedProfile<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) profile: &'a ProfileName,
    pub(super) actor: &'a Actor,
    pub(super) cluster: &'a ClusterName,
    /// Whether the cluster is new; a present one gets its own name back if somebody changed it.
    pub(super) is_new: bool,
}

impl SharedProfile<'_> {
    /// What makes it exist, live, and name itself in the param `cluster/profile`. It is written in any case, so that nobody deletes it
    /// at the same moment.
    pub(super) fn changeset(
        &self,
        (world, fleet): (&World, &Fleet),
        keyring: &Keyring,
        now: Timestamp,
    ) -> Result<Changeset, OpError> {
        let Self { namespace, profile, actor, cluster, is_new } = *self;
        refuse_defaults(profile)?;
        let refused = |why: &str| {
            let reason = format!("share profile {profile} in cluster {cluster}: {why}");
            let hint = Some("name another one: bellwether cluster create NAME --profile PROFILE".to_owned());
            OpError::Refused { reason, hint }
        };
        if profile.as_str() == GLOBAL_PROFILE {
            return Err(refused("every node reads it"));
        }
        if let Some(entity) = fleet.entities_of(profile).next() {
            return Err(refused(&format!("entity {} uses it, and rolls its changes out", entity.name)));
        }
        let reason = format!("cluster {cluster}");
        let change = ProfileChange {
            scope: ProfileScope { namespace, profile, actor, only_at: None },
            reason: reason.clone(),
            who: None,
        };
        let name = Value::String(profile.to_string());
        let (changeset, revision) = change.write((world, fleet), keyring, now, |before| {
            let mut params = before.clone();
            match params.insert(CLUSTER_PROFILE.to_owned(), name.clone()) {
                Some(other) if is_new && other != name => {
                    let why = format!("its param {CLUSTER_PROFILE} is {other}, and has to be its own name");
                    Err(ChangeError::Other(refused(&why)))
                }
                Some(_) | None => Ok(params),
            }
        })?;
        let mut changeset = changeset.unwrap_or_default();
        changeset.writes.retain(|write| write.key() != Key::Profile(profile.clone()).into());
        let was_live = fleet.profile(profile).is_some_and(|head| head.live);
        if !was_live {
            let mut event = event("profile.live_changed", format!("profile/{profile}"), cause(&reason));
            event.before = fleet.profile(profile).map(|_| "false".to_owned());
            event.after = Some("true".to_owned());
            changeset.events.push(event);
        }
        let head = fleet.profile(profile);
        let labels = head.map(|head| head.labels.clone()).unwrap_or_default();
        let annotation = match head.filter(|_| was_live) {
            Some(head) => head.annotation.clone(),
            None => Annotation { by: actor.clone(), reason, at: now },
        };
        let (name, newest) = (profile.clone(), revision.number);
        let head = Profile { name, newest, deleted: false, live: true, annotation, labels };
        changeset.writes.push(Write::put(Record::Profile(head)));
        Ok(changeset)
    }
}

/// Whether the members of a cluster share a profile.
#[must_use]
pub(super) fn is_shared(fleet: &Fleet, profile: &ProfileName) -> bool {
    sharing(fleet, profile).is_some()
}

/// The cluster whose members share a profile.
fn sharing<'a>(fleet: &'a Fleet, profile: &ProfileName) -> Option<&'a ClusterName> {
    let clusters = fleet.clusters.values().map(|kept| &kept.value);
    clusters.filter(|cluster| cluster.profile == *profile).map(|cluster| &cluster.name).next()
}

/// The profile with the defaults of declared params.
pub(super) fn defaults_profile() -> ProfileName {
    ProfileName::parse(DEFAULTS_PROFILE).expect("it is a valid name")
}

/// The defaults of declared params.
pub(super) fn defaults(fleet: &Fleet) -> Result<Params, ShapeError> {
    let name = defaults_profile();
    let Some(head) = fleet.profile(&name) else { return Ok(Params::new()) };
    let newest = fleet.profile_revisions.get(&(name, head.newest));
    newest.map_or_else(|| Ok(Params::new()), |kept| params(&kept.value.params))
}

/// What sets the default of a param, or removes it; nothing if it is so already.
pub(super) fn set_default(
    (world, fleet): (&World, &Fleet),
    keyring: &Keyring,
    (namespace, who): (&Namespace, &Identity),
    (key, default): (&ParamKey, Option<&Value>),
    now: Timestamp,
) -> Result<Changeset, OpError> {
    let profile = &defaults_profile();
    let mut wanted = defaults(fleet)?;
    let is_same = match default {
        Some(default) => wanted.insert(key.to_string(), default.clone()).as_ref() == Some(default),
        None => wanted.remove(key.as_str()).is_none(),
    };
    if is_same {
        return Ok(Changeset::default());
    }
    let scope = ProfileScope { namespace, profile, actor: &who.actor(), only_at: None };
    let change = ProfileChange { scope, reason: format!("param {key}"), who: Some(who) };
    let (changeset, _) = change.write((world, fleet), keyring, now, |_| Ok(wanted))?;
    Ok(changeset.unwrap_or_default())
}

/// Refuses to change the profile of defaults in another way than by declaring params.
fn refuse_defaults(name: &ProfileName) -> Result<(), OpError> {
    if *name != defaults_profile() {
        return Ok(());
    }
    let reason = format!("change profile {name}: it has the defaults of declared params");
    let hint = Some("declare a param: bellwether param declare KEY --default VALUE".to_owned());
    Err(OpError::Refused { reason, hint })
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
