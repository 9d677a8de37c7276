//! The local status: a file about this agent that can be read on the node without the control plane.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::local::account::EntityAccount;
use bellwether_core::records::member::MemberReport;
use bellwether_core::records::order::Order;
use bellwether_core::records::report::TargetHealth;
use bellwether_core::records::status::StatusState;
use bellwether_core::words::name::EnsembleName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_rt::wait::{changed_or_never, sleep_or_never};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::catalogue::CatalogueSnapshot;
use crate::disk;
use crate::files::state::FileState;
use crate::identity::Identity;
use crate::link::contact::ServerContact;
use crate::lock::DirectoryLock;
use crate::reload::ConfigState;
use crate::report_board::ReportBoard;

const FILE: &str = "status.json";

/// Changes that come within this are written together.
const GATHER: Duration = Duration::from_millis(50);

/// When a file that cannot be written is written again: a full disk is cleared by people.
const RETRY: Duration = Duration::from_secs(2);

/// The status of the agent on this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The schema of this file.
    pub schema: u32,
    /// This node's name.
    pub node: String,
    /// Its namespace.
    pub namespace: String,
    /// The agent's version.
    pub agent_version: String,
    /// The agent's process number.
    pub pid: u32,
    /// Whether that agent is running now; determined when the file is read.
    #[serde(default)]
    pub alive: bool,
    /// When this was written, milliseconds since the Unix epoch, by this node's clock.
    pub written_at_ms: u64,
    /// The server in use.
    pub server: String,
    /// Since when it answers, milliseconds since the Unix epoch; absent while it does not.
    pub connected_since_ms: Option<u64>,
    /// When it last answered, milliseconds since the Unix epoch.
    pub last_contact_ms: Option<u64>,
    /// Why the last call failed.
    pub problem: Option<String>,
    /// What a server said when the node was decommissioned, for which the agent ended; absent otherwise.
    #[serde(default)]
    pub decommissioned: Option<String>,
    /// Why the last catalogue update cannot be understood; the copy before it stays in use.
    #[serde(default)]
    pub misread: Option<String>,
    /// Why the last order was refused; the order before it stays in force.
    #[serde(default)]
    pub refused: Option<String>,
    /// Why this file cannot be written; absent while it can. Fits after "cannot ".
    #[serde(default)]
    pub unwritable: Option<String>,
    /// The configuration in force.
    #[serde(default)]
    pub configuration: ConfigurationStatus,
    /// When an agent before this one stored the catalogue in use, milliseconds since the Unix epoch; absent once a server
    /// answered.
    #[serde(default)]
    pub catalogue_stored_at_ms: Option<u64>,
    /// Generation of the order in force.
    pub generation: u64,
    /// Its term.
    pub term: u64,
    /// Why the node is paused, if it is.
    pub paused: Option<String>,
    /// Whether this node is set up; absent before the first check.
    #[serde(default)]
    pub provision: Option<ProvisionStatus>,
    /// By entity name.
    pub entities: BTreeMap<String, EntityStatus>,
    /// The members of ensembles, by ensemble.
    #[serde(default)]
    pub members: BTreeMap<String, MemberStatus>,
    /// The files that are written from the catalogue, by path.
    #[serde(default)]
    pub files: BTreeMap<String, FileStatus>,
}

/// The configuration of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConfigurationStatus {
    /// How many configurations this process has run with: 1 for the first.
    pub number: u64,
    /// When it was read, milliseconds since the Unix epoch.
    pub read_at_ms: u64,
    /// Why the one that was read last was refused; the one before it stays in force. Fits after "cannot ".
    pub refused: Option<String>,
    /// Definitions of services that cannot be used: the agent runs without them. Each fits after "cannot ".
    pub refused_definitions: Vec<String>,
}

/// Whether a node is set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvisionStatus {
    /// `success`, `failed` or `pending`.
    pub state: String,
    /// What is missing.
    pub reason: String,
}

/// The state of one catalogue file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStatus {
    /// `success`, `failed` or `pending`.
    pub state: String,
    /// Why it is not up to date.
    pub reason: String,
    /// Failures in a row.
    pub failed: u32,
    /// When it was last replaced since the agent started, milliseconds since the Unix epoch.
    pub changed_at_ms: Option<u64>,
}

/// The state of one entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityStatus {
    /// The last version that validation passed on.
    pub running: Option<String>,
    /// The assigned version.
    pub assigned: Option<String>,
    /// `no_checks`, `healthy` or `failing`.
    pub health: String,
    /// What failed or waits in its configuration or validation: `failed: …` or `pending: …`.
    #[serde(default)]
    pub problem: Option<String>,
    /// Since when `running` is healthy without interruption, milliseconds since the Unix epoch.
    pub healthy_since_ms: Option<u64>,
    /// One line: the running version, the assigned one, and what prevents it.
    pub line: String,
}

