//! Secret values of params: encrypted before they are written, with a mark in their place, and decrypted for those who may read them.

use std::fmt;

use bellwether_api::shape::ShapeError;
use bellwether_api::v1::profile::Params;
use bellwether_api::v1::secret::{SecretMark, has_mark};
use bellwether_core::access::{Identity, ObjectKind, Right};
use bellwether_core::records::secret::{
    Ciphertext, MAX_SECRET_BYTES, Secret, SecretSource, SecretValue, SecretValues,
};
use bellwether_core::words::name::{Namespace, NodeName, ParamKey, ProfileName, SecretName};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use serde_json::Value;

use crate::ops::OpError;
use crate::secrets::keyring::{Keyring, KeyringError};
use crate::secrets::provider::Providers;

/// Whose params they are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParamsOwner<'a> {
    /// A profile.
    Profile(&'a ProfileName),
    /// A node.
    Node(&'a NodeName),
}

impl fmt::Display for ParamsOwner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile(name) => write!(f, "profile/{name}"),
            Self::Node(name) => write!(f, "node/{name}"),
        }
    }
}

/// The place of a param's secret value: its ciphertext is valid nowhere else.
pub(crate) fn place(namespace: &Namespace, owner: ParamsOwner<'_>, key: &ParamKey) -> String {
    format!("{namespace}/{owner}/{key}")
}

/// The place of a secret's own value.
pub(crate) fn secret_place(namespace: &Namespace, name: &SecretName) -> String {
    format!("{namespace}/secret/{name}")
}

/// What encrypts the secret values of params.
#[derive(Debug, Clone, Copy)]
pub(in crate::ops) struct Sealing<'a> {
    pub(in crate::ops) keyring: &'a Keyring,
    pub(in crate::ops) world: &'a World,
    pub(in crate::ops) fleet: &'a Fleet,
    pub(in crate::ops) namespace: &'a Namespace,
    pub(in crate::ops) owner: ParamsOwner<'a>,
    /// Who may name a secret that the params did not name before, if they may `get` it; nobody without one.
    pub(in crate::ops) who: Option<&'a Identity>,
}

impl Sealing<'_> {
    /// Encrypts the secret values of `after`, leaves marks in their place, and answers them. What does not change keeps its text.
    pub(in crate::ops) fn seal(
        &self,
        before: &SecretValues,
        after: &mut Params,
    ) -> Result<SecretValues, OpError> {
        let mut sealed = SecretValues::new();
        for (key, value) in after {
            let at = |reason: String| ShapeError::at(&format!("params/{key}"), reason);
            let mark = SecretMark::of(value);
            if mark.is_none() && has_mark(value) {
                let reason =
                    "\"$secret\" stands for the whole value of a param: write {\"$secret\": \"NAME\"}";
                return Err(at(reason.to_owned()).into());
            }
            // A key that is not valid is refused with all others.
            let Ok(param) = ParamKey::parse(key) else { continue };
            let declared = self.fleet.params.get(&param).map(|kept| &*kept.value);
            let is_secret = declared.is_some_and(|declared| declared.secret);
            let kept = before.get(&param);
            let own = match mark {
                Some(SecretMark::Own) => match kept {
                    Some(SecretValue::Own(text)) => SecretValue::Own(text.clone()),
                    Some(SecretValue::Copy { .. }) | None => {
                        let reason = "*** stands for a secret value that is there already, and there is none; write the value";
                        return Err(at(reason.to_owned()).into());
                    }
                },
                Some(SecretMark::Named(name)) => {
                    let name: SecretName = name.parse().map_err(|error| at(format!("$secret: {error}")))?;
                    self.may_name(&name, before)?;
                    self.copied(&param, &name, kept)?
                }
                None if is_secret => SecretValue::Own(self.own(&param, value, kept)?),
                None => continue,
            };
            *value = match &own {
                SecretValue::Own(_) => SecretMark::Own.to_value(),
                SecretValue::Copy { secret, .. } => SecretMark::Named(secret.as_str()).to_value(),
            };
            sealed.insert(param, own);
        }
        Ok(sealed)
    }

    /// A value of the param's own; the present text if it says the same.
    fn own(&self, key: &ParamKey, value: &Value, kept: Option<&SecretValue>) -> Result<Ciphertext, OpError> {
        let place = place(self.namespace, self.owner, key);
        if let Some(SecretValue::Own(text)) = kept
            && self.keyring.is_of(&place, text, value)
        {
            return Ok(text.clone());
        }
        within_limit(value).map_err(|reason| ShapeError::at(&format!("params/{key}"), reason))?;
        Ok(self.keyring.seal(&self.keyring.active(self.world)?, &place, value)?)
    }

    /// Refuses a secret that these params did not name before, to who may not read of it: nodes are given its value.
    fn may_name(&self, name: &SecretName, before: &SecretValues) -> Result<(), OpError> {
        let is_named = |value: &SecretValue| match value {
            SecretValue::Own(_) => false,
            SecretValue::Copy { secret, .. } => secret == name,
        };
        if before.values().any(is_named) {
            return Ok(());
        }
        let needed = Right::get(ObjectKind::Secret).on(Some(name.as_str()), Some(self.namespace.as_str()));
        match self.who.map(|who| who.require(&needed)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(OpError::Forbidden {
                what: format!("name secret {name} in {}", self.owner),
                needed: needed.to_string(),
            }),
        }
    }

    /// A copy of a secret; the present one if the secret did not change since. It is not checked by a schema: whoever may declare
    /// params and name the secret would learn from the answers what it says.
    fn copied(
        &self,
        key: &ParamKey,
        name: &SecretName,
        kept: Option<&SecretValue>,
    ) -> Result<SecretValue, OpError> {
        let found = self.fleet.secrets.get(name).map(|kept| &*kept.value);
        let secret =
            found.ok_or_else(|| OpError::NotFound(format!("secret {name}, which param {key} names")))?;
        if let Some(SecretValue::Copy { secret: of, revision, .. }) = kept
            && (of, revision) == (name, &secret.revision)
        {
            return Ok(kept.cloned().unwrap_or_else(|| unreachable!("it was just compared")));
        }
        let reader = self.owner.to_string();
        if !secret.readers.iter().any(|pattern| pattern.matches(&reader)) {
            let reason = format!("name secret {name} in {reader}: it is not among the readers of the secret");
            let all: Vec<String> = secret.readers.iter().map(|known| format!("--reader {known}")).collect();
            let hint = format!("bellwether secret set {name} {} --reader {reader}", all.join(" "));
            return Err(OpError::Refused { reason, hint: Some(hint) });
        }
        let text = match &secret.source {
            SecretSource::Provided { .. } => None,
            SecretSource::Stored(text) => {
                let value = self.keyring.unseal(&secret_place(self.namespace, name), text)?;
                let place = place(self.namespace, self.owner, key);
                Some(self.keyring.seal(&self.keyring.active(self.world)?, &place, &value)?)
            }
        };
        Ok(SecretValue::Copy { secret: name.clone(), revision: secret.revision, text })
    }
}

