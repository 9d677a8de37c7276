//! systemd units: an action by `systemctl`, then polling until the unit is in the requested state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;

use super::context::PartContext;
use crate::apply::exec::{self, CommandExit, CommandResult};
use crate::config::recipe::{Command, SystemdUnit, UnitAction};

/// First interval between two polls of a unit; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest interval between two polls.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long gathering evidence may take, after the part's deadline.
const EVIDENCE: Duration = Duration::from_secs(5);

/// A unit's state, compared with the requested one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum UnitState {
    /// It is the requested one.
    There,
    /// It may become the requested one.
    OnItsWay,
    /// It is another one, and stays so.
    Elsewhere,
}

/// Does one action on a unit, and waits for its effect.
pub(super) async fn run(what: &str, unit: &SystemdUnit, job: &mut PartContext<'_>) -> StepOutcome {
    let which = format!("{what}: {}", unit.name);
    let verb = match unit.action {
        UnitAction::Start | UnitAction::Stop | UnitAction::Restart | UnitAction::Reload => {
            Some(unit.action.as_str())
        }
        UnitAction::Active => None,
    };
    if let Some(verb) = verb {
        let ended = job.run(&systemctl(unit, &["--no-ask-password", verb])).await;
        if ended.exit != CommandExit::Success {
            let summary = format!("{which}: systemctl {verb}: {}", job.words(&ended.exit));
            return failed(summary, ended, unit, job).await;
        }
    }
    let mut pause = FIRST_PAUSE;
    loop {
        let ended = job.run(&systemctl(unit, &["show", "--property=ActiveState,SubState,Result,Type"])).await;
        if ended.exit != CommandExit::Success {
            let summary = format!("{which}: systemctl show: {}", job.words(&ended.exit));
            return failed(summary, ended, unit, job).await;
        }
        let shown = properties(&ended.tail);
        match standing(&shown, unit.action) {
            UnitState::There => return StepOutcome::Done,
            UnitState::Elsewhere => {
                return failed(format!("{which} is {}", line(&shown)), ended, unit, job).await;
            }
            UnitState::OnItsWay if job.left().is_zero() => {
                let summary = format!("{which} is still {} after {:?}", line(&shown), job.limit);
                return failed(summary, ended, unit, job).await;
            }
            UnitState::OnItsWay => {}
        }
        job.sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn systemctl(unit: &SystemdUnit, arguments: &[&str]) -> Command {
    let mut argv = vec!["systemctl".to_owned()];
    argv.extend(arguments.iter().map(|&argument| argument.to_owned()));
    argv.push(unit.name.clone());
    let mut env = unit.env.clone();
    env.insert("LC_ALL".to_owned(), "C".to_owned());
    Command { argv, workdir: PathBuf::from("/"), env, stdin: None }
}

/// `KEY=VALUE` lines as systemd prints them; other lines are ignored.
fn properties(text: &str) -> BTreeMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('=')).collect()
}

fn standing(shown: &BTreeMap<&str, &str>, action: UnitAction) -> UnitState {
    let get = |key: &str| shown.get(key).copied().unwrap_or_default();
    let at_rest = matches!(get("ActiveState"), "inactive" | "failed");
    match action {
        UnitAction::Stop if at_rest => UnitState::There,
        UnitAction::Stop => UnitState::OnItsWay,
        UnitAction::Start | UnitAction::Restart | UnitAction::Reload | UnitAction::Active => {
            let started = matches!(action, UnitAction::Start | UnitAction::Restart);
            match get("ActiveState") {
                "active" => UnitState::There,
                "activating" | "reloading" | "deactivating" | "refreshing" => UnitState::OnItsWay,
                // A oneshot unit is inactive after it has succeeded.
                "inactive" if started && get("Type") == "oneshot" && get("Result") == "success" => {
                    UnitState::There
                }
                _ => UnitState::Elsewhere,
            }
        }
    }
}

fn line(shown: &BTreeMap<&str, &str>) -> String {
    let get = |key: &str| shown.get(key).copied().unwrap_or("unknown");
    let result = shown.get("Result").filter(|result| **result != "success");
    let result = result.map_or(String::new(), |result| format!(", {result}"));
    format!("{} ({}{result})", get("ActiveState"), get("SubState"))
}

/// A failure with what systemd and the unit's journal report.
async fn failed(
    summary: String,
    ended: CommandResult,
    unit: &SystemdUnit,
    job: &mut PartContext<'_>,
) -> StepOutcome {
    let exit_code = ended.exit.code().filter(|code| *code != 0);
    if absent(&ended.tail) {
        let what = summary.split_once(": systemctl").map_or(summary.as_str(), |(what, _)| what);
        let summary = format!("{what}: systemd is not running on this node");
        return StepOutcome::Failed(Evidence { summary, exit_code, tail: ended.tail, ..Evidence::default() });
    }
    let status = systemctl(unit, &["status", "--no-pager", "--full", "--lines=20"]);
    let output = exec::run(&status, job.facts, EVIDENCE, Some(job.log)).await;
    let tail = if output.tail.trim().is_empty() { ended.tail } else { output.tail };
    StepOutcome::Failed(Evidence { summary, exit_code, tail, ..Evidence::default() })
}

/// Whether `systemctl` failed because systemd does not run here.
fn absent(output: &str) -> bool {
    ["not been booted with systemd", "Failed to connect to bus"].iter().any(|words| output.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands(active: &str, kind: &str, result: &str, action: UnitAction) -> UnitState {
        let text = format!("Type={kind}\nResult={result}\nActiveState={active}\nSubState=x\n");
        standing(&properties(&text), action)
    }

    #[test]
    fn a_unit_has_reached_its_state_is_changing_or_has_another() {
        use UnitAction::{Active, Restart, Start, Stop};
        assert_eq!(stands("active", "notify", "success", Start), UnitState::There);
        assert_eq!(stands("activating", "notify", "success", Start), UnitState::OnItsWay);
        assert_eq!(stands("failed", "simple", "exit-code", Restart), UnitState::Elsewhere);
        assert_eq!(stands("inactive", "simple", "success", Start), UnitState::Elsewhere);
        assert_eq!(stands("inactive", "oneshot", "success", Start), UnitState::There);
        assert_eq!(stands("inactive", "oneshot", "success", Active), UnitState::Elsewhere);
        assert_eq!(stands("deactivating", "simple", "success", Stop), UnitState::OnItsWay);
        assert_eq!(stands("inactive", "simple", "success", Stop), UnitState::There);
        assert_eq!(stands("failed", "simple", "signal", Stop), UnitState::There);
        assert_eq!(stands("", "", "", Active), UnitState::Elsewhere);
    }
}
