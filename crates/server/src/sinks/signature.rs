//! Signatures of webhooks, as Standard Webhooks describes them: an HMAC of the identifier, the time and the body by each secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bellwether_core::access::NamePattern;
use bellwether_core::records::secret::Secret;
use bellwether_core::records::sink::{Sink, SinkTarget};
use bellwether_core::words::name::Namespace;
use bellwether_core::world::fleet::Fleet;
use ring::hmac;
use serde_json::Value;

use crate::ops::params::secrets::open;
use crate::secrets::keyring::Keyring;
use crate::secrets::provider::Providers;

/// What a secret begins with whose rest is a key in base64.
const PREFIX: &str = "whsec_";

/// What the keys of Standard Webhooks begin with that are no shared secret: the secret and the public half of a pair.
const ASYMMETRIC: [&str; 2] = ["whsk_", "whpk_"];

/// A key that signs.
#[derive(Debug)]
pub(super) struct SigningKey(hmac::Key);

impl SigningKey {
    /// The key in the value of a secret: a text, of which `whsec_` and base64 stand for bytes, as receivers' libraries have it.
    fn of(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or("its value is no text")?;
        let bytes = match text.strip_prefix(PREFIX) {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| "after whsec_ it is not base64")?,
            None if ASYMMETRIC.iter().any(|prefix| text.starts_with(prefix)) => {
                return Err("it is half of a pair of keys, and events are signed with a shared one, whsec_"
                    .to_owned());
            }
            None => text.as_bytes().to_vec(),
        };
        if bytes.is_empty() {
            return Err("its value is empty".to_owned());
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }
}

/// Why a value is not a valid key; `None` if it is one.
pub(crate) fn key_defect(value: &Value) -> Option<String> {
    SigningKey::of(value).err()
}

/// Whether a secret may be used by a sink.
pub(crate) fn is_reader(secret: &Secret, sink: &str) -> bool {
    let reader = format!("sink/{sink}");
    secret.readers.iter().any(|pattern: &NamePattern| pattern.matches(&reader))
}

/// The present keys of a sink.
pub(super) async fn keys(
    (keyring, providers): (&Keyring, &Providers),
    (fleet, namespace): (&Fleet, &Namespace),
    sink: &Sink,
) -> Result<Vec<SigningKey>, String> {
    let SinkTarget::Webhook(webhook) = &sink.target else { return Ok(Vec::new()) };
    let mut keys = Vec::new();
    for name in &webhook.secrets {
        let trouble = |reason: String| format!("secret {name}: {reason}");
        let secret = fleet.secrets.get(name).ok_or_else(|| trouble("it does not exist".to_owned()))?;
        if !is_reader(&secret.value, sink.name.as_str()) {
            return Err(trouble(format!("sink/{} is not among its readers", sink.name)));
        }
        let opened = open(keyring, namespace, &secret.value).map_err(|error| trouble(error.to_string()))?;
        let value = opened.value(providers).await.map_err(trouble)?;
        keys.push(SigningKey::of(&value).map_err(trouble)?);
    }
    Ok(keys)
}

/// The header with the signatures by all keys.
pub(super) fn signature(keys: &[SigningKey], id: &str, seconds: u64, body: &[u8]) -> String {
    let signed = keys.iter().map(|SigningKey(key)| {
        let mut context = hmac::Context::with_key(key);
        context.update(format!("{id}.{seconds}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    });
    signed.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own libraries.
    #[test]
    fn a_signature_is_what_receivers_expect() {
        let key = SigningKey::of(&Value::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signed = signature(&[key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn two_keys_sign_both_and_a_value_that_is_not_a_valid_key_is_refused() {
        let key = |text: &str| SigningKey::of(&Value::from(text)).unwrap();
        let both = signature(&[key("a"), key("b")], "1", 1, b"{}");
        let (first, second) = both.split_once(' ').unwrap();
        assert_eq!(first, signature(&[key("a")], "1", 1, b"{}"));
        assert_eq!(second, signature(&[key("b")], "1", 1, b"{}"));
        for wrong in [
            Value::from(""),
            Value::from("whsec_"),
            Value::from("whsec_*"),
            Value::from("whsk_AAAA"),
            Value::from(1),
        ] {
            assert!(SigningKey::of(&wrong).is_err(), "{wrong}");
        }
    }
}
