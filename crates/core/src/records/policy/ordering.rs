//! The fields of a policy that order targets and bound stages: stages, domains, order, needs. Owns their
//! textual form.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::words::counted::counted;
use crate::words::label::Label;
use crate::words::name::EntityName;
use crate::words::percent::Amount;

/// A stage: how far a rollout goes before the next stage begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyStage {
    /// Most targets that have started by its end, a count or a share rounded up.
    pub upto: Amount,
    /// Whether a person must approve it before it begins.
    pub approve: bool,
}

/// The label whose values are updated one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// The label's key. Targets without the label come last, together.
    pub key: Arc<str>,
    /// Values that come first, in this order; the others follow by name.
    pub first: Vec<Arc<str>>,
}

/// Order in which targets are updated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TargetOrder {
    /// By name.
    #[default]
    Name,
    /// By the value of this label, then by name; targets without it come last.
    Label(Arc<str>),
    /// Shuffled, the same way for the same seed and names.
    Shuffle(u64),
    /// By name, and in each cluster of data stores the stores that are down first, then learners, then replicas, then primaries.
    FollowersFirst,
}

/// A service that must be functional.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceNeed {
    /// The service.
    pub service: EntityName,
    /// How many functional instances it must have, at least 1.
    pub count: u32,
}

/// Why a text is not a valid field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid {what}: {reason}")]
pub struct PolicyFieldError {
    /// The text, cut to a readable length.
    pub text: String,
    /// Name of the field.
    pub what: &'static str,
    /// What is wrong with the text.
    pub reason: String,
}

fn refuse(text: &str, what: &'static str, reason: impl ToString) -> PolicyFieldError {
    PolicyFieldError { text: text.chars().take(80).collect(), what, reason: reason.to_string() }
}

fn key(text: &str, what: &'static str) -> Result<Arc<str>, PolicyFieldError> {
    let label = Label::new(text, "").map_err(|error| refuse(text, what, error.reason))?;
    Ok(label.key)
}

impl FromStr for PolicyStage {
    type Err = PolicyFieldError;
    /// Reads `5%`, `3`, `25% approve`.
    fn from_str(text: &str) -> Result<Self, PolicyFieldError> {
        let (amount, approve) = match text.trim().rsplit_once(' ') {
            Some((amount, "approve")) => (amount.trim(), true),
            Some((_, word)) => {
                return Err(refuse(text, "stage", format!("{word:?} is unknown; did you mean approve?")));
            }
            None => (text.trim(), false),
        };
        let upto: Amount = amount.parse().map_err(|error| refuse(text, "stage", error))?;
        let zero = || refuse(text, "stage", "it has no targets; use batch 0 to start none");
        if upto.is_zero() { Err(zero()) } else { Ok(Self { upto, approve }) }
    }
}

impl fmt::Display for PolicyStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.upto, if self.approve { " approve" } else { "" })
    }
}

impl FromStr for Domain {
    type Err = PolicyFieldError;
    /// Reads `zone`, or `zone:b,a` for a label whose values `b` and `a` come first.
    fn from_str(text: &str) -> Result<Self, PolicyFieldError> {
        let (name, first) = text.split_once(':').map_or((text, None), |(name, first)| (name, Some(first)));
        let key = key(name.trim(), "domain")?;
        let mut values: Vec<Arc<str>> = Vec::new();
        for value in first.into_iter().flat_map(|first| first.split(',')).map(str::trim) {
            let label = Label::new(&key, value).map_err(|error| refuse(text, "domain", error.reason))?;
            if value.is_empty() || values.contains(&label.value) {
                return Err(refuse(text, "domain", format!("{value:?} is empty or listed twice")));
            }
            values.push(label.value);
        }
        Ok(Self { key, first: values })
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        let mut before = ':';
        for value in &self.first {
            write!(f, "{before}{value}")?;
            before = ',';
        }
        Ok(())
    }
}

impl FromStr for TargetOrder {
    type Err = PolicyFieldError;
    /// Reads `name`, `label:KEY`, `shuffle`, `shuffle:SEED`, `followers-first`.
    fn from_str(text: &str) -> Result<Self, PolicyFieldError> {
        match text.split_once(':') {
            None if text == "name" => Ok(Self::Name),
            None if text == "shuffle" => Ok(Self::Shuffle(0)),
            None if text == "followers-first" => Ok(Self::FollowersFirst),
            Some(("label", name)) => Ok(Self::Label(key(name, "order")?)),
            Some(("shuffle", seed)) => {
                let seed = seed.parse();
                seed.map(Self::Shuffle).map_err(|_| refuse(text, "order", "the seed is not a whole number"))
            }
            Some(_) | None => {
                Err(refuse(text, "order", "write name, label:KEY, shuffle, shuffle:SEED or followers-first"))
            }
        }
    }
}

impl fmt::Display for TargetOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("name"),
            Self::Label(key) => write!(f, "label:{key}"),
            Self::Shuffle(seed) => write!(f, "shuffle:{seed}"),
            Self::FollowersFirst => f.write_str("followers-first"),
        }
    }
}

impl FromStr for ServiceNeed {
    type Err = PolicyFieldError;
    /// Reads `db`, or `2 of db`.
    fn from_str(text: &str) -> Result<Self, PolicyFieldError> {
        let read = counted(text);
        let (count, service) = read.ok_or_else(|| {
            refuse(text, "need", "write a service, or a count and a service, like \"2 of db\"")
        })?;
        let service = EntityName::parse(service).map_err(|error| refuse(text, "need", error.reason))?;
        if count == 0 { Err(refuse(text, "need", "the count is 0")) } else { Ok(Self { service, count }) }
    }
}

impl fmt::Display for ServiceNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "{}", self.service),
            count => write!(f, "{count} of {}", self.service),
        }
    }
}
