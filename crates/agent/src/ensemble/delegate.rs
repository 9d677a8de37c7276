//! What starts and stops a member in place of its agent: systemd, or executables of the node. Each call may be repeated, and be broken off.
//! What was started is kept in a file beside the member's data, so that the next agent, and one with another configuration, stops the same.

use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_core::records::member::MemberState;
use serde::{Deserialize, Serialize};

use crate::apply::CommandFacts;
use crate::apply::answer::answer;
use crate::apply::output::one_line;
use crate::apply::part::owned_safely;
use crate::config::recipe::Command;
use crate::disk;

/// The file with the order.
const ORDER: &str = "order.json";

/// The executable that tells how a member is.
const STATUS: &str = "status";

/// All executables.
pub(super) const EXECUTABLES: [&str; 4] = ["initialize", "configure_local", "destroy_local", STATUS];

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most bytes that are shown of an answer that makes no sense.
const SHOWN: usize = 80;

/// What an answer is like.
const EXAMPLE: &str = r#"{"state": "working"}"#;

/// Most bytes of an answer.
const MAX_ANSWER_BYTES: usize = 65_536;

/// What is to run, as it is told to the executables on their standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DelegateOrder {
    /// Name of the ensemble.
    pub(super) ensemble: String,
    /// Its identity: another ensemble of the same name has another.
    pub(super) identity: String,
    /// Number of the member.
    pub(super) member: u64,
    /// The address at which others reach it.
    pub(super) address: IpAddr,
    /// The port for clients; `None` if there is none.
    pub(super) port: Option<u16>,
    /// The directory for its data.
    pub(super) data: PathBuf,
    /// Who starts and stops it.
    pub(super) delegate: Delegate,
}

/// Who starts and stops a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Delegate {
    /// systemd.
    Systemd {
        /// The unit.
        unit: String,
    },
    /// Executables.
    Exec {
        /// The directory in which they are.
        dir: PathBuf,
    },
}

/// How a member is, as systemd or its executable says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DelegateStatus {
    /// Its state; `None` if it does not run, and is to be started.
    pub(super) state: Option<MemberState>,
    /// Why it is not well, in words that fit after "member 1 ".
    pub(super) reason: String,
}

/// The answer of an executable.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusAnswer {
    state: StatusWord,
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StatusWord {
    Working,
    Starting,
    Failed,
    Stopped,
}

impl DelegateOrder {
    /// What was started last for the member in this directory; `None` if nothing was.
    pub(super) fn read(directory: &Path) -> io::Result<Option<Self>> {
        let Some(text) = disk::read(&directory.join(ORDER))? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(io::Error::other)
    }

    /// Keeps it, before anything is started.
    pub(super) fn keep(&self, directory: &Path) -> io::Result<()> {
        disk::replace(&directory.join(ORDER), &serde_json::to_string(self).map_err(io::Error::other)?)
    }

    /// Forgets it, once it is stopped.
    pub(super) fn forget(directory: &Path) -> io::Result<()> {
        disk::remove(&directory.join(ORDER))
    }

    /// The commands that start it, also if it runs, each in words that fit after "cannot ".
    pub(super) fn start(&self, directory: &Path) -> Vec<(String, Command)> {
        match &self.delegate {
            Delegate::Systemd { unit } => {
                vec![(format!("start unit {unit}"), systemctl(&["--no-ask-password", "start"], unit))]
            }
            Delegate::Exec { dir } => {
                ["initialize", "configure_local"].map(|name| run(&dir.join(name), directory)).into()
            }
        }
    }

    /// The command that stops it, also if it does not run, in the same words.
    pub(super) fn stop(&self, directory: &Path) -> (String, Command) {
        match &self.delegate {
            Delegate::Systemd { unit } => {
                (format!("stop unit {unit}"), systemctl(&["--no-ask-password", "stop"], unit))
            }
            Delegate::Exec { dir } => run(&dir.join("destroy_local"), directory),
        }
    }

    /// How it is.
    pub(super) async fn status(&self, directory: &Path, facts: &CommandFacts) -> DelegateStatus {
        let asked = match &self.delegate {
            Delegate::Systemd { unit } => {
                let command = systemctl(&["show", "--property=ActiveState,SubState,Result"], unit);
                let shown = answer(&command, facts, PATIENCE, MAX_ANSWER_BYTES).await;
                shown.map(|shown| unit_status(unit, &String::from_utf8_lossy(&shown)))
            }
            Delegate::Exec { dir } => {
                let command = executable(&dir.join(STATUS), directory);
                match usable(&command).await {
                    Err(refused) => Err(format!("cannot {refused}")),
                    Ok(()) => {
                        let written = answer(&command, facts, PATIENCE, MAX_ANSWER_BYTES).await;
                        written.and_then(|written| own_status(&written))
                    }
                }
            }
        };
        asked.unwrap_or_else(|reason| DelegateStatus {
            state: Some(MemberState::Failed),
            reason: format!("cannot be asked how it is: {reason}"),
        })
    }
}

