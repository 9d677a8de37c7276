//! The controllers a policy names: the selection, approval, monitoring and removal hooks, and the monitor of
//! the rollout as a whole. Owns their addresses and intervals; the server calls them.

use alloc::format;
use alloc::string::{String, ToString};
use core::net::Ipv6Addr;

use crate::words::name::Actor;
use crate::words::time::Span;

/// Longest address of a hook, and longest query, in bytes.
pub const MAX_TEXT_BYTES: usize = 4_096;

/// Default time limit of one answer.
pub const DEFAULT_TIMEOUT: Span = Span::from_secs(10);

/// Default interval between an answer and the next call.
pub const DEFAULT_EVERY: Span = Span::from_secs(30);

/// Shortest timeout and interval: shorter ones would overload the hook.
const SHORTEST: Span = Span::from_millis(100);

/// Longest timeout and interval: an hour.
const LONGEST: Span = Span::from_secs(3_600);

/// Default number of consecutive failing answers that make the version bad: a single one may be a transient
/// error.
pub const DEFAULT_FAILURES: u32 = 2;

/// Largest permitted number of consecutive failing answers.
const MAX_FAILURES: u32 = 100;

/// An HTTP endpoint to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Its URL: `http://…` or `https://…`.
    pub url: String,
    /// Time limit of one answer. 100 ms to an hour.
    pub timeout: Span,
    /// Interval between an answer, or a failed call, and the next call. 100 ms to an hour.
    pub every: Span,
    /// Name of the token to send; the server's configuration holds the token itself.
    pub token: Option<Actor>,
}

/// The hooks that a rollout calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hooks {
    /// Chooses the targets to update next among the eligible ones; never more than the batch has room for.
    pub selection: Option<Hook>,
    /// Must approve the chosen targets before they start.
    pub approval: Option<Hook>,
    /// Judges single targets that are healthy on the version.
    pub monitoring: Option<Hook>,
    /// Removes targets that do not run the version, once it is good (blue-green).
    pub removal: Option<Hook>,
}

/// The monitor that judges a rollout as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monitor {
    /// Kind of the monitor.
    pub source: MonitorSource,
    /// Its address and intervals.
    pub hook: Hook,
    /// Consecutive failing answers that make the version bad. 1 to 100.
    pub failures: u32,
}

/// Kind of monitor that judges a rollout as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitorSource {
    /// A controller that answers with a judgement.
    Hook,
    /// A Prometheus server: this query fails the rollout while it returns a sample that is not zero.
    Prometheus {
        /// The query, in PromQL.
        query: String,
    },
}

impl Hook {
    /// A hook at this URL, with default timeout and interval and no token.
    #[must_use]
    pub const fn at(url: String) -> Self {
        Self { url, timeout: DEFAULT_TIMEOUT, every: DEFAULT_EVERY, token: None }
    }

    /// Why the hook is not valid; `None` if it is.
    fn invalid_reason(&self) -> Option<String> {
        let rest = self.url.strip_prefix("https://").or_else(|| self.url.strip_prefix("http://"));
        let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
        let fits = |span: Span| (SHORTEST..=LONGEST).contains(&span);
        if authority.is_some_and(|authority| authority.contains('@')) {
            Some("an address has no user and password, which everybody could read; use token".to_string())
        } else if !authority.is_some_and(is_host_and_port) {
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

/// Whether a text is a host with or without a port, as in a URL.
fn is_host_and_port(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((address, rest)) if address.parse::<Ipv6Addr>().is_ok() => ("v6", rest),
            Some(_) | None => return false,
        },
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_named = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let has_port = match port.strip_prefix(':') {
        Some(port) => {
            port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
        }
        None => port.is_empty(),
    };
    !host.is_empty() && is_named && has_port
}

impl Hooks {
    /// No hooks.
    pub const NONE: Self = Self { selection: None, approval: None, monitoring: None, removal: None };

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let Self { selection, approval, monitoring, removal } = self;
        selection.is_none() && approval.is_none() && monitoring.is_none() && removal.is_none()
    }

    /// Why the first of the hooks that are not valid is not; `None` if all are valid.
    pub(super) fn invalid_reason(&self) -> Option<String> {
        let named = [
            ("selection", &self.selection),
            ("approval", &self.approval),
            ("monitoring", &self.monitoring),
            ("removal", &self.removal),
        ];
        named
            .into_iter()
            .find_map(|(name, hook)| Some(format!("{name}: {}", hook.as_ref()?.invalid_reason()?)))
    }
}

impl Monitor {
    /// Why the monitor is not valid; `None` if it is.
    pub(super) fn invalid_reason(&self) -> Option<String> {
        let bad_query = match &self.source {
            MonitorSource::Hook => false,
            MonitorSource::Prometheus { query } => query.trim().is_empty() || query.len() > MAX_TEXT_BYTES,
        };
        if bad_query {
            Some(format!("a query is not empty and has at most {MAX_TEXT_BYTES} bytes"))
        } else if self.failures == 0 || self.failures > MAX_FAILURES {
            Some(format!("failures {} is not between 1 and {MAX_FAILURES}", self.failures).to_string())
        } else {
            self.hook.invalid_reason()
        }
    }

    /// How long it may fail to answer before the rollout pauses: three calls.
    #[must_use]
    pub const fn staleness(&self) -> Span {
        let asked = self.hook.every.plus(self.hook.timeout);
        asked.plus(asked).plus(asked)
    }
}
