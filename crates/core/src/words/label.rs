//! Labels: `key=value` pairs of a node, which selectors match. Owns which keys and values are valid.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// Longest label key or value, in bytes.
pub const MAX_PART_BYTES: usize = 128;

/// Most labels on one node: more would be data, not labels.
pub const MAX_LABELS: usize = 64;

/// One label: `zone=a`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// Letters, digits and `. _ / -`, 1 to 128 bytes; starts with a letter.
    pub key: Arc<str>,
    /// Letters, digits and `. _ / : + -`, 0 to 128 bytes.
    pub value: Arc<str>,
}

/// Why a text is not a valid label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid label: {reason}")]
pub struct LabelError {
    /// The text, cut to a readable length.
    pub text: String,
    /// The rule that it breaks.
    pub reason: &'static str,
}

/// The labels of a node, by key. Copies are cheap and share one map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Arc<BTreeMap<Arc<str>, Arc<str>>>);

impl Label {
    /// A label of this key and value.
    ///
    /// # Errors
    /// [`LabelError`] with the rule that is broken.
    pub fn new(key: &str, value: &str) -> Result<Self, LabelError> {
        let refuse =
            |reason| LabelError { text: alloc::format!("{key}={value}").chars().take(80).collect(), reason };
        if !is_key(key) {
            Err(refuse("a key starts with a letter and has at most 128 letters, digits and '. _ / -'"))
        } else if is_reserved(key) {
            Err(refuse("the key is a keyword of the filter language"))
        } else if value.len() > MAX_PART_BYTES || !value.bytes().all(is_value_byte) {
            Err(refuse("a value has at most 128 letters, digits and '. _ / : + -'"))
        } else {
            Ok(Self { key: key.into(), value: value.into() })
        }
    }
}

impl core::str::FromStr for Label {
    type Err = LabelError;
    /// Reads `key=value`.
    fn from_str(text: &str) -> Result<Self, LabelError> {
        match text.split_once('=') {
            Some((key, value)) => Self::new(key, value),
            None => Err(LabelError { text: text.chars().take(80).collect(), reason: "write key=value" }),
        }
    }
}

impl Labels {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| &**value)
    }

    /// Sets one label; replaces the key's former value.
    ///
    /// # Errors
    /// [`LabelError`] when this would be more than [`MAX_LABELS`].
    pub fn set(&mut self, label: Label) -> Result<(), LabelError> {
        if self.0.len() >= MAX_LABELS && !self.0.contains_key(&label.key) {
            let text = alloc::format!("{}={}", label.key, label.value);
            return Err(LabelError { text, reason: "a node has at most 64 labels" });
        }
        Arc::make_mut(&mut self.0).insert(label.key, label.value);
        Ok(())
    }

    /// Removes a key; returns whether it existed.
    pub fn remove(&mut self, key: &str) -> bool {
        self.0.contains_key(key) && Arc::make_mut(&mut self.0).remove(key).is_some()
    }

    /// The value of a key, shared.
    #[must_use]
    pub fn shared(&self, key: &str) -> Option<Arc<str>> {
        self.0.get(key).cloned()
    }

    /// Whether there are no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All labels in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// Whether a text is a valid key, apart from reserved words.
pub(crate) fn is_key(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"._/-".contains(&b);
    text.len() <= MAX_PART_BYTES
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && text.bytes().all(inner)
}

/// Whether a byte is allowed in a value.
pub(crate) const fn is_value_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b':' | b'+' | b'-')
}

/// Whether a text is a keyword of filters.
pub(crate) fn is_reserved(text: &str) -> bool {
    ["all", "and", "or", "not", "in", "any", "exists", "name"].contains(&text)
}
