//! The files of an entity of a profile: rendered and checked all together, then put in place, then made to be read. What
//! a step leaves halfway is finished by the next agent.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::name::ProfileName;
use bellwether_core::words::version::Version;
use tokio::time::Instant;

use super::task::EntityTask;
use crate::apply::CommandFacts;
use crate::apply::files::{self, FileJournal, JournalPhase, StagedFile};
use crate::apply::part::{PartContext, run_all};
use crate::apply::render::{RenderContext, render};
use crate::apply::template;
use crate::config::recipe::{ManagedFile, Recipe, Runner};
use crate::link::source::MissingParams;

/// Why files are not in place; what was there is there still.
enum FilesStop {
    Failed(String),
    Ended(StepOutcome),
}

impl From<String> for FilesStop {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}

impl EntityTask {
    /// Renders every file of a version, checks them, and puts them in place: all of them, or none.
    pub(super) async fn install(
        &self,
        recipe: &Recipe,
        managed: &[ManagedFile],
        (version, facts): (&Version, &CommandFacts),
    ) -> StepOutcome {
        match self.put_in_place(recipe, managed, (version, facts)).await {
            Ok(()) => StepOutcome::Done,
            Err(FilesStop::Ended(outcome)) => outcome,
            Err(FilesStop::Failed(reason)) => failed(format!("static: {reason}")),
        }
    }

    async fn put_in_place(
        &self,
        recipe: &Recipe,
        managed: &[ManagedFile],
        (version, facts): (&Version, &CommandFacts),
    ) -> Result<(), FilesStop> {
        let context = self.context(version).await?;
        let (all, at) = (managed.to_vec(), self.journal());
        let staged = self.off(move || stage_all(&all, &context)).await?;
        let ends = Instant::now() + recipe.timeout.to_duration();
        let checks = staged.iter().filter_map(|each| {
            let file = managed.iter().find(|file| file.path == each.path)?;
            Some((file, file.check.as_ref()?.about(&each.beside)))
        });
        for (file, command) in checks.collect::<Vec<_>>() {
            let what = format!("check of {}", file.path.display());
            let mut log = self.log();
            let left = ends.saturating_duration_since(Instant::now());
            let mut job = PartContext::new(facts, left, &mut log, &self.context.tasks);
            match run_all(&what, &[Runner::Exec(command)], &mut job).await {
                StepOutcome::Done => {}
                other @ (StepOutcome::NotYet(_) | StepOutcome::Failed(_)) => {
                    self.off(move || {
                        files::unstage(&staged);
                        Ok(())
                    })
                    .await?;
                    return Err(FilesStop::Ended(other));
                }
            }
        }
        self.off(move || files::place(&mut FileJournal::read(&at)?, &staged)).await?;
        Ok(())
    }

    async fn run_reloads(&self, runners: &[Runner], facts: &CommandFacts, deadline: Duration) -> StepOutcome {
        let mut log = self.log();
        run_all("reload", runners, &mut PartContext::new(facts, deadline, &mut log, &self.context.tasks))
            .await
    }

