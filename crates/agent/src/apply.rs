//! Applying on the host: commands that end, and the supervised process.

pub(crate) mod answer;
mod command_exit;
pub(crate) mod detached;
mod escaped;
pub(crate) mod exec;
pub(crate) mod files;
pub(crate) mod former;
pub(crate) mod former_work;
pub(crate) mod guarded;
pub(crate) mod hidden;
pub(crate) mod job_log;
pub(crate) mod leftover;
pub(crate) mod log;
pub(crate) mod log_store;
pub(crate) mod output;
pub(crate) mod part;
mod pidfd;
pub(crate) mod process;
pub(crate) mod process_log;
pub(crate) mod process_stat;
pub(crate) mod render;
pub(crate) mod template;

use std::collections::BTreeMap;

use crate::config::recipe::Command;
use crate::limits::{LimitedProgram, ResourceLimits};
use crate::users::UserName;

/// The default `PATH` of commands, which do not inherit the agent's environment. Change it with `env = { PATH = ".." }`.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The facts that every command gets in its environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandFacts {
    /// `BELLWETHER_VERSION`: the version to apply.
    pub(crate) version: String,
    /// `BELLWETHER_PREVIOUS`: the last version that passed validation; empty if there is none.
    pub(crate) previous: String,
    /// `BELLWETHER_ENTITY`: the entity.
    pub(crate) entity: String,
    /// `BELLWETHER_NODE`: this node.
    pub(crate) node: String,
    /// `BELLWETHER_RUN`: the unique name of the run, by which the next agent finds what a killed agent left running.
    pub(crate) run: String,
    /// The user as which it is started; the agent's own if `None`. Not in the environment.
    pub(crate) user: Option<UserName>,
    /// The limits with which it is started. Not in the environment.
    pub(crate) limits: Option<ResourceLimits>,
}

impl CommandFacts {
    /// How a program is started as its user and with its limits; its arguments are added.
    pub(crate) fn program(&self, program: &str) -> std::io::Result<LimitedProgram> {
        let user = self.user.as_ref().map(UserName::program).transpose().map_err(std::io::Error::other)?;
        let user = user.flatten();
        if let Some(limits) = &self.limits {
            return limits.program(program, &self.entity, user);
        }
        let mut command = tokio::process::Command::new(program);
        if let Some((user, group)) = user {
            command.uid(user).gid(group);
        }
        Ok(LimitedProgram { command, scope: None })
    }

    /// The facts by name; the variable is `BELLWETHER_` and the name in upper case.
    pub(crate) fn all(&self) -> [(&'static str, &str); 5] {
        [
            ("version", &self.version),
            ("previous", &self.previous),
            ("entity", &self.entity),
            ("node", &self.node),
            ("run", &self.run),
        ]
    }

    /// The whole environment of a command: `PATH`, its own variables, and these facts. Nothing is inherited.
    pub(crate) fn environment(&self, command: &Command) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([("PATH".to_owned(), PATH.to_owned())]);
        all.extend(command.env.clone());
        for (name, value) in self.all() {
            all.insert(format!("BELLWETHER_{}", name.to_ascii_uppercase()), value.to_owned());
        }
        all
    }
}

/// The variable that names a run.
const RUN: &str = "BELLWETHER_RUN";

/// The variable that names the file with the params of a job, in its working directory.
const PARAMS: &str = "BELLWETHER_PARAMS";

/// The variable of the guard of a job: the job's working directory.
const GUARD: &str = "BELLWETHER_GUARD";
