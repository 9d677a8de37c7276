//! Texts that are never shown: the secrets that this agent read. What commands and processes print passes here before it is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

/// Shorter texts, in bytes, are not looked for: they would be found in too much that is no secret.
const SHORTEST: usize = 6;

/// What stands in place of a secret.
const MASK: &[u8] = b"***";

/// The secrets that this process has read. Every line of every command is looked through, wherever it was started.
static KNOWN: RwLock<Known> = RwLock::new(Known::new());

/// Texts of at least [`SHORTEST`] bytes, by how they begin: a text that has none of the beginnings is looked through once, however
/// many secrets there are.
#[derive(Debug)]
struct Known(BTreeMap<[u8; SHORTEST], BTreeSet<String>>);

impl Known {
    const fn new() -> Self {
        Self(BTreeMap::new())
    }

    fn has(&self, text: &str) -> bool {
        // A text that is too short counts as known, so that it is not added.
        text.as_bytes()
            .first_chunk()
            .is_none_or(|begin| self.0.get(begin).is_some_and(|all| all.contains(text)))
    }

    fn add(&mut self, text: String) {
        if let Some(begin) = text.as_bytes().first_chunk() {
            self.0.entry(*begin).or_default().insert(text);
        }
    }

    /// The longest secret at the beginning of `bytes`.
    fn longest_at(&self, bytes: &[u8]) -> Option<usize> {
        let all = self.0.get(bytes.first_chunk()?)?;
        all.iter().filter(|text| bytes.starts_with(text.as_bytes())).map(String::len).max()
    }

    /// Where secrets are. Those that overlap or touch are one place: what one of them leaves would show a part of another.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        if self.0.is_empty() {
            return places;
        }
        for start in 0..bytes.len() {
            let found = bytes.get(start..).and_then(|rest| self.longest_at(rest));
            let Some(end) = found.map(|length| start.saturating_add(length)) else { continue };
            match places.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                Some(_) | None => places.push(start..end),
            }
        }
        places
    }

    /// The bytes without secrets; `None` if there is none in them.
    fn without(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let places = self.places(bytes);
        let mut kept = Vec::with_capacity(bytes.len());
        let mut from = 0;
        for place in &places {
            kept.extend_from_slice(bytes.get(from..place.start).unwrap_or_default());
            kept.extend_from_slice(MASK);
            from = place.end;
        }
        kept.extend_from_slice(bytes.get(from..).unwrap_or_default());
        (!places.is_empty()).then_some(kept)
    }
}

/// Remembers the texts of secrets.
pub(crate) fn remember<'a>(values: impl Iterator<Item = &'a Value>) {
    let mut texts = BTreeSet::new();
    values.for_each(|value| collect(value, &mut texts));
    let mut new: Vec<String> = texts.into_iter().collect();
    {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        new.retain(|text| !known.has(text));
    }
    if !new.is_empty() {
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        new.into_iter().for_each(|text| known.add(text));
    }
}

/// A text without secrets.
pub(crate) fn hide(text: String) -> String {
    match hide_bytes(text.as_bytes()) {
        // Secrets are whole characters, so what is left is text too.
        Some(hidden) => String::from_utf8_lossy(&hidden).into_owned(),
        None => text,
    }
}

/// Bytes without secrets; `None` if there is none in them.
pub(crate) fn hide_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).without(bytes)
}

fn collect(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            // The whole text, for one of short lines; and its lines, since output comes line by line.
            for part in std::iter::once(text.trim()).chain(text.lines().map(str::trim)) {
                texts.extend(forms(part));
            }
        }
        Value::Number(number) => drop(texts.insert(number.to_string())),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|member| collect(member, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A text as it is, within a JSON string, and within one of a template's `tojson`, which escapes for HTML too.
fn forms(text: &str) -> [String; 3] {
    let quoted = Value::from(text).to_string();
    let json = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let html = [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("'", "\\u0027")];
    let in_template = html.iter().fold(json.clone(), |json, (from, to)| json.replace(from, to));
    [text.to_owned(), json, in_template]
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

    #[test]
    fn secrets_that_overlap_leave_no_part_of_each_other() {
        remember([json!("hunter2"), json!("hunter2-prod-db"), json!("-db=overlap")].iter());
        assert_eq!(hide("a hunter2-prod-db, hunter2.".to_owned()), "a ***, ***.");
        assert_eq!(hide("hunter2-prod-db=overlap".to_owned()), "***");
    }

    #[test]
    fn a_key_of_many_lines_is_hidden_also_when_another_secret_is_in_each() {
        let lines: Vec<String> = (0..200).map(|line| format!("MIIEvQ{line:03}shared-tokenBADANBg")).collect();
        let key = lines.join("\n");
        remember([json!(key), json!("shared-token")].iter());
        assert_eq!(hide(key), "***");
        for line in lines {
            assert_eq!(hide(line), "***");
        }
    }

    #[test]
    fn a_secret_within_json_is_hidden_too() {
        let secret = "pa\"ss<w>&'rd\\\ntwo\tlines";
        remember([json!(secret)].iter());
        assert_eq!(hide(json!({"a": secret}).to_string()), r#"{"a":"***"}"#);
        let in_template = r#""pa\"ss\u003cw\u003e\u0026\u0027rd\\\ntwo\tlines""#;
        assert_eq!(hide(in_template.to_owned()), r#""***""#);
        let short = "a1\nb2\nc3";
        remember([json!(short)].iter());
        assert_eq!(hide(format!("{short}.")), "***.");
    }
}