    /// Runs the reload of every file that was put in place and is not known to be read. If one does not succeed, all go
    /// back to what was read last.
    pub(super) async fn reload(
        &self,
        recipe: &Recipe,
        managed: &[ManagedFile],
        facts: &CommandFacts,
    ) -> StepOutcome {
        let at = self.journal();
        let journal = match self.off(move || FileJournal::read(&at)).await {
            Ok(journal) => journal,
            Err(reason) => return failed(format!("reload: {reason}")),
        };
        if journal.is_empty() {
            return StepOutcome::Done;
        }
        let commands = reloads(managed, &journal);
        let deadline = recipe.timeout.to_duration();
        let outcome = match journal.phase() {
            JournalPhase::Placed => self.run_reloads(&commands, facts, deadline).await,
            JournalPhase::Returning => failed("reload: it failed before the agent was stopped".to_owned()),
        };
        let mut evidence = match outcome {
            StepOutcome::Done => {
                let settled = self.off(move || with(journal, files::settle)).await;
                return settled
                    .map_or_else(|reason| failed(format!("reload: {reason}")), |()| StepOutcome::Done);
            }
            StepOutcome::NotYet(_) => return outcome,
            StepOutcome::Failed(evidence) => evidence,
        };
        let after = match self.off(move || with(journal, files::put_back)).await {
            Err(reason) => format!("; and {reason}"),
            Ok(()) => match self.run_reloads(&commands, facts, deadline).await {
                StepOutcome::Done => self.settle_returned().await,
                // Nobody knows what is read now: the journal stays, so that the next apply has it read, whatever it is.
                StepOutcome::NotYet(worse) | StepOutcome::Failed(worse) => {
                    format!("; the files before were put back, and then {}", worse.summary)
                }
            },
        };
        evidence.summary.push_str(&after);
        StepOutcome::Failed(evidence)
    }

    /// Forgets that files were put back, once they are read; says how that ended.
    async fn settle_returned(&self) -> String {
        let at = self.journal();
        match self.off(move || files::settle(&mut FileJournal::read(&at)?)).await {
            Ok(()) => "; the files before were put back and are read again".to_owned(),
            Err(reason) => format!("; the files before were put back and are read again, and {reason}"),
        }
    }

    /// What templates of a version can speak of.
    async fn context(&self, version: &Version) -> Result<RenderContext, FilesStop> {
        let none = || format!("{version} is no revision of a profile");
        let (profile, number) = version.as_numbered().ok_or_else(none)?;
        let profile: ProfileName = profile.parse().map_err(|_| none())?;
        let needed = self.needed(&profile);
        let params = self.context.shelf.get(&profile, ProfileRevisionNumber::new(number), needed).await;
        let params = params.map_err(|missing| match missing {
            MissingParams::NotYet(summary) => {
                FilesStop::Ended(StepOutcome::NotYet(Evidence { summary, ..Evidence::default() }))
            }
            MissingParams::Never(reason) => FilesStop::Failed(reason),
        })?;
        Ok(RenderContext {
            params,
            node: self.context.node.to_string(),
            namespace: self.context.namespace.to_string(),
            entity: self.name.to_string(),
            version: version.to_string(),
            revision: number,
        })
    }

    /// The revisions of a profile that this node's entities run, ran, or are to run.
    fn needed(&self, profile: &ProfileName) -> BTreeSet<u64> {
        let board = self.context.board.borrow();
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
        self.context.ledger.files().join(format!("{}.json", self.name))
    }

    async fn off<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let done = self.context.tasks.spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(format!("could not go on: {error}")))
    }
}

fn failed(summary: String) -> StepOutcome {
    StepOutcome::Failed(Evidence { summary, ..Evidence::default() })
}

fn with(
    mut journal: FileJournal,
    work: impl FnOnce(&mut FileJournal) -> Result<(), String>,
) -> Result<(), String> {
    work(&mut journal)
}

/// Renders all, and only then writes any.
fn stage_all(managed: &[ManagedFile], context: &RenderContext) -> Result<Vec<StagedFile>, String> {
    let mut texts = Vec::new();
    for file in managed {
        let text = rendered(file, context).map_err(|reason| format!("{}: {reason}", file.path.display()))?;
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

fn rendered(file: &ManagedFile, context: &RenderContext) -> Result<String, String> {
    let (name, text) = template::read(&file.template)?;
    render(&name, &text, context)
}

/// The reloads of the files in a journal, in the order of the recipe, each once.
fn reloads(managed: &[ManagedFile], journal: &FileJournal) -> Vec<Runner> {
    let mut commands: Vec<Runner> = Vec::new();
    for file in managed.iter().filter(|file| journal.names(&file.path)) {
        let command = file.reload.as_ref().map(|command| Runner::Exec(command.about(&file.path)));
        commands.extend(command.filter(|command| !commands.contains(command)));
    }
    commands
}
