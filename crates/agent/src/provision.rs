//! Whether this node is set up: for each entity, whether the program of its first step can be run. Later steps are not
//! looked at, because earlier ones may install what they need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_core::local::provision::standing;
use bellwether_core::words::name::EntityName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::apply;
use crate::config::recipe::{Command, Recipe, RecipeKind, Runner};
use crate::report_board::ReportBoard;

/// Interval while something is missing: whoever installs it is waiting.
const LOOK_FOR: Duration = Duration::from_secs(2);

/// Interval while nothing is missing: programs are rarely removed.
const LOOK_AFTER: Duration = Duration::from_secs(60);

/// What the first step of an entity needs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProvisionStart {
    /// A program, the `PATH` in which it is looked up, and its working directory.
    Program { name: String, path: String, workdir: PathBuf },
    /// A directory of programs.
    Directory(PathBuf),
}

/// Checks once, puts the result on the board, and repeats it on `tasks`.
pub(crate) fn start(
    entities: &BTreeMap<EntityName, Recipe>,
    board: watch::Sender<ReportBoard>,
    clock: Clock,
    tasks: &Tasks,
) {
    let firsts: Vec<(EntityName, ProvisionStart)> =
        entities.iter().filter_map(|(name, recipe)| Some((name.clone(), first(recipe)?))).collect();
    let mut since = None;
    // Before the first report: a node that is set up is not pending whenever its agent starts.
    look(&firsts, &mut since, &board, clock.now());
    let level = tasks.clone();
    tasks.spawn("provision", async move {
        let token = level.token();
        loop {
            let pause = if since.is_some() { LOOK_FOR } else { LOOK_AFTER };
            // Both arms only wait.
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            look(&firsts, &mut since, &board, clock.now());
        }
    });
}

/// Checks once; `since` is when something was first missing.
fn look(
    firsts: &[(EntityName, ProvisionStart)],
    since: &mut Option<Timestamp>,
    board: &watch::Sender<ReportBoard>,
    now: Timestamp,
) {
    let missing = firsts.iter().find_map(|(entity, first)| Some(format!("{entity}: {}", first.missing()?)));
    *since = missing.as_ref().map(|_| since.unwrap_or(now));
    let found = Some(standing(missing, since.map_or_else(Default::default, |since| now.since(since))));
    board.send_if_modified(|board| {
        let turned = board.provision != found;
        board.provision = found;
        turned
    });
}

/// What the first step of an entity needs; `None` if that depends on the version.
fn first(recipe: &Recipe) -> Option<ProvisionStart> {
    let parts = recipe.statics.iter().chain(&recipe.dynamics);
    let process = recipe.process.iter().map(|process| &process.command);
    match (&recipe.kind, parts.map(begins).next()) {
        (RecipeKind::Action(_, action), _) => Some(program(&action.command)),
        (RecipeKind::Versions, Some(first)) => Some(first),
        // The files are written first, and may be what the rest needs.
        (RecipeKind::Files(_), _) if recipe.statics.is_empty() => None,
        (RecipeKind::Files(_), first) => first,
        (RecipeKind::Versions, None) => {
            let validation = recipe.validation.iter().map(begins);
            let first = process.map(program).chain(validation).next()?;
            let by_version =
                matches!(&first, ProvisionStart::Program { name, .. } if name.contains("{version}"));
            (!by_version).then_some(first)
        }
    }
}

fn begins(runner: &Runner) -> ProvisionStart {
    match runner {
        Runner::Exec(command) | Runner::Puppet(command) => program(command),
        Runner::Systemd(unit) => {
            let path = unit.env.get("PATH").map_or(apply::PATH, String::as_str).to_owned();
            ProvisionStart::Program { name: "systemctl".to_owned(), path, workdir: PathBuf::from("/") }
        }
        Runner::Directory(directory) => ProvisionStart::Directory(directory.path.clone()),
    }
}

fn program(command: &Command) -> ProvisionStart {
    ProvisionStart::Program {
        name: command.argv.first().cloned().unwrap_or_default(),
        path: command.env.get("PATH").map_or(apply::PATH, String::as_str).to_owned(),
        workdir: command.workdir.clone(),
    }
}

impl ProvisionStart {
    /// What is missing, if anything.
    fn missing(&self) -> Option<String> {
        let (name, path, workdir) = match self {
            Self::Directory(path) if path.is_dir() => return None,
            Self::Directory(path) => return Some(format!("there is no directory {}", path.display())),
            Self::Program { name, path, workdir } => (name, path, workdir),
        };
        if !workdir.is_dir() {
            return Some(format!("there is no directory {} to run {name} in", workdir.display()));
        }
        let found = if name.contains('/') {
            can_run(Path::new(name))
        } else {
            std::env::split_paths(path).any(|dir| can_run(&dir.join(name)))
        };
        let place = if name.contains('/') { String::new() } else { format!(" in PATH {path}") };
        (!found)
            .then(|| format!("there is no program {name}{place}; install it, or correct the entity's recipe"))
    }
}

fn can_run(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// What is missing for the first step of this configuration's entity.
    fn lacks(entity: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        let head = "[agent]\nname = \"a\"\nserver = \"https://a:1\"\ndata_dir = \"/d\"\n[entity.web]\n";
        std::fs::write(&path, format!("{head}{entity}\n")).unwrap();
        let config = Config::load(&path).unwrap();
        config.entities.values().find_map(first)?.missing()
    }

    #[test]
    fn only_the_first_step_of_an_entity_is_looked_up() {
        assert_eq!(lacks("static = [[\"true\"], [\"/nowhere/fetched-by-the-first\"]]"), None);
        assert_eq!(lacks("dynamic = [\"/bin/sh\"]\nvalidate = \"/nowhere\""), None);
        assert_eq!(lacks("process = { argv = [\"/srv/{version}/web\"] }"), None);
        for (entity, reason) in [
            ("static = [\"/nowhere/fetch\"]", "there is no program /nowhere/fetch;"),
            ("static = [\"/etc/passwd\"]", "there is no program /etc/passwd;"),
            ("static = [\"true\"]\nworkdir = \"/nowhere\"", "there is no directory /nowhere to run true in"),
            (
                "dynamic = { puppet = \"/etc/site.pp\", env = { PATH = \"/nowhere\" } }",
                "puppet in PATH /nowhere",
            ),
            (
                "static = { systemd = \"x.service\", action = \"start\", env = { PATH = \"/n\" } }",
                "systemctl in PATH /n",
            ),
            ("validate = \"/nowhere\"", "there is no directory /nowhere"),
            ("process = { argv = [\"/nowhere/web\"] }", "there is no program /nowhere/web"),
        ] {
            let message = lacks(entity).unwrap();
            assert!(message.contains(reason), "{entity}: {message}");
        }
    }
}
