//! The files of an entity of a profile: rendered and checked all together, then put in place, then made to be read. What
//! a step leaves halfway is finished by the next agent.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use bellwether_core::local::memory::Outcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::counter::EditionNumber;
use bellwether_core::words::name::ProfileName;
use bellwether_core::words::version::Version;
use tokio::time::Instant;

use super::Entity;
use crate::apply::Facts;
use crate::apply::files::{self, Journal, Phase, Staged};
use crate::apply::part::{Job, run_all};
use crate::apply::render::{Scene, render};
use crate::apply::template;
use crate::config::recipe::{Managed, Recipe, Runner};
use crate::link::source::Missing;

/// Why files are not in place; what was there is there still.
enum Stop {
    Failed(String),
    Ended(Outcome),
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl Entity {
    /// Renders every file of a version, checks them, and puts them in place: all of them, or none.
    pub(super) async fn install(
        &self,
        recipe: &Recipe,
        managed: &[Managed],
        (version, facts): (&Version, &Facts),
    ) -> Outcome {
        match self.put_in_place(recipe, managed, (version, facts)).await {
            Ok(()) => Outcome::Done,
            Err(Stop::Ended(outcome)) => outcome,
            Err(Stop::Failed(reason)) => failed(format!("static: {reason}")),
        }
    }

    async fn put_in_place(
        &self,
        recipe: &Recipe,
        managed: &[Managed],
        (version, facts): (&Version, &Facts),
    ) -> Result<(), Stop> {
        let scene = self.scene(version).await?;
        let (all, at) = (managed.to_vec(), self.journal());
        let staged = self.off(move || stage_all(&all, &scene)).await?;
        let ends = Instant::now() + recipe.timeout.to_duration();
        let checks = staged.iter().filter_map(|each| {
            let file = managed.iter().find(|file| file.path == each.path)?;
            Some((file, file.check.as_ref()?.about(&each.beside)))
        });
        for (file, command) in checks.collect::<Vec<_>>() {
            let what = format!("check of {}", file.path.display());
            let mut log = self.log();
            let left = ends.saturating_duration_since(Instant::now());
            let mut job = Job::new(facts, left, &mut log, &self.ground.tasks);
            match run_all(&what, &[Runner::Exec(command)], &mut job).await {
                Outcome::Done => {}
                other @ (Outcome::NotYet(_) | Outcome::Failed(_)) => {
                    self.off(move || {
                        files::unstage(&staged);
                        Ok(())
                    })
                    .await?;
                    return Err(Stop::Ended(other));
                }
            }
        }
        self.off(move || files::place(&mut Journal::read(&at)?, &staged)).await?;
        Ok(())
    }

    async fn run_reloads(&self, runners: &[Runner], facts: &Facts, deadline: Duration) -> Outcome {
        let mut log = self.log();
        run_all("reload", runners, &mut Job::new(facts, deadline, &mut log, &self.ground.tasks)).await
    }

    /// Runs the reload of every file that was put in place and is not known to be read. If one does not succeed, all go
    /// back to what was read last.
    pub(super) async fn reload(&self, recipe: &Recipe, managed: &[Managed], facts: &Facts) -> Outcome {
        let at = self.journal();
        let journal = match self.off(move || Journal::read(&at)).await {
            Ok(journal) => journal,
            Err(reason) => return failed(format!("reload: {reason}")),
        };
        if journal.is_empty() {
            return Outcome::Done;
        }
        let commands = reloads(managed, &journal);
        let deadline = recipe.timeout.to_duration();
        let outcome = match journal.phase() {
            Phase::Placed => self.run_reloads(&commands, facts, deadline).await,
            Phase::Returning => failed("reload: it failed before the agent was stopped".to_owned()),
        };
        let mut evidence = match outcome {
            Outcome::Done => {
                let settled = self.off(move || with(journal, files::settle)).await;
                return settled.map_or_else(|reason| failed(format!("reload: {reason}")), |()| Outcome::Done);
            }
            Outcome::NotYet(_) => return outcome,
            Outcome::Failed(evidence) => evidence,
        };
        let after = match self.off(move || with(journal, files::put_back)).await {
            Err(reason) => format!("; and {reason}"),
            Ok(()) => match self.run_reloads(&commands, facts, deadline).await {
                Outcome::Done => self.settle_returned().await,
                // Nobody knows what is read now: the journal stays, so that the next apply has it read, whatever it is.
                Outcome::NotYet(worse) | Outcome::Failed(worse) => {
                    format!("; the files before were put back, and then {}", worse.summary)
                }
            },
        };
        evidence.summary.push_str(&after);
        Outcome::Failed(evidence)
    }

    /// Forgets that files were put back, once they are read; says how that ended.
    async fn settle_returned(&self) -> String {
        let at = self.journal();
        match self.off(move || files::settle(&mut Journal::read(&at)?)).await {
            Ok(()) => "; the files before were put back and are read again".to_owned(),
            Err(reason) => format!("; the files before were put back and are read again, and {reason}"),
        }
    }

    /// What templates of a version can speak of.
    async fn scene(&self, version: &Version) -> Result<Scene, Stop> {
        let none = || format!("{version} is no revision of a profile");
        let (profile, number) = version.as_numbered().ok_or_else(none)?;
        let profile: ProfileName = profile.parse().map_err(|_| none())?;
        let needed = self.needed(&profile);
        let params = self.ground.shelf.get(&profile, EditionNumber::new(number), needed).await;
        let params = params.map_err(|missing| match missing {
            Missing::NotYet(summary) => {
                Stop::Ended(Outcome::NotYet(Evidence { summary, ..Evidence::default() }))
            }
            Missing::Never(reason) => Stop::Failed(reason),
        })?;
        Ok(Scene {
            params,
            node: self.ground.node.to_string(),
            namespace: self.ground.namespace.to_string(),
            entity: self.name.to_string(),
            version: version.to_string(),
            revision: number,
        })
    }

    /// The revisions of a profile that this node's entities run, ran, or are to run.
    fn needed(&self, profile: &ProfileName) -> BTreeSet<u64> {
        let board = self.ground.board.borrow();
        let memory = &self.entry.memory;
        let wanted = memory.wanted.as_ref().map(|wanted| &wanted.version);
        let own = [wanted, memory.running.as_ref(), memory.touched.as_ref()];
        let others = board.entities.values();
        let others = others.flat_map(|account| [account.running.as_ref(), account.wanted.as_ref()]);
        let named = own.into_iter().chain(others).flatten().filter_map(Version::as_numbered);
        named.filter(|(name, _)| *name == profile.as_str()).map(|(_, number)| number).collect()
    }

    /// Where the journal of this entity's files is.
    fn journal(&self) -> PathBuf {
        self.ground.ledger.files().join(format!("{}.json", self.name))
    }

    async fn off<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let done = self.ground.tasks.spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(format!("could not go on: {error}")))
    }
}

