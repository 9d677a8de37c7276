//! What is encrypted in the store, and what a person should know of the keys that it needs.

use bellwether_core::records::secret::{Ciphertext, SecretSource, SecretValue};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::keyring::{KEYRING_FILE, Keyring};

/// Everything of a namespace that is encrypted.
pub(crate) fn ciphertexts(fleet: &Fleet) -> impl Iterator<Item = &Ciphertext> {
    let secrets = fleet.secrets.values().filter_map(|kept| match &kept.value.source {
        SecretSource::Stored(text) => Some(text),
        SecretSource::Provided { .. } => None,
    });
    let nodes = fleet.node_params.values().flat_map(|kept| kept.value.secrets.values());
    let revisions = fleet.profile_revisions.values().flat_map(|kept| kept.value.secrets.values());
    secrets.chain(nodes.chain(revisions).filter_map(SecretValue::ciphertext))
}

/// What is wrong with the keys of this server, each with the next step.
pub(crate) fn warnings(world: &World, keyring: &Keyring) -> Vec<String> {
    let mut warnings = Vec::new();
    if keyring.ids().is_empty() && world.fleets.values().any(|fleet| ciphertexts(fleet).next().is_some()) {
        warnings.push(format!(
            "there are secrets, and this server has no key for them: {KEYRING_FILE} is missing or empty; copy it from another server \
             or from where a copy is kept, and restart this server"
        ));
    }
    if keyring.is_open_to_others() {
        warnings.push(format!(
            "others than its owner may read {KEYRING_FILE}, the keys of all secrets: chmod 600, and restart this server"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_of_keys_that_others_may_read_is_warned_of() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        Keyring::add_key(&path).unwrap();
        let warned = || warnings(&World::default(), &Keyring::open(&path).unwrap());
        assert!(warned().is_empty());
        set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(warned().concat().contains("others than its owner may read pki/secrets.key"));
    }
}
