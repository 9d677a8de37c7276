//! Doing on the host: commands that end, and the process that does not.

pub(crate) mod exec;
pub(crate) mod files;
pub(crate) mod leftover;
pub(crate) mod log;
pub(crate) mod log_store;
pub(crate) mod output;
pub(crate) mod part;
pub(crate) mod process;
pub(crate) mod render;
pub(crate) mod template;

use std::collections::BTreeMap;

use crate::config::recipe::Command;

/// Where commands look for programs: the agent's own environment is not theirs. Change it with `env = { PATH = ".." }`.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What every command is told in its environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandFacts {
    /// `BELLWETHER_VERSION`: the version to be brought about.
    pub(crate) version: String,
    /// `BELLWETHER_PREVIOUS`: the version validated before, or nothing.
    pub(crate) previous: String,
    /// `BELLWETHER_ENTITY`.
    pub(crate) entity: String,
    /// `BELLWETHER_NODE`.
    pub(crate) node: String,
    /// `BELLWETHER_RUN`: which run this is, so that what an agent killed halfway left behind is found again.
    pub(crate) run: String,
}

impl CommandFacts {
    /// Each with its name; the variable is `BELLWETHER_` and the name in capitals.
    pub(crate) fn all(&self) -> [(&'static str, &str); 5] {
        [
            ("version", &self.version),
            ("previous", &self.previous),
            ("entity", &self.entity),
            ("node", &self.node),
            ("run", &self.run),
        ]
    }

    /// The whole environment of a command: `PATH`, its own variables, and these; nothing is inherited.
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
