//! Encryption of stored secrets again, under the newest key that all servers have. The leader does it when the keys of the servers
//! change; each record is written by itself, so that it may stop at any point and go on later.

use std::sync::Arc;

use bellwether_core::records::authorities::Authorities;
use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::secret::{Ciphertext, SecretSource, SecretValue, SecretValues};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, Namespace, SecretKeyId};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use tokio_util::sync::CancellationToken;

use super::keyring::{Keyring, KeyringError};
use super::stored::authority_keys;
use crate::authority_place::place as place_of_authority;
use crate::leadership::Leadership;
use crate::ops::OpError;
use crate::ops::params::secrets::{ParamsOwner, place};
use crate::transactor::Transactor;

/// Encrypts stored secrets again.
pub(crate) struct Reencryption {
    pub(crate) transactor: Transactor,
    pub(crate) leadership: Leadership,
}

impl Reencryption {
    /// Runs until the server stops.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while let Some(term) = self.leadership.won(&stop).await {
            let mut worlds = self.transactor.follow();
            let mut done: Option<SecretKeyId> = None;
            while self.leadership.is_in(term) && !stop.is_cancelled() {
                let world = Arc::clone(&worlds.borrow_and_update());
                let active = self.transactor.keyring().active(&world).ok();
                if active != done && self.all(&world, active.as_ref()).await {
                    done = active;
                }
                // All arms only wait.
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.leadership.changed() => {}
                    changed = worlds.changed() => if changed.is_err() { return },
                }
            }
        }
    }

    /// Encrypts everything that is under another key; whether nothing is left that this server could.
    async fn all(&self, world: &World, active: Option<&SecretKeyId>) -> bool {
        let Some(active) = active else { return true };
        let (mut changed, mut failed) = (0_u64, 0_u64);
        for (namespace, fleet) in world.fleets.iter() {
            for key in outdated(fleet, active) {
                match self.one(namespace, &key, active).await {
                    Ok(()) => changed += 1,
                    Err(OpError::Keyring(KeyringError::Lost { .. } | KeyringError::Altered)) => failed += 1,
                    Err(error) => {
                        tracing::warn!(%error, "cannot encrypt a secret again; it is tried again");
                        return false;
                    }
                }
            }
        }
        if has_outdated_authority(world, active) {
            match self.authorities(active).await {
                Ok(()) => changed += 1,
                Err(OpError::Keyring(KeyringError::Lost { .. } | KeyringError::Altered)) => failed += 1,
                Err(error) => {
                    tracing::warn!(%error, "cannot encrypt the key of an authority again; it is tried again");
                    return false;
                }
            }
        }
        if changed + failed > 0 {
            tracing::info!(key = %active, changed, failed, "encrypted secrets again under the newest key");
        }
        true
    }

    /// Encrypts the keys of the certificate authorities again. Nothing else about them changes.
    async fn authorities(&self, active: &SecretKeyId) -> Result<(), OpError> {
        let actor = Actor::parse("bellwether").expect("plain letters are an actor");
        let namespace = Namespace::parse("default").expect("plain letters are a label");
        let keyring = self.transactor.keyring();
        self.transactor
            .change(&namespace, &actor, |world, _, _| {
                let Some(kept) = &world.authorities else { return Ok((None, ())) };
                let mut authorities = Authorities::clone(&kept.value);
                for authority in &mut authorities.all {
                    let place = place_of_authority(&authority.fingerprint);
                    if let Some(text) = authority.key.as_mut().filter(|text| text.key != *active) {
                        *text = keyring.seal(active, &place, &keyring.unseal(&place, text)?)?;
                    }
                }
                let writes = vec![Write::put(GlobalRecord::Authorities(authorities))];
                Ok::<_, OpError>((Some(Changeset { writes, events: vec![] }), ()))
            })
            .await
    }

    async fn one(&self, namespace: &Namespace, key: &Key, active: &SecretKeyId) -> Result<(), OpError> {
        let actor = Actor::parse("bellwether").expect("plain letters are an actor");
        let keyring = self.transactor.keyring();
        self.transactor
            .change(namespace, &actor, |_, fleet, _| {
                let record = again(fleet, namespace, key, (keyring, active))?;
                let changes =
                    record.map(|record| Changeset { writes: vec![Write::put(record)], events: vec![] });
                Ok::<_, OpError>((changes, ()))
            })
            .await
    }
}

