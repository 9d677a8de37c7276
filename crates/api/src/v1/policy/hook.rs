//! The controllers a policy asks, as people write them.

use bellwether_core::records::policy::hook as core;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read_some};

/// An HTTP endpoint that is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// Where: `http://…` or `https://…`.
    #[schema(example = "http://judge.example:9000/web")]
    pub url: String,
    /// How long one answer may take, 100ms to 1h. Default 10s.
    #[schema(example = "5s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How long after an answer it is asked again, 100ms to 1h. Default 30s.
    #[schema(example = "30s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// The name under which the server's configuration keeps the token to send.
    #[schema(example = "judge")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Which of its controllers a rollout asks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Hooks {
    /// Chooses who is next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<Hook>,
    /// Has to agree before they are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Hook>,
    /// Judges single targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<Hook>,
    /// Takes away, once the version is good, targets that do not run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Hook>,
}

/// What judges a rollout as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Monitor {
    /// Where: a controller of one's own, or a Prometheus server.
    #[schema(example = "http://judge.example:9000/web")]
    pub url: String,
    /// In PromQL, for a Prometheus server: fails the rollout while it returns a sample that is not zero.
    #[schema(example = "sum(rate(errors[1m])) > bool 5")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Failing answers in a row that make the version bad, 1 to 100. Default 2.
    #[schema(example = 3)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// How long one answer may take, 100ms to 1h. Default 10s.
    #[schema(example = "5s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// How long after an answer it is asked again, 100ms to 1h. Default 30s.
    #[schema(example = "30s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// The name under which the server's configuration keeps the token to send.
    #[schema(example = "judge")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl From<&core::Hook> for Hook {
    fn from(from: &core::Hook) -> Self {
        Self {
            url: from.url.clone(),
            timeout: (from.timeout != core::DEFAULT_TIMEOUT).then(|| from.timeout.to_string()),
            every: (from.every != core::DEFAULT_EVERY).then(|| from.every.to_string()),
            token: from.token.as_ref().map(ToString::to_string),
        }
    }
}

impl TryFrom<&Hook> for core::Hook {
    type Error = ShapeError;
    fn try_from(from: &Hook) -> Result<Self, ShapeError> {
        Ok(Self {
            url: from.url.clone(),
            timeout: read_some("timeout", from.timeout.as_deref())?.unwrap_or(core::DEFAULT_TIMEOUT),
            every: read_some("every", from.every.as_deref())?.unwrap_or(core::DEFAULT_EVERY),
            token: read_some("token", from.token.as_deref())?,
        })
    }
}

impl From<&core::Hooks> for Hooks {
    fn from(from: &core::Hooks) -> Self {
        Self {
            selection: from.selection.as_ref().map(Hook::from),
            approval: from.approval.as_ref().map(Hook::from),
            monitoring: from.monitoring.as_ref().map(Hook::from),
            removal: from.removal.as_ref().map(Hook::from),
        }
    }
}

impl TryFrom<&Hooks> for core::Hooks {
    type Error = ShapeError;
    fn try_from(from: &Hooks) -> Result<Self, ShapeError> {
        let hook = |name: &str, hook: Option<&Hook>| {
            let read = hook.map(core::Hook::try_from).transpose();
            read.map_err(|error| error.within(name).within("hooks"))
        };
        Ok(Self {
            selection: hook("selection", from.selection.as_ref())?,
            approval: hook("approval", from.approval.as_ref())?,
            monitoring: hook("monitoring", from.monitoring.as_ref())?,
            removal: hook("removal", from.removal.as_ref())?,
        })
    }
}

impl From<&core::Monitor> for Monitor {
    fn from(from: &core::Monitor) -> Self {
        let Hook { url, timeout, every, token } = Hook::from(&from.hook);
        let query = match &from.source {
            core::MonitorSource::Hook => None,
            core::MonitorSource::Prometheus { query } => Some(query.clone()),
        };
        let failures = (from.failures != core::DEFAULT_FAILURES).then_some(from.failures);
        Self { url, query, failures, timeout, every, token }
    }
}

impl TryFrom<&Monitor> for core::Monitor {
    type Error = ShapeError;
    fn try_from(from: &Monitor) -> Result<Self, ShapeError> {
        let Monitor { url, query, failures, timeout, every, token } = from.clone();
        let hook = core::Hook::try_from(&Hook { url, timeout, every, token });
        let source =
            query.map_or(core::MonitorSource::Hook, |query| core::MonitorSource::Prometheus { query });
        Ok(Self {
            source,
            hook: hook.map_err(|error| error.within("monitor"))?,
            failures: failures.unwrap_or(core::DEFAULT_FAILURES),
        })
    }
}
