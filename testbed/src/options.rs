//! What a testbed consists of.

use std::path::PathBuf;

/// What an agent does when its caller has nothing better: it notes each version it was told.
const SECTIONS: &str =
    "[entity.web]\nstatic = [\"/bin/sh\", \"-c\", \"echo $BELLWETHER_VERSION >> {home}/marks\"]\n";

/// What is to be on the testbed.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program `bellwether`.
    pub program: PathBuf,
    /// Members of the etcd; with none, the one server keeps its own store.
    pub etcd: usize,
    /// Servers.
    pub servers: usize,
    /// Agents.
    pub agents: usize,
    /// The one server that agents are configured with; all of them otherwise.
    pub agents_know: Option<usize>,
    /// Whether members ask before they stand for election: one that was cut off disturbs nobody when it is back.
    pub pre_vote: bool,
    /// The size at which etcd takes no more writes.
    pub quota_bytes: Option<u64>,
    /// The size of each member's disk, in MiB; that of the machine otherwise.
    pub disk_mib: Option<u32>,
    /// Whether servers reach each member by way of a proxy, which may be slow and lossy.
    pub proxied: bool,
    /// What agents do, as in their `agent.toml`; `{home}` is the agent's own directory.
    pub sections: String,
}

impl Options {
    /// Three members, three servers, six agents that note each version they are told.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            etcd: 3,
            servers: 3,
            agents: 6,
            agents_know: None,
            pre_vote: true,
            quota_bytes: None,
            disk_mib: None,
            proxied: false,
            sections: SECTIONS.to_owned(),
        }
    }
}
