//! Hooks and the monitor of a policy, in their written and stored form.

use bellwether_core::records::policy::hook as core;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read_some, some_object};

/// An HTTP endpoint that a rollout consults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// URL, `http://…` or `https://…`.
    #[schema(example = "http://judge.example:9000/web")]
    pub url: String,
    /// Time within which a call must be answered, `100ms` to `1h`. Default 10s.
    #[schema(example = "5s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Time from an answer, or a failed call, to the next call with the same question, `100ms` to `1h`.
    /// Default 30s.
    #[schema(example = "30s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Name of the bearer token in the server's configuration, `hook_tokens`; no token is sent if absent.
    #[schema(example = "judge")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// The hooks that a rollout consults; one that is absent is not called.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Hooks {
    /// Selects the targets that are updated next.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub selection: Option<Hook>,
    /// Approves the selected targets before they are updated.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub approval: Option<Hook>,
    /// Judges each target that has soaked.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<Hook>,
    /// Removes targets that do not run the version once it is good.
    #[serde(default, deserialize_with = "some_object", skip_serializing_if = "Option::is_none")]
    pub removal: Option<Hook>,
}

/// The monitor of a rollout as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Monitor {
    /// URL of an HTTP endpoint, or of a Prometheus server if `query` is set.
    #[schema(example = "http://judge.example:9000/web")]
    pub url: String,
    /// PromQL query: the rollout is unhealthy while it returns a sample other than zero.
    #[schema(example = "sum(rate(errors[1m])) > bool 5")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Number of unhealthy answers in a row that make the version bad, 1 to 100. Default 2.
    #[schema(example = 3)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// Time within which a call must be answered, `100ms` to `1h`. Default 10s.
    #[schema(example = "5s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Time from an answer, or a failed call, to the next call, `100ms` to `1h`. Default 30s.
    #[schema(example = "30s")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Name of the bearer token in the server's configuration, `hook_tokens`; no token is sent if absent.
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