/// Refuses a value that is too long for a secret.
pub(in crate::ops) fn within_limit(value: &Value) -> Result<(), String> {
    let long = value.to_string().len();
    if long <= MAX_SECRET_BYTES {
        return Ok(());
    }
    Err(format!("{long} bytes as JSON; a secret has at most {MAX_SECRET_BYTES}"))
}

/// A secret value, as far as it is stored.
#[derive(Debug)]
pub(crate) enum OpenedValue<'a> {
    /// The value.
    Here(Value),
    /// A provider has it, by the record of its secret.
    Elsewhere(&'a Secret),
}

impl OpenedValue<'_> {
    /// The value, asked of its provider if one has it.
    pub(crate) async fn value(self, providers: &Providers) -> Result<Value, String> {
        match self {
            Self::Here(value) => Ok(value),
            Self::Elsewhere(Secret { name, source, .. }) => match source {
                SecretSource::Provided { provider, reference } => providers.read(provider, reference).await,
                SecretSource::Stored(_) => Err(format!("secret {name} is stored here")),
            },
        }
    }
}

/// Decrypts the secret value of a param.
///
/// # Errors
/// [`OpError::NotFound`] if it is that of a provider and the secret was deleted; [`OpError::Keyring`].
pub(crate) fn unseal<'a>(
    (keyring, fleet): (&Keyring, &'a Fleet),
    namespace: &Namespace,
    owner: ParamsOwner<'_>,
    (key, value): (&ParamKey, &SecretValue),
) -> Result<OpenedValue<'a>, OpError> {
    match value {
        SecretValue::Own(text) | SecretValue::Copy { text: Some(text), .. } => {
            Ok(OpenedValue::Here(keyring.unseal(&place(namespace, owner, key), text)?))
        }
        SecretValue::Copy { secret, text: None, .. } => {
            let found = fleet.secrets.get(secret);
            let found = found.ok_or_else(|| OpError::NotFound(format!("secret {secret}")))?;
            open(keyring, namespace, &found.value)
        }
    }
}

/// Decrypts a secret's own value.
///
/// # Errors
/// [`OpError::Keyring`].
pub(crate) fn open<'a>(
    keyring: &Keyring,
    namespace: &Namespace,
    secret: &'a Secret,
) -> Result<OpenedValue<'a>, OpError> {
    match &secret.source {
        SecretSource::Provided { .. } => Ok(OpenedValue::Elsewhere(secret)),
        SecretSource::Stored(text) => {
            let value: Result<Value, KeyringError> =
                keyring.unseal(&secret_place(namespace, &secret.name), text);
            Ok(OpenedValue::Here(value?))
        }
    }
}
