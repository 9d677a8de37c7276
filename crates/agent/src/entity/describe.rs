//! The description of a running step in reports: its part, its commands, its start and its limit.

use bellwether_core::local::memory::ApplyProgress;
use bellwether_core::records::report::RunningStep;
use bellwether_core::words::time::{Span, Timestamp};

use super::task::EntityTask;
use crate::apply::hidden::hide;
use crate::config::recipe::{Recipe, RecipeKind, Runner};

impl EntityTask {
    /// Describes the step that begins. A dynamic part that follows its static part at once keeps the description, which
    /// names both: a report of its own would say nothing else that is new.
    pub(super) fn describe(&mut self, recipe: &Recipe, aim: ApplyProgress) {
        if aim == ApplyProgress::Dynamic && self.running_step.is_some() {
            return;
        }
        let (part, command) = step(recipe, aim);
        let now = self.now();
        self.running_step = (!command.is_empty()).then(|| running_step(part, command, (now, recipe.timeout)));
    }
}

/// A step as it is reported. Its command line may have secrets in it, which are hidden before it is shortened.
pub(super) fn running_step(part: &str, command: String, (since, limit): (Timestamp, Span)) -> RunningStep {
    RunningStep::new(part, &hide(command), since, limit)
}

/// The name of the part that leads to `aim`, and its commands.
fn step(recipe: &Recipe, aim: ApplyProgress) -> (&'static str, String) {
    let (statics, dynamics) = (statics(recipe), lines(&recipe.dynamics));
    match aim {
        ApplyProgress::Begun | ApplyProgress::Static => match (statics.is_empty(), dynamics.is_empty()) {
            (false, true) => ("static", statics.join("; ")),
            (true, _) => ("dynamic", dynamics.join("; ")),
            (false, false) => ("static, then dynamic", [statics, dynamics].concat().join("; ")),
        },
        ApplyProgress::Dynamic => ("dynamic", dynamics.join("; ")),
        ApplyProgress::Validated => {
            let checks = recipe.checks.keys().map(|name| format!("check {name}"));
            ("validate", lines(&recipe.validation).into_iter().chain(checks).collect::<Vec<_>>().join("; "))
        }
    }
}

/// The commands of the static part, and the files that it writes.
fn statics(recipe: &Recipe) -> Vec<String> {
    let files = match &recipe.kind {
        RecipeKind::Files(files) => files.as_slice(),
        RecipeKind::Versions | RecipeKind::Action(..) => &[],
    };
    let files = files.iter().map(|file| format!("write {}", file.path.display()));
    lines(&recipe.statics).into_iter().chain(files).collect()
}

fn lines(runners: &[Runner]) -> Vec<String> {
    let line = |runner: &Runner| match runner {
        Runner::Exec(command) | Runner::Puppet(command) => command.argv.join(" "),
        Runner::Systemd(unit) => format!("systemctl {} {}", unit.action.as_str(), unit.name),
        Runner::Directory(directory) => directory.path.display().to_string(),
    };
    runners.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::report::MAX_STEP_COMMAND;
    use serde_json::json;

    use super::*;
    use crate::apply::hidden;

    #[test]
    fn a_secret_in_the_command_line_of_a_step_is_not_reported() {
        hidden::remember([json!("described-hunter2")].iter());
        let limits = (Timestamp::from_millis(1), Span::from_secs(2));
        let step = |command: String| running_step("static", command, limits).command;
        assert_eq!(step("sh -c echo pw=described-hunter2".to_owned()), "sh -c echo pw=***");
        let cut = step(format!("{} described-hunter2", "x".repeat(MAX_STEP_COMMAND - 10)));
        assert!(cut.ends_with("x ***"), "{cut}");
    }
}
