//! Texts that are never shown: the secrets that this agent read. What commands and processes print passes here before it is kept.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

/// Shorter texts are not looked for: they would be found in too much that is no secret.
const SHORTEST: usize = 6;

/// The secrets that this process has read. Every line of every command is looked through, wherever it was started.
static KNOWN: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// Remembers the texts of secrets.
pub(crate) fn remember<'a>(values: impl Iterator<Item = &'a Value>) {
    let mut texts = BTreeSet::new();
    values.for_each(|value| collect(value, &mut texts));
    let is_new = !texts.is_subset(&KNOWN.read().unwrap_or_else(PoisonError::into_inner));
    if is_new {
        KNOWN.write().unwrap_or_else(PoisonError::into_inner).extend(texts);
    }
}

/// A text without secrets.
pub(crate) fn hide(text: String) -> String {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().fold(text, |text, secret| {
        if text.contains(secret.as_str()) { text.replace(secret.as_str(), "***") } else { text }
    })
}

/// Bytes without secrets; `None` if there is none in them.
pub(crate) fn hide_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let mut hidden: Option<Vec<u8>> = None;
    for secret in known.iter().map(String::as_bytes) {
        let text = hidden.as_deref().unwrap_or(bytes);
        let found = text.windows(secret.len()).any(|window| window == secret);
        if found {
            hidden = Some(without(text, secret));
        }
    }
    hidden
}

fn without(mut text: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    while let Some((first, rest)) = text.split_first() {
        match text.strip_prefix(secret) {
            Some(after) => {
                kept.extend_from_slice(b"***");
                text = after;
            }
            None => {
                kept.push(*first);
                text = rest;
            }
        }
    }
    kept
}

fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let lines = text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST);
            texts.extend(lines.map(ToOwned::to_owned));
        }
        Value::Number(number) => {
            texts.extend(Some(number.to_string()).filter(|text| text.len() >= SHORTEST));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect(member, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_within_a_secret_is_hidden_line_by_line() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n";
        remember([json!({"user": "db", "password": ["correct horse"], "pin": 7_654_321, "key": key})].iter());
        let text = "login db: correct horse, 7654321\nMIIEvQIBADANBg".to_owned();
        assert_eq!(hide(text), "login db: ***, ***\n***");
        assert_eq!(hide_bytes(b"\xff 7654321 7654321.").unwrap(), b"\xff *** ***.");
        assert_eq!(hide_bytes(b"nothing of it"), None);
    }
}