/// What `systemctl show` says.
pub(super) fn unit_status(unit: &str, shown: &str) -> DelegateStatus {
    let get = |key: &str| {
        let value = shown.lines().filter_map(|line| line.split_once('=')).find(|(name, _)| *name == key);
        value.map_or("unknown", |(_, value)| value)
    };
    let (active, result) = (get("ActiveState"), get("Result"));
    let result = if result == "success" { String::new() } else { format!(", {result}") };
    let reason = format!("has the unit {unit}, which is {active} ({}{result})", get("SubState"));
    match active {
        "active" | "reloading" | "refreshing" => {
            DelegateStatus { state: Some(MemberState::Working), reason: String::new() }
        }
        "activating" | "deactivating" => DelegateStatus { state: Some(MemberState::Starting), reason },
        _ => DelegateStatus { state: None, reason },
    }
}

/// What an executable says.
pub(super) fn own_status(written: &[u8]) -> Result<DelegateStatus, String> {
    let answer: StatusAnswer = serde_json::from_slice(written).map_err(|error| {
        let said = one_line(&String::from_utf8_lossy(written), SHOWN);
        format!("its answer is not like {EXAMPLE}, but {said:?}: {error}")
    })?;
    let reason = if answer.reason.is_empty() { String::new() } else { format!("says: {}", answer.reason) };
    let or = |words: &str| if reason.is_empty() { words.to_owned() } else { reason.clone() };
    Ok(match answer.state {
        StatusWord::Working => DelegateStatus { state: Some(MemberState::Working), reason },
        StatusWord::Starting => {
            DelegateStatus { state: Some(MemberState::Starting), reason: or("does not serve yet") }
        }
        StatusWord::Failed => {
            DelegateStatus { state: Some(MemberState::Failed), reason: or("does not serve") }
        }
        StatusWord::Stopped => DelegateStatus { state: None, reason: or("is stopped") },
    })
}

/// Why an executable cannot be run, in words that fit after "waits for "; `None` if it can.
pub(super) fn unusable(path: &Path) -> Option<String> {
    let shown = path.display();
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Some(format!("{shown}, which is not there"));
        }
        Err(error) => return Some(format!("{shown}, which cannot be looked at: {error}")),
    };
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
        return Some(format!("{shown}, which is not executable: chmod +x it"));
    }
    let all = [path.parent().and_then(|dir| Some((dir, std::fs::metadata(dir).ok()?))), Some((path, about))];
    let refused = all.into_iter().flatten().find_map(|(path, about)| owned_safely(path, &about).err());
    refused.map(|reason| format!("safe executables: cannot {reason}"))
}

/// Whether an executable is one that nobody else can have exchanged: it is looked at before each run. The error fits after "cannot ".
pub(super) async fn usable(command: &Command) -> Result<(), String> {
    let path = command.argv.first().map(PathBuf::from).filter(|path| path.is_absolute());
    let Some(path) = path else { return Ok(()) };
    let shown = path.display().to_string();
    let looked = tokio::task::spawn_blocking(move || unusable(&path)).await;
    match looked.map_err(|error| format!("look at {shown}: {error}"))? {
        None => Ok(()),
        Some(lack) => Err(format!("run it: it waits for {lack}")),
    }
}

fn systemctl(arguments: &[&str], unit: &str) -> Command {
    let argv = ["systemctl"].iter().chain(arguments).chain([&unit]).map(|word| (*word).to_owned());
    let env = [("LC_ALL".to_owned(), "C".to_owned())].into();
    Command { argv: argv.collect(), workdir: "/".into(), env, stdin: None }
}

/// A run of an executable, in words that fit after "cannot ".
fn run(path: &Path, directory: &Path) -> (String, Command) {
    (format!("run {}", path.display()), executable(path, directory))
}

/// An executable, with the order of this directory on its standard input.
fn executable(path: &Path, directory: &Path) -> Command {
    let argv = vec![path.display().to_string()];
    Command { argv, workdir: "/".into(), env: [].into(), stdin: Some(directory.join(ORDER)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(active: &str, result: &str) -> DelegateStatus {
        unit_status("web.service", &format!("Result={result}\nActiveState={active}\nSubState=x\n"))
    }

    #[test]
    fn a_unit_works_is_about_to_or_is_to_be_started() {
        assert_eq!(unit("active", "success").state, Some(MemberState::Working));
        assert_eq!(unit("activating", "success").state, Some(MemberState::Starting));
        let failed = unit("failed", "exit-code");
        assert_eq!(failed.state, None);
        assert_eq!(failed.reason, "has the unit web.service, which is failed (x, exit-code)");
        assert_eq!(unit("inactive", "success").state, None);
    }

    #[test]
    fn an_executable_says_how_a_member_is_and_nonsense_is_no_answer() {
        let said = |text: &str| own_status(text.as_bytes());
        let works = said(r#"{"state": "working"}"#).unwrap();
        assert_eq!((works.state, works.reason.as_str()), (Some(MemberState::Working), ""));
        let failed = said(r#"{"state": "failed", "reason": "the disk is full"}"#).unwrap();
        assert_eq!(failed.reason, "says: the disk is full");
        assert_eq!(said(r#"{"state": "stopped"}"#).unwrap().state, None);
        for bad in ["", "working", r#"{"state": "well"}"#, r#"{"state": "working", "x": 1}"#] {
            assert!(
                said(bad).unwrap_err().starts_with("its answer is not like {\"state\": \"working\"}, but "),
                "{bad}"
            );
        }
    }
}
