//! What an agent and the guard of its job say to each other: lines of JSON over a socket, between processes of one program.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time for what a job started to end by itself after SIGTERM, before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// What the agent asks for. The end of the socket asks for the end of everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum GuardRequest {
    /// The lease of the logical node that the job runs on: each replaces the one before.
    Lease(GuardLease),
    /// Give what is left this time to end by itself, in place of [`GRACE`].
    GraceMs(u64),
    /// Run a script.
    Run(GuardedScript),
}

/// Until when a job may run, by the time since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GuardLease {
    /// When everything is asked to end.
    pub(crate) end_ms: u64,
    /// When what is left is killed.
    pub(crate) kill_ms: u64,
}

/// A script of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GuardedScript {
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// Its working directory.
    pub(crate) workdir: PathBuf,
    /// Its whole environment.
    pub(crate) env: BTreeMap<String, String>,
    /// The file that it reads as its standard input; none for an empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stdin: Option<PathBuf>,
}

/// What became of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum GuardAnswer {
    /// The script exited with this code.
    Exited(i32),
    /// A signal ended the script.
    Killed(i32),
    /// The script cannot be started, for this reason.
    NotStarted(String),
    /// The lease is over: everything is ended.
    LeaseOver,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_these_lines() {
        let script = GuardedScript {
            argv: vec!["/bin/sh".to_owned(), "do".to_owned()],
            workdir: "/work".into(),
            env: [("PATH".to_owned(), "/bin".to_owned())].into(),
            stdin: None,
        };
        let requests = [
            (
                GuardRequest::Lease(GuardLease { end_ms: 7, kill_ms: 9 }),
                r#"{"lease":{"end_ms":7,"kill_ms":9}}"#,
            ),
            (GuardRequest::GraceMs(0), r#"{"grace_ms":0}"#),
            (
                GuardRequest::Run(script),
                r#"{"run":{"argv":["/bin/sh","do"],"workdir":"/work","env":{"PATH":"/bin"}}}"#,
            ),
        ];
        for (request, line) in requests {
            assert_eq!(serde_json::to_string(&request).unwrap(), line);
            assert_eq!(serde_json::from_str::<GuardRequest>(line).unwrap(), request);
        }
        let answers = [
            (GuardAnswer::Exited(3), r#"{"exited":3}"#),
            (GuardAnswer::Killed(9), r#"{"killed":9}"#),
            (GuardAnswer::NotStarted("no".to_owned()), r#"{"not_started":"no"}"#),
            (GuardAnswer::LeaseOver, r#""lease_over""#),
        ];
        for (answer, line) in answers {
            assert_eq!(serde_json::to_string(&answer).unwrap(), line);
            assert_eq!(serde_json::from_str::<GuardAnswer>(line).unwrap(), answer);
        }
    }
}
