//! The controllers a policy asks: selection, approval, monitoring, removal, and what judges a rollout as a whole. Owns
//! where they are and how patiently they are asked; who asks them is elsewhere.

use alloc::format;
use alloc::string::{String, ToString};

use crate::words::name::Actor;
use crate::words::time::Span;

/// Longest address of a hook, and longest query, in bytes.
pub const MAX_TEXT_BYTES: usize = 4_096;

/// How long one answer may take, unless said.
pub const DEFAULT_TIMEOUT: Span = Span::from_secs(10);

/// How long after an answer the next question follows, unless said.
pub const DEFAULT_EVERY: Span = Span::from_secs(30);

/// Shortest timeout and interval: below this a hook is a flood.
const SHORTEST: Span = Span::from_millis(100);

/// Longest timeout and interval.
const LONGEST: Span = Span::from_secs(3_600);

/// Failing answers in a row that make the version bad, unless said: one alone may be a hiccup.
pub const DEFAULT_FAILURES: u32 = 2;

/// Most failing answers in a row that may be asked for.
const MAX_FAILURES: u32 = 100;

/// An HTTP endpoint that is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Where: `http://…` or `https://…`.
    pub url: String,
    /// How long one answer may take. 100 ms to an hour.
    pub timeout: Span,
    /// How long after an answer, or a failure to answer, it is asked again. 100 ms to an hour.
    pub every: Span,
    /// The name under which the server's configuration keeps the token to send.
    pub token: Option<Actor>,
}

/// Which of its controllers a rollout asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hooks {
    /// Chooses who is next among those who could be; never more than there is room for.
    pub selection: Option<Hook>,
    /// Has to agree before those who were chosen are told.
    pub approval: Option<Hook>,
    /// Judges single targets that are healthy on the version.
    pub monitoring: Option<Hook>,
    /// Takes away, once the version is good, targets that do not run it (blue-green).
    pub removal: Option<Hook>,
}

/// What judges a rollout as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    /// Who is asked.
    pub source: MonitorSource,
    /// Where, and how patiently.
    pub hook: Hook,
    /// Failing answers in a row that make the version bad. 1 to 100.
    pub failures: u32,
}

/// Who judges a rollout as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitorSource {
    /// A controller of one's own.
    Hook,
    /// A Prometheus server: this query fails the rollout while it returns a sample that is not zero.
    Prometheus {
        /// In PromQL.
        query: String,
    },
}

impl Hook {
    /// A hook there, with the usual patience.
    #[must_use]
    pub const fn at(url: String) -> Self {
        Self { url, timeout: DEFAULT_TIMEOUT, every: DEFAULT_EVERY, token: None }
    }

    /// What is wrong with it.
    fn trouble(&self) -> Option<String> {
        let rest = self.url.strip_prefix("https://").or_else(|| self.url.strip_prefix("http://"));
        let fits = |span: Span| (SHORTEST..=LONGEST).contains(&span);
        if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(format!("{:?} is not an address like https://host:port/path", self.url))
        } else if self.url.len() > MAX_TEXT_BYTES
            || self.url.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            Some(format!("an address has no spaces and at most {MAX_TEXT_BYTES} bytes"))
        } else if !fits(self.timeout) {
            Some(format!("timeout {} is not between {SHORTEST} and {LONGEST}", self.timeout))
        } else if !fits(self.every) {
            Some(format!("every {} is not between {SHORTEST} and {LONGEST}", self.every))
        } else {
            None
        }
    }
}

impl Hooks {
    /// Nobody is asked.
    pub const NONE: Self = Self { selection: None, approval: None, monitoring: None, removal: None };

    /// What is wrong with one of them.
    pub(super) fn trouble(&self) -> Option<String> {
        let named = [
            ("selection", &self.selection),
            ("approval", &self.approval),
            ("monitoring", &self.monitoring),
            ("removal", &self.removal),
        ];
        named.into_iter().find_map(|(name, hook)| Some(format!("{name}: {}", hook.as_ref()?.trouble()?)))
    }
}

impl Monitor {
    /// What is wrong with it.
    pub(super) fn trouble(&self) -> Option<String> {
        let bad_query = match &self.source {
            MonitorSource::Hook => false,
            MonitorSource::Prometheus { query } => query.trim().is_empty() || query.len() > MAX_TEXT_BYTES,
        };
        if bad_query {
            Some(format!("a query is not empty and has at most {MAX_TEXT_BYTES} bytes"))
        } else if self.failures == 0 || self.failures > MAX_FAILURES {
            Some(format!("failures {} is not between 1 and {MAX_FAILURES}", self.failures).to_string())
        } else {
            self.hook.trouble()
        }
    }

    /// How long it may be silent before the rollout pauses: three questions.
    #[must_use]
    pub const fn staleness(&self) -> Span {
        let asked = self.hook.every.plus(self.hook.timeout);
        asked.plus(asked).plus(asked)
    }
}
