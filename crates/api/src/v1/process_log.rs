//! Logs of supervised processes: what a reader gets.

use serde::{Deserialize, Serialize};

use super::job_log::LogText;
use super::server::ServerAddress;

/// A part of the output of the process of an entity on a node: whole lines, as long as more may follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProcessLog {
    /// Byte offset of the text in the log. It is below the one in the request if the log was emptied since, because it was full.
    pub offset: u64,
    /// Byte offset at which the next part begins. Masks and replaced characters make it differ from the length of the text.
    pub next: u64,
    /// The text, without secrets; empty if there is nothing new.
    pub text: String,
    /// Whether the node has more of it already.
    pub more: bool,
    /// The server that the node is connected to, if it is another one: it has the log; ask it. The text is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerAddress>,
}

impl ProcessLog {
    /// Nothing new.
    #[must_use]
    pub const fn nothing(offset: u64) -> Self {
        Self { offset, next: offset, text: String::new(), more: false, server: None }
    }
}

impl From<LogText> for ProcessLog {
    fn from(from: LogText) -> Self {
        let LogText { offset, next, text, more, state: _ } = from;
        Self { offset, next, text, more, server: None }
    }
}
