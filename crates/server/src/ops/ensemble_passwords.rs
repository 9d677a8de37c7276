//! What a member needs to know its clients and the other members, which only a node gets that has one; and the secrets that are such passwords.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::v1::ensemble::passwords::{MemberPasswords, MemberPasswordsRequest, read};
use bellwether_core::decide::ensembles::passwords::version;
use bellwether_core::records::ensemble::{Ensemble, EnsembleService};
use bellwether_core::records::secret::{Secret, SecretSource};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::{EnsembleName, Namespace, NodeName, SecretName};
use bellwether_core::world::fleet::Fleet;
use serde_json::Value;

use super::OpError;
use super::params::secrets::{OpenedValue, open};
use crate::pki::Pki;
use crate::pki::ensemble::EnsembleId;
use crate::secret::hash;
use crate::secrets::keyring::Keyring;
use crate::transactor::Transactor;

/// Longest password, in bytes: what clients and Redis itself (`masterauth`, `requirepass`) take.
const MAX_PASSWORD_BYTES: usize = 512;

/// What the member that a node has of an ensemble needs.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble without members; [`OpError::Invalid`]; [`OpError::Refused`] when the node does not have that member, or it leaves, or a
/// secret has not the value that was asked for, or one that is no password; [`OpError::Keyring`].
pub fn give(
    transactor: &Transactor,
    pki: &Pki,
    (namespace, node, name): (&Namespace, &NodeName, &EnsembleName),
    request: MemberPasswordsRequest,
) -> Result<MemberPasswords, OpError> {
    let MemberPasswordsRequest { number, identity, passwords, peers } = request;
    let number = MemberNumber::new(number);
    let peers: BTreeSet<MemberNumber> = peers.into_iter().map(MemberNumber::new).collect();
    let asked = read(passwords)?;
    let world = transactor.world();
    let missing = || OpError::NotFound(format!("members of ensemble {name}"));
    let fleet = world.fleets.get(namespace).ok_or_else(missing)?;
    let members = &*fleet.ensemble_members.get(name).ok_or_else(missing)?.value;
    let refused = |because: String| OpError::Refused {
        reason: format!("give the passwords of member {number} of ensemble {name}: {because}"),
        hint: None,
    };
    if !matches!(members.service, EnsembleService::Redis(_)) {
        return Err(refused(format!("{} has none", members.service.title())));
    }
    let member = members.members.get(&number).filter(|member| member.node == *node);
    let Some(member) = member.filter(|_| members.identity == identity) else {
        return Err(refused(format!("it is not on node {node}")));
    };
    if member.phase.removal().is_some() {
        return Err(refused("it leaves".to_owned()));
    }
    // Its order may be older than the record, or this server not have the latest record yet: it asks again.
    if asked != members.passwords || peers != members.peers_of(number) {
        return Err(refused("others were ordered meanwhile; it asks again".to_owned()));
    }
    let password_of =
        |number| pki.redis_password(EnsembleId { namespace, name, identity: &identity }, number);
    let digest = |number: MemberNumber| (number.get(), hash(password_of(number).as_bytes()));
    let mut given = MemberPasswords {
        own: password_of(number),
        peers: peers.into_iter().map(digest).collect(),
        clients: BTreeMap::new(),
    };
    for (secret, wanted) in &asked {
        let found = fleet.secrets.get(secret).map(|kept| &*kept.value);
        let found = found.ok_or_else(|| refused(format!("secret {secret} does not exist")))?;
        if version(found) != *wanted {
            return Err(refused(format!("secret {secret} was changed meanwhile; it asks again")));
        }
        let value = password(transactor.keyring(), (namespace, found), name);
        let value = value.map_err(|defect| refused(format!("secret {secret}: {defect}")))?;
        given.clients.insert(secret.to_string(), hash(value.as_bytes()));
    }
    Ok(given)
}

