//! This machine's agent as the one to answer, for commands about this machine that are given no connection to a server.

use std::io::ErrorKind;
use std::path::Path;

use bellwether_agent::local::client::{self, LocalError};
use bellwether_agent::status::AgentStatus;
use bellwether_rt::clock::Clock;

use super::service::unreachable;
use crate::args::Global;
use crate::context;
use crate::exit::Failure;
use crate::show::Show;
use crate::show::time::{ago, date};

/// The status of this machine's agent; `None` if the command is to ask a server, because a connection to one is given or
/// no agent has a socket here.
///
/// # Errors
/// The agent cannot be asked, or its namespace is another one than the one given.
pub(super) async fn status(global: &Global, data_dir: &Path) -> Result<Option<AgentStatus>, Failure> {
    if context::is_given(global)? {
        return Ok(None);
    }
    let status = match client::status(data_dir).await {
        Err(LocalError::Away { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        answered => answered.map_err(unreachable)?,
    };
    match &global.namespace {
        Some(namespace) if *namespace != status.namespace => Err(Failure::usage(format!(
            "ask this machine's agent about namespace {namespace}: its namespace is {}",
            status.namespace
        ))),
        _ => Ok(Some(status)),
    }
}

/// Tells a person how old the agent's answer is, if the agent is cut off from the control plane.
pub(super) fn note_age(show: &Show, status: &AgentStatus) {
    if status.connected_since_ms.is_some() {
        return;
    }
    let age = match status.last_contact_ms.or(status.catalogue_stored_at_ms) {
        Some(at) => format!("as of {}, {} ago", date(at), ago(Clock::system().now().as_millis(), at)),
        None => "from before the agent's last start".to_owned(),
    };
    show.note(&format!("this machine's agent cannot reach the control plane: its answer is {age}"));
}