/// The state of a member of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Number of the member.
    pub number: u64,
    /// `refused`, `prepared`, `starting`, `working`, `failed` or `left`.
    pub state: String,
    /// Why it does not work, or what it waits for; empty if it is well.
    pub reason: String,
}

/// Why there is no status. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// No agent has ever run on this data directory.
    #[error("find a status in {dir}: no agent has run there; check data_dir")]
    None {
        /// The data directory.
        dir: PathBuf,
    },
    /// The file cannot be read.
    #[error("read {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// Reads the status that the agent of a data directory wrote last, and checks whether the agent is running.
///
/// # Errors
/// [`StatusError`].
pub fn read(data_dir: &Path) -> Result<AgentStatus, StatusError> {
    let path = data_dir.join(FILE);
    let failed = |reason: String| StatusError::File { path: path.clone(), reason };
    let text = disk::read(&path).map_err(|error| failed(error.to_string()))?;
    let text = text.ok_or_else(|| StatusError::None { dir: data_dir.to_owned() })?;
    let mut status: AgentStatus = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    status.alive = DirectoryLock::is_held(data_dir).map_err(|error| failed(error.to_string()))?;
    Ok(status)
}

/// The process of the agent that runs on a data directory; `None` if none runs.
#[must_use]
pub fn running_process(data_dir: &Path) -> Option<String> {
    DirectoryLock::holder(data_dir).ok().flatten()
}

/// Writes that the node was decommissioned, for which its agent ends.
pub(crate) fn keep_decommissioned(data_dir: &Path, reason: &str) {
    let kept = read(data_dir).map_err(|error| error.to_string()).and_then(|status| {
        let decommissioned = Some(reason.to_owned());
        let status = AgentStatus { decommissioned, connected_since_ms: None, ..status };
        write(&data_dir.join(FILE), &status).map_err(|error| format!("write {FILE}: {error}"))
    });
    if let Err(reason) = kept {
        tracing::warn!("cannot {reason}; the local status does not say that this node was decommissioned");
    }
}

/// The sources of the status. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct StatusSources {
    pub(crate) identity: Identity,
    pub(crate) orders: watch::Receiver<Option<Arc<Order>>>,
    pub(crate) board: watch::Receiver<ReportBoard>,
    pub(crate) contact: watch::Receiver<ServerContact>,
    pub(crate) config: watch::Receiver<ConfigState>,
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    pub(crate) members: watch::Receiver<BTreeMap<EnsembleName, MemberReport>>,
    /// Why the file cannot be written. Fits after "cannot ".
    pub(crate) unwritable: watch::Sender<Option<String>>,
}