/// Whether the key of a certificate authority is encrypted with another key.
fn has_outdated_authority(world: &World, active: &SecretKeyId) -> bool {
    authority_keys(world).any(|text| text.key != *active)
}

/// The records with a secret under another key.
fn outdated(fleet: &Fleet, active: &SecretKeyId) -> Vec<Key> {
    let other = |text: &Ciphertext| text.key != *active;
    let any = |values: &SecretValues| values.values().filter_map(SecretValue::ciphertext).any(other);
    let secrets = fleet.secrets.values().filter(|kept| match &kept.value.source {
        SecretSource::Stored(text) => other(text),
        SecretSource::Provided { .. } => false,
    });
    let secrets = secrets.map(|kept| Key::Secret(kept.value.name.clone()));
    let nodes = fleet.node_params.values().filter(|kept| any(&kept.value.secrets));
    let nodes = nodes.map(|kept| Key::NodeParams(kept.value.node.clone()));
    let revisions = fleet.profile_revisions.values().filter(|kept| any(&kept.value.secrets));
    let revisions = revisions.map(|kept| Key::ProfileRevision(kept.value.profile.clone(), kept.value.number));
    secrets.chain(nodes).chain(revisions).collect()
}

/// The record with its secrets under the active key; `None` if there is nothing to do.
fn again(
    fleet: &Fleet,
    namespace: &Namespace,
    key: &Key,
    (keyring, active): (&Keyring, &SecretKeyId),
) -> Result<Option<Record>, KeyringError> {
    let renew = |place: &str, text: &Ciphertext| -> Result<Ciphertext, KeyringError> {
        if text.key == *active {
            return Ok(text.clone());
        }
        keyring.seal(active, place, &keyring.unseal(place, text)?)
    };
    let values = |owner: ParamsOwner<'_>, from: &SecretValues| -> Result<SecretValues, KeyringError> {
        let one = |(key, value): (&_, &SecretValue)| {
            let place = place(namespace, owner, key);
            let value = match value {
                SecretValue::Own(text) => SecretValue::Own(renew(&place, text)?),
                SecretValue::Copy { secret, revision, text } => SecretValue::Copy {
                    secret: secret.clone(),
                    revision: *revision,
                    text: text.as_ref().map(|text| renew(&place, text)).transpose()?,
                },
            };
            Ok((Clone::clone(key), value))
        };
        from.iter().map(one).collect()
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other record has secrets")]
    let record = match key {
        Key::Secret(name) => fleet.secrets.get(name).map(|kept| {
            let mut secret = bellwether_core::records::secret::Secret::clone(&kept.value);
            if let SecretSource::Stored(text) = &secret.source {
                let place = format!("{namespace}/secret/{name}");
                secret.source = SecretSource::Stored(renew(&place, text)?);
            }
            Ok(Record::Secret(secret))
        }),
        Key::NodeParams(name) => fleet.node_params.get(name).map(|kept| {
            let mut params = bellwether_core::records::node_params::NodeParams::clone(&kept.value);
            params.secrets = values(ParamsOwner::Node(name), &params.secrets)?;
            Ok(Record::NodeParams(params))
        }),
        Key::ProfileRevision(name, number) => {
            fleet.profile_revisions.get(&(name.clone(), *number)).map(|kept| {
                let mut revision = bellwether_core::records::profile::ProfileRevision::clone(&kept.value);
                revision.secrets = values(ParamsOwner::Profile(name), &revision.secrets)?;
                Ok(Record::ProfileRevision(revision))
            })
        }
        _ => None,
    };
    record.transpose()
}
