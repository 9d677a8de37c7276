//! What is encrypted in the store, and what a person should know of the keys that it needs.

use bellwether_core::records::secret::{Ciphertext, SecretSource, SecretValue};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::keyring::{KEYRING_FILE, Keyring};

/// Everything of a namespace that is encrypted.
fn ciphertexts(fleet: &Fleet) -> impl Iterator<Item = &Ciphertext> {
    let secrets = fleet.secrets.values().filter_map(|kept| match &kept.value.source {
        SecretSource::Stored(text) => Some(text),
        SecretSource::Provided { .. } => None,
    });
    let nodes = fleet.node_params.values().flat_map(|kept| kept.value.secrets.values());
    let revisions = fleet.profile_revisions.values().flat_map(|kept| kept.value.secrets.values());
    secrets.chain(nodes.chain(revisions).filter_map(SecretValue::ciphertext))
}

/// The keys of certificate authorities that are encrypted.
pub(crate) fn authority_keys(world: &World) -> impl Iterator<Item = &Ciphertext> {
    world.authorities.iter().flat_map(|kept| &kept.value.all).filter_map(|authority| authority.key.as_ref())
}

/// Everything that is encrypted.
pub(crate) fn all_ciphertexts(world: &World) -> impl Iterator<Item = &Ciphertext> {
    world.fleets.values().flat_map(ciphertexts).chain(authority_keys(world))
}

/// What is wrong with the keys of this server, each with the next step.
pub(crate) fn warnings(world: &World, keyring: &Keyring) -> Vec<String> {
    let mut warnings = Vec::new();
    if keyring.ids().is_empty() && all_ciphertexts(world).next().is_some() {
        warnings.push(format!(
            "there are secrets, and this server has no key for them: {KEYRING_FILE} is missing or empty; copy it from another server \
             or from where a copy is kept, and restart this server"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::authorities::{Authorities, Authority, AuthorityPhase};
    use bellwether_core::records::key::global::GlobalRecord;
    use bellwether_core::words::counter::{AuthoritiesVersion, Revision};
    use bellwether_core::words::time::Timestamp;

    use super::*;

    #[test]
    fn the_key_of_an_authority_needs_the_keys_for_secrets_too() {
        let mut world = World::default();
        let dir = tempfile::tempdir().unwrap();
        let keyring = Keyring::open(&dir.path().join("secrets.key")).unwrap();
        assert!(all_ciphertexts(&world).next().is_none() && warnings(&world, &keyring).is_empty());
        let key = Ciphertext { key: "0011223344556677".parse().unwrap(), text: String::new() };
        let authority = |key| Authority {
            fingerprint: "aa".to_owned(),
            certificate: String::new(),
            key,
            phase: AuthorityPhase::Active,
            added: AuthoritiesVersion::new(1),
            since: Timestamp::EPOCH,
        };
        let all = vec![authority(None), authority(Some(key))];
        let record = Authorities { version: AuthoritiesVersion::new(1), all };
        world.put_global(GlobalRecord::Authorities(record), Revision::new(1));
        assert_eq!(all_ciphertexts(&world).count(), 1);
        assert!(warnings(&world, &keyring).concat().contains("this server has no key for them"));
    }
}
