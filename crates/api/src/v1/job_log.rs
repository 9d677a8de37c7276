//! Logs of jobs: what a reader gets, what a node is asked for, and what it sends.

use serde::{Deserialize, Serialize};

use super::job::JobState;
use super::server::ServerAddress;

/// Most bytes of a log that are read at once.
pub const MAX_CHUNK_BYTES: usize = 64 << 10;

/// Longest wait for new output, in milliseconds.
pub const MAX_FOLLOW_MS: u64 = 30_000;

/// A part of the log of a job: whole lines, as long as more may follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobLog {
    /// Byte offset of the text in the log of the job. It is above the one in the request if what was there is no longer on the
    /// node.
    pub offset: u64,
    /// Byte offset at which the next part begins. Masks and replaced characters make it differ from the length of the text.
    pub next: u64,
    /// The text, without secrets; empty if there is nothing new.
    pub text: String,
    /// Whether the node has more of it already.
    pub more: bool,
    /// Whether nothing follows: the job has ended, and this is the last part.
    pub ended: bool,
    /// What became of the job, as the node has it now.
    pub state: JobState,
    /// The server that the node is connected to, if it is another one: it has the log; ask it. The text is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerAddress>,
}

/// What a node is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LogRequest {
    /// Number of the request at the server.
    pub number: u64,
    /// Name of the run.
    pub run: String,
    /// Index of the task in the run, from 0.
    pub index: u32,
    /// Byte offset in the log of the job from which on it is read.
    pub offset: u64,
    /// How long to wait for output if there is none, in milliseconds.
    pub wait_ms: u64,
    /// The entity whose process wrote the log, in place of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// What wrote the log of an ensemble, in place of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ensemble: Option<EnsembleLog>,
    /// Bytes before the end of the log from which on it is read, in place of the offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_bytes: Option<u64>,
}

/// What wrote a log of an ensemble on a node: its member, unless another one is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EnsembleLog {
    /// Name of the ensemble.
    pub ensemble: String,
    /// Number of the OSD, in place of the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub osd: Option<u64>,
    /// Whether it is the manager daemon of Ceph beside the member.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manager: bool,
}

/// What a node answers to a [`LogRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogChunk {
    /// The request.
    pub request: LogRequest,
    /// What was read; absent if the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<LogText>,
    /// Why the log cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A part of a log, as its node read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogText {
    /// Byte offset of the text.
    pub offset: u64,
    /// Byte offset at which the next part begins.
    pub next: u64,
    /// The text, without secrets.
    pub text: String,
    /// Whether the node has more of it already.
    pub more: bool,
    /// What became of the job.
    pub state: JobState,
}

impl JobLog {
    /// Nothing new of a job in this state.
    #[must_use]
    pub const fn nothing(offset: u64, state: JobState) -> Self {
        Self { offset, next: offset, text: String::new(), more: false, ended: false, state, server: None }
    }
}

impl From<LogText> for JobLog {
    fn from(from: LogText) -> Self {
        let LogText { offset, next, text, more, state } = from;
        Self { offset, next, text, more, ended: !more && !state.is_open(), state, server: None }
    }
}