/// Refuses secrets that are not there, that the ensemble may not read, or whose values are no passwords.
pub(super) fn are_usable(
    transactor: &Transactor,
    (namespace, fleet): (&Namespace, &Fleet),
    ensemble: &Ensemble,
) -> Result<(), OpError> {
    let name = &ensemble.name;
    for secret in ensemble.service.password_secrets() {
        let found = fleet.secrets.get(secret).map(|kept| &*kept.value);
        let found = found.ok_or_else(|| OpError::NotFound(format!("secret {secret}")))?;
        if !is_reader(found, name) {
            let reason = format!(
                "have clients of ensemble {name} use secret {secret}: ensemble/{name} is not among its readers"
            );
            let all: Vec<String> = found.readers.iter().map(|known| format!("--reader '{known}'")).collect();
            let hint = format!("bellwether secret set {secret} {} --reader ensemble/{name}", all.join(" "));
            return Err(OpError::Refused { reason, hint: Some(hint) });
        }
        // What cannot be decrypted now is told of the members once they are to have it.
        let defect = match open(transactor.keyring(), namespace, found) {
            Ok(OpenedValue::Here(value)) => password_defect(&value),
            Ok(OpenedValue::Elsewhere(_)) => Some(provided()),
            Err(_) => None,
        };
        if let Some(defect) = defect {
            return Err(OpError::Refused {
                reason: format!("have clients of ensemble {name} use secret {secret}: {defect}"),
                hint: Some(format!(
                    "write another value: printf %s 'VALUE' | bellwether secret set {secret} --file -"
                )),
            });
        }
    }
    Ok(())
}

/// Whether a secret may be read by an ensemble.
pub(super) fn is_reader(secret: &Secret, ensemble: &EnsembleName) -> bool {
    let reader = format!("ensemble/{ensemble}");
    secret.readers.iter().any(|pattern| pattern.matches(&reader))
}

/// The ensembles whose clients use a secret.
pub(super) fn using<'a>(fleet: &'a Fleet, secret: &'a SecretName) -> impl Iterator<Item = &'a EnsembleName> {
    let names = |of: &Ensemble| of.service.password_secrets().contains(secret);
    fleet.ensembles.iter().filter(move |(_, kept)| names(&kept.value)).map(|(name, _)| name)
}

/// Why a value is no password; `None` if it is one.
pub(super) fn password_defect(value: &Value) -> Option<String> {
    let Some(text) = value.as_str() else { return Some("its value is no text".to_owned()) };
    if text.is_empty() {
        return Some("its value is empty".to_owned());
    }
    if text.len() > MAX_PASSWORD_BYTES {
        return Some(format!(
            "its value has {} bytes, and a password has {MAX_PASSWORD_BYTES} at most",
            text.len()
        ));
    }
    text.chars().any(char::is_control).then(|| {
        "its value has a line break or another control character, which clients cannot send as it is"
            .to_owned()
    })
}

/// Why a secret that a provider has is no password.
pub(super) fn provided() -> String {
    "a provider has its value, which may be another one for each member; a password has to be stored here"
        .to_owned()
}

fn password(
    keyring: &Keyring,
    (namespace, secret): (&Namespace, &Secret),
    ensemble: &EnsembleName,
) -> Result<String, String> {
    if !is_reader(secret, ensemble) {
        return Err(format!("ensemble/{ensemble} is not among its readers"));
    }
    if let SecretSource::Provided { .. } = &secret.source {
        return Err(provided());
    }
    match open(keyring, namespace, secret).map_err(|error| error.to_string())? {
        OpenedValue::Here(value) => match password_defect(&value) {
            Some(defect) => Err(defect),
            None => Ok(value.as_str().unwrap_or_default().to_owned()),
        },
        OpenedValue::Elsewhere(_) => Err(provided()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_a_text_of_one_line() {
        for wrong in [
            Value::from(1),
            Value::from(""),
            Value::from("a\n"),
            Value::from("a\0"),
            Value::from("a".repeat(513)),
        ] {
            assert!(password_defect(&wrong).is_some(), "{wrong}");
        }
        assert_eq!(password_defect(&Value::from("pass wörd 'and' \"more\" #>< %")), None);
    }
}