fn failed(summary: String) -> Outcome {
    Outcome::Failed(Evidence { summary, ..Evidence::default() })
}

fn with(mut journal: Journal, work: impl FnOnce(&mut Journal) -> Result<(), String>) -> Result<(), String> {
    work(&mut journal)
}

/// Renders all, and only then writes any.
fn stage_all(managed: &[Managed], scene: &Scene) -> Result<Vec<Staged>, String> {
    let mut texts = Vec::new();
    for file in managed {
        let text = rendered(file, scene).map_err(|reason| format!("{}: {reason}", file.path.display()))?;
        texts.push((file, text));
    }
    let mut staged = Vec::new();
    for (file, text) in texts {
        match files::stage((&file.path, file.mode), &text) {
            Ok(one) => staged.extend(one),
            Err(reason) => {
                files::unstage(&staged);
                return Err(reason);
            }
        }
    }
    Ok(staged)
}

fn rendered(file: &Managed, scene: &Scene) -> Result<String, String> {
    let (name, text) = template::read(&file.template)?;
    render(&name, &text, scene)
}

/// The reloads of the files in a journal, in the order of the recipe, each once.
fn reloads(managed: &[Managed], journal: &Journal) -> Vec<Runner> {
    let mut commands: Vec<Runner> = Vec::new();
    for file in managed.iter().filter(|file| journal.names(&file.path)) {
        let command = file.reload.as_ref().map(|command| Runner::Exec(command.about(&file.path)));
        commands.extend(command.filter(|command| !commands.contains(command)));
    }
    commands
}
