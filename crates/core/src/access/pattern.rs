//! Patterns of names and paths of fields, as they stand in claims. Owns what each contains of another.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

/// Longest pattern and longest path of a field, in bytes.
pub const MAX_PATTERN_BYTES: usize = 512;

/// A pattern of names: `*`, a name, or the beginning of names followed by `*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamePattern {
    /// `*`: every name.
    Any,
    /// `web-*`: every name that begins so. Not empty.
    Prefix(Arc<str>),
    /// One name.
    Exact(Arc<str>),
}

/// A field and everything below it, as a JSON pointer (RFC 6901). The empty pointer is the whole object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Arc<str>);

impl NamePattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(alloc::format!(
                "a pattern of {} bytes; at most {MAX_PATTERN_BYTES} are allowed",
                text.len()
            ));
        }
        let stem = text.strip_suffix('*').unwrap_or(text);
        if stem.is_empty() {
            return Err("an empty pattern; use * for every name".into());
        }
        if let Some(bad) =
            stem.chars().find(|letter| !letter.is_ascii_graphic() || matches!(letter, '*' | ','))
        {
            return Err(alloc::format!(
                "{text:?} has {bad:?}; a pattern is a name, optionally with * at its end"
            ));
        }
        let stem = Arc::from(stem);
        Ok(if text.ends_with('*') { Self::Prefix(stem) } else { Self::Exact(stem) })
    }

    /// Whether a name matches.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Prefix(stem) => name.starts_with(&**stem),
            Self::Exact(own) => name == &**own,
        }
    }

    /// Whether every name that matches the other one matches this one too.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Any) => false,
            (Self::Prefix(stem), Self::Prefix(other) | Self::Exact(other)) => other.starts_with(&**stem),
            (Self::Exact(own), Self::Exact(other)) => own == other,
            (Self::Exact(_), Self::Prefix(_)) => false,
        }
    }

    /// The pattern of the names that match both; `None` if there are none.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Option<Self> {
        if self.contains(other) {
            return Some(other.clone());
        }
        other.contains(self).then(|| self.clone())
    }
}

impl FieldPath {
    /// The whole object.
    #[must_use]
    pub fn whole() -> Self {
        Self(Arc::from(""))
    }

    /// Reads a JSON pointer.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(alloc::format!(
                "a field of {} bytes; at most {MAX_PATTERN_BYTES} are allowed",
                text.len()
            ));
        }
        if !text.is_empty() && !text.starts_with('/') {
            return Err(alloc::format!("{text:?} is not a JSON pointer: it must begin with '/'"));
        }
        let mut after = text.split('~').skip(1);
        if !after.all(|rest| rest.starts_with(['0', '1'])) {
            return Err(alloc::format!(
                "{text:?} is not a JSON pointer: '~' must be written ~0, and '/' in a key ~1"
            ));
        }
        if text.contains([',', '*'])
            || text.chars().any(|letter| letter.is_whitespace() || letter.is_control())
        {
            return Err(alloc::format!("{text:?} has a comma, '*', white space or a control character"));
        }
        Ok(Self(text.into()))
    }

    /// Whether it is the whole object.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.0.is_empty()
    }

    /// The pointer's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this field is below another, as a JSON pointer.
    #[must_use]
    pub fn is_below(&self, field: &str) -> bool {
        self.0.strip_prefix(field).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether a field, as a JSON pointer, is this one or below it.
    #[must_use]
    pub fn contains(&self, field: &str) -> bool {
        field.strip_prefix(&*self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Prefix(stem) => write!(f, "{stem}*"),
            Self::Exact(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
