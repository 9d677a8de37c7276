//! `puppet apply --detailed-exitcodes`: what its exit codes mean, what it is told, and its error lines as evidence.

use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::{Evidence, MAX_TAIL_BYTES};

use super::context::PartContext;
use crate::apply::exec::CommandExit;
use crate::config::recipe::Command;

/// Changes were made, and none failed.
const CHANGED: i32 = 2;

/// Longest part of an error line in the summary, in characters: the rest is in the tail.
const IN_SUMMARY: usize = 240;

/// Applies a manifest: exit codes 0 and 2 are done, anything else failed.
pub(super) async fn run(which: &str, command: &Command, job: &mut PartContext<'_>) -> StepOutcome {
    let mut command = command.clone();
    for (name, value) in job.facts.all() {
        command.env.insert(format!("FACTER_bellwether_{name}"), value.to_owned());
    }
    let begin = job.log.recent().written();
    let ended = job.run(&command).await;
    let meaning = match &ended.exit {
        CommandExit::Success | CommandExit::Code(CHANGED) => return StepOutcome::Done,
        CommandExit::Code(1) => ", it could not run",
        CommandExit::Code(4) => ", resources failed",
        CommandExit::Code(6) => ", some resources changed and others failed",
        CommandExit::NotYet
        | CommandExit::Code(_)
        | CommandExit::Signal(_)
        | CommandExit::TimedOut(_)
        | CommandExit::NotStarted(_) => "",
    };
    let errors = errors(&job.log.recent().since(begin));
    let exit = match &ended.exit {
        // For puppet 75 means nothing.
        CommandExit::NotYet => "exit code 75".to_owned(),
        exit @ (CommandExit::Success
        | CommandExit::Code(_)
        | CommandExit::Signal(_)
        | CommandExit::TimedOut(_)
        | CommandExit::NotStarted(_)) => job.words(exit),
    };
    let first: String = errors.first().map_or(String::new(), |line| format!(": {line}"));
    let summary =
        format!("{which}: puppet: {exit}{meaning}{}", first.chars().take(IN_SUMMARY).collect::<String>());
    let tail = if errors.is_empty() { ended.tail } else { within(&errors) };
    StepOutcome::Failed(Evidence { summary, exit_code: ended.exit.code(), tail, failing_checks: Vec::new() })
}

/// What puppet calls errors, without those of facter, which come of facts that nobody may read and break nothing.
fn errors(output: &str) -> Vec<String> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("Error: "));
    lines.filter(|line| !line.starts_with("Facter: ")).map(str::to_owned).collect()
}

/// As many of the first lines as evidence takes: the first error is the cause of most of the others.
fn within(lines: &[String]) -> String {
    let mut tail = String::new();
    for line in lines {
        if tail.len() + line.len() + 1 > MAX_TAIL_BYTES {
            break;
        }
        tail.push_str(line);
        tail.push('\n');
    }
    if tail.is_empty() { lines.concat().chars().take(MAX_TAIL_BYTES / 4).collect() } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_that_mean_something_are_evidence() {
        let output = "Notice: a\nError: Facter: Permission denied\nError: Could not set 'file'\nWarning: b\nError: c\n";
        assert_eq!(errors(output), ["Could not set 'file'", "c"]);
        assert_eq!(within(&errors(output)), "Could not set 'file'\nc\n");
        let many = vec!["x".repeat(300); 20];
        assert!(within(&many).len() <= MAX_TAIL_BYTES);
        assert_eq!(within(&["y".repeat(9_000)]).len(), 512);
    }
}
