//! What a testbed consists of, and what its parts are told. Starts nothing.

use std::path::PathBuf;

/// Default configuration of an agent's entities: it records each version it is assigned.
const SECTIONS: &str =
    "[entity.web]\nstatic = [\"/bin/sh\", \"-c\", \"echo $BELLWETHER_VERSION >> {home}/marks\"]\n";

/// What the testbed consists of.
#[derive(Debug, Clone)]
pub struct Options {
    /// Path of the program `bellwether`.
    pub program: PathBuf,
    /// Number of etcd members. With 0, the only server uses its embedded store.
    pub etcd: usize,
    /// Number of servers.
    pub servers: usize,
    /// Number of agents.
    pub agents: usize,
    /// Number of the only server that agents are configured with, from 1; all servers if absent.
    pub agents_know: Option<usize>,
    /// Whether etcd runs with `--pre-vote`, so that a member that was cut off does not disturb the others when it returns.
    pub pre_vote: bool,
    /// etcd's storage quota, in bytes.
    pub quota_bytes: Option<u64>,
    /// Size of each member's own disk, in MiB; the machine's disk if absent.
    pub disk_mib: Option<u32>,
    /// Whether servers reach each member through a proxy, which can be made slow and lossy.
    pub proxied: bool,
    /// Entities of the agents, as in `agent.toml`; `{home}` stands for the agent's directory.
    pub sections: String,
}

impl Options {
    /// Three members, three servers and six agents that record each version they are assigned.
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