impl StatusSources {
    /// Writes the file after every change, until the agent stops.
    pub(crate) async fn run(mut self, data_dir: PathBuf, clock: Clock, tasks: Tasks) {
        let token = tasks.token();
        let path = data_dir.join(FILE);
        loop {
            let status = self.status(clock.now());
            let target = path.clone();
            let written = tasks.spawn_blocking(move || write(&target, &status)).await;
            let failure = match written {
                Ok(Err(error)) => Some(format!("write {}: {error}", path.display())),
                Ok(Ok(())) | Err(_) => None,
            };
            if let Some(reason) = failure.as_ref().filter(|_| self.unwritable.borrow().is_none()) {
                tracing::warn!("cannot {reason}; the local status is known to the running agent only");
            }
            let retry = failure.is_some().then_some(RETRY);
            self.unwritable.send_replace(failure);
            // All arms only wait; the values are read above.
            let open = tokio::select! {
                () = token.cancelled() => return,
                changed = self.orders.changed() => changed.is_ok(),
                changed = self.board.changed() => changed.is_ok(),
                changed = self.contact.changed() => changed.is_ok(),
                changed = self.config.changed() => changed.is_ok(),
                () = changed_or_never(&mut self.members) => true,
                () = sleep_or_never(retry) => true,
            };
            if !open {
                return;
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// The status now.
    pub(crate) fn status(&mut self, now: Timestamp) -> AgentStatus {
        let board = self.board.borrow_and_update().clone();
        let contact = self.contact.borrow_and_update().clone();
        let order = self.orders.borrow_and_update().clone();
        let config = self.config.borrow_and_update().clone();
        let members = self.members.borrow_and_update().clone();
        let stored_at = self.snapshot.borrow().stored_at.filter(|_| contact.connected_since.is_none());
        let entities = board.entities.iter().map(|(name, account)| {
            (name.to_string(), EntityStatus::of(account, board.dismissed.contains(name)))
        });
        AgentStatus {
            schema: 1,
            node: self.identity.node.to_string(),
            namespace: self.identity.namespace.to_string(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            alive: true,
            written_at_ms: now.as_millis(),
            server: contact.server,
            connected_since_ms: contact.connected_since.map(Timestamp::as_millis),
            last_contact_ms: contact.last_contact.map(Timestamp::as_millis),
            problem: contact.trouble,
            decommissioned: None,
            misread: contact.misread,
            refused: contact.refused,
            unwritable: self.unwritable.borrow().clone(),
            configuration: ConfigurationStatus {
                number: config.number,
                read_at_ms: config.read_at.as_millis(),
                refused: config.refused,
                refused_definitions: config.refused_definitions,
            },
            catalogue_stored_at_ms: stored_at.map(Timestamp::as_millis),
            generation: order.as_ref().map_or(0, |order| order.generation.get()),
            term: order.as_ref().map_or(0, |order| order.term.get()),
            paused: order.as_ref().and_then(|order| order.content.paused.clone()),
            provision: board.provision.as_ref().map(|standing| ProvisionStatus {
                state: standing.state.as_str().to_owned(),
                reason: standing.reason.clone(),
            }),
            entities: entities.collect(),
            members: members.iter().map(|(name, report)| (name.to_string(), report.into())).collect(),
            files: board.files.iter().map(|(path, file)| (path.display().to_string(), file.into())).collect(),
        }
    }
}

impl From<&MemberReport> for MemberStatus {
    fn from(from: &MemberReport) -> Self {
        Self { number: from.number.get(), state: from.state.as_str().to_owned(), reason: from.reason.clone() }
    }
}

impl From<&FileState> for FileStatus {
    fn from(from: &FileState) -> Self {
        Self {
            state: from.state.as_str().to_owned(),
            reason: from.reason.clone(),
            failed: from.failed,
            changed_at_ms: from.changed_ms,
        }
    }
}

impl EntityStatus {
    /// The status of an entity. What failed of a run that a person has seen to is no problem.
    fn of(account: &EntityAccount, is_dismissed: bool) -> Self {
        Self {
            running: account.running.as_ref().map(ToString::to_string),
            assigned: account.wanted.as_ref().map(ToString::to_string),
            health: health(account).to_owned(),
            problem: problem(account).filter(|_| !is_dismissed),
            healthy_since_ms: account.healthy_since.map(Timestamp::as_millis),
            line: account.line.clone(),
        }
    }
}

/// What failed or waits in an entity's configuration, else in its validation. What is in progress does not count.
fn problem(account: &EntityAccount) -> Option<String> {
    let bad = |state| match state {
        StatusState::Failed | StatusState::Pending => true,
        StatusState::Success | StatusState::Running => false,
    };
    let all = [("configure", &account.configure), ("validate", &account.validate)];
    let mut all = all.iter().filter_map(|(what, standing)| Some((what, standing.as_ref()?)));
    let (what, found) = all.find(|(_, standing)| bad(standing.state))?;
    let reason = if found.reason.is_empty() { (*what).to_owned() } else { found.reason.clone() };
    Some(format!("{}: {reason}", found.state.as_str()))
}

/// Whether the validation of what runs failed, also while it is tried again.
fn is_failed(account: &EntityAccount) -> bool {
    let failed = account.validate.as_ref().is_some_and(|standing| standing.state == StatusState::Failed);
    failed && account.running == account.wanted
}

/// `no_checks`, `healthy` or `failing`.
pub(crate) fn health(account: &EntityAccount) -> &'static str {
    match &account.health {
        _ if is_failed(account) => "failing",
        TargetHealth::NoChecks => "no_checks",
        TargetHealth::Healthy => "healthy",
        TargetHealth::Failing { .. } => "failing",
    }
}

fn write(path: &Path, status: &AgentStatus) -> std::io::Result<()> {
    let text = serde_json::to_string_pretty(status).map_err(std::io::Error::other)?;
    disk::replace(path, &text)
}

#[cfg(test)]
mod tests {
    use bellwether_core::local::account::{AgentActivity, StateReason};
    use bellwether_core::local::health_tracker::CheckSummary;
    use bellwether_core::local::memory::EntityMemory;

    use super::*;

    #[test]
    fn what_failed_of_a_run_that_was_dismissed_is_no_problem() {
        let mut account =
            EntityAccount::of(&EntityMemory::default(), &AgentActivity::Idle, &CheckSummary::NoChecks, None);
        let reason = "exit code 2".to_owned();
        account.configure = Some(StateReason { state: StatusState::Failed, reason, attempt: 1, run: None });
        assert_eq!(EntityStatus::of(&account, false).problem.as_deref(), Some("failed: exit code 2"));
        assert_eq!(EntityStatus::of(&account, true).problem, None);
    }
}
