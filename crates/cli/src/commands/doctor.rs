//! `doctor`: looks at this machine's server, its agent, and the connection to the control plane, and says what is wrong and what to do
//! next. Changes nothing.

mod agent;
mod connection;
pub(super) mod finding;
mod machine;
mod server;

use std::path::PathBuf;

use finding::{Finding, FindingState};

use crate::args::{Doctor, Global};
use crate::context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::Show;
use crate::show::paint::Tone;

/// The configuration of a server that is installed as a package.
const SERVER_CONFIG: &str = "/etc/bellwether/server.toml";

/// The configuration of an agent that is installed as a package.
const AGENT_CONFIG: &str = "/etc/bellwether/agent.toml";

/// What there is to look at on this machine.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) server: Option<PathBuf>,
    pub(super) agent: Option<PathBuf>,
    pub(super) connection: bool,
}

impl Present {
    /// # Errors
    /// There is nothing, or the contexts file cannot be read.
    pub(super) fn find(global: &Global, doctor: &Doctor) -> Result<Self, Failure> {
        let installed = |path: &str| Some(PathBuf::from(path)).filter(|path| path.exists());
        let present = Self {
            server: doctor.server_config.clone().or_else(|| installed(SERVER_CONFIG)),
            agent: doctor.agent_config.clone().or_else(|| installed(AGENT_CONFIG)),
            connection: context::is_given(global)?,
        };
        if present.server.is_none() && present.agent.is_none() && !present.connection {
            let nothing =
                "find anything to look at: there is no server, no agent and no connection context here";
            return Err(Failure::usage(nothing).hint("give --server-config, --agent-config or --server"));
        }
        Ok(present)
    }
}

pub(super) async fn run(global: &Global, doctor: &Doctor) -> CommandResult {
    let present = Present::find(global, doctor)?;
    let findings = look(global, &present).await;
    let show = Show::new(global);
    let failed = || findings.iter().filter(|finding| finding.state == FindingState::Failed);
    show.data(
        &findings,
        || failed().map(|finding| finding.check.clone()).collect(),
        |_| {
            let lines = findings.iter().map(|finding| line(&show, finding));
            lines.collect::<Vec<_>>().join("\n")
        },
    )?;
    Ok(if failed().next().is_some() { Exit::No } else { Exit::Yes })
}

/// Everything that was found, in the order in which it is to be mended.
pub(super) async fn look(global: &Global, present: &Present) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(path) = &present.server {
        server::look(path, &mut findings).await;
    }
    if let Some(path) = &present.agent {
        agent::look(path, &mut findings).await;
    }
    if present.connection {
        connection::look(global, &mut findings).await;
    }
    findings
}

fn line(show: &Show, finding: &Finding) -> String {
    let (word, tone) = match finding.state {
        FindingState::Ok => ("ok", Tone::Good),
        FindingState::Warning => ("warning", Tone::Busy),
        FindingState::Failed => ("failed", Tone::Bad),
    };
    let state = show.paint.text(tone, &format!("{word:<8}"));
    let next = finding.next.as_ref().map_or_else(String::new, |next| format!("\n{:9}next: {next}", ""));
    format!("{state} {:<26} {}{next}", finding.check, finding.detail)
}
