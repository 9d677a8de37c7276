//! The files of an entity of a profile: all rendered and checked, then moved into place, then reloaded. The next agent
//! completes an interrupted step.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use bellwether_api::v1::node_params::LiveParams;
use bellwether_api::v1::profile::Params;
use bellwether_api::v1::secret::SecretMark;
use bellwether_core::local::memory::StepOutcome;
use bellwether_core::records::evidence::Evidence;
use bellwether_core::words::counter::ProfileRevisionNumber;
use bellwether_core::words::name::ProfileName;
use bellwether_core::words::precedence::{ParamLayers, ParamLevel};
use bellwether_core::words::version::Version;

use serde_json::Value;

use super::task::EntityTask;
use crate::apply::CommandFacts;
use crate::apply::files::{self, FileAttributes, FileJournal, JournalPhase, StagedFile, owner};
use crate::apply::hidden::hide;
use crate::apply::part::{PartContext, run_all};
use crate::apply::render::{RenderContext, render};
use crate::apply::template;
use crate::config::recipe::{ManagedFile, Recipe, Runner};
use crate::disk;
use crate::link::source::MissingParams;
use crate::secret_cache::ParamsRevision;

/// Mode of a file with a secret in it, unless its configuration has another.
const SECRET_MODE: u32 = 0o600;

/// What the files of an entity are rendered from.
#[derive(Debug, Clone, Copy)]
pub(super) struct RenderInputs<'a> {
    pub(super) version: &'a Version,
    /// The params that reach this node without a rollout.
    pub(super) live: &'a LiveParams,
}

/// Why files were not replaced; the previous ones are still in place.
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
    /// Renders every file of a version, checks them, and moves them into place: all of them, or none.
    pub(super) async fn install(
        &self,
        recipe: &Recipe,
        managed: &[ManagedFile],
        inputs: RenderInputs<'_>,
        facts: &CommandFacts,
    ) -> StepOutcome {
        match self.put_in_place(recipe, managed, inputs, facts).await {
            Ok(()) => StepOutcome::Done,
            Err(FilesStop::Ended(outcome)) => outcome,
            Err(FilesStop::Failed(reason)) => failed(format!("static: {reason}")),
        }
    }

    async fn put_in_place(
        &self,
        recipe: &Recipe,
        managed: &[ManagedFile],
        inputs: RenderInputs<'_>,
        facts: &CommandFacts,
    ) -> Result<(), FilesStop> {
        let context = self.context(inputs).await?;
        let (all, at) = (managed.to_vec(), self.journal());
        let staged = disk::off_runtime(&self.context.tasks, move || stage_all(&all, &context)).await?;
        let mut left = recipe.timeout.to_duration();
        let checks = staged.iter().filter_map(|each| {
            let file = managed.iter().find(|file| file.path == each.path)?;
            Some((file, file.check.as_ref()?.about(&each.beside)))
        });
        for (file, command) in checks.collect::<Vec<_>>() {
            let what = format!("check of {}", file.path.display());
            let mut log = self.log();
            let mut job = PartContext::new(facts, left, &mut log, &self.context.tasks);
            match run_all(&what, &[Runner::Exec(command)], &mut job).await {
                StepOutcome::Done => left = job.left(),
                other @ (StepOutcome::NotYet(_) | StepOutcome::Failed(_)) => {
                    disk::off_runtime(&self.context.tasks, move || {
                        files::unstage(&staged);
                        Ok(())
                    })
                    .await?;
                    return Err(FilesStop::Ended(other));
                }
            }
        }
        disk::off_runtime(&self.context.tasks, move || files::place(&mut FileJournal::read(&at)?, &staged))
            .await?;
        Ok(())
    }

    async fn run_reloads(&self, runners: &[Runner], facts: &CommandFacts, deadline: Duration) -> StepOutcome {
        let mut log = self.log();
        run_all("reload", runners, &mut PartContext::new(facts, deadline, &mut log, &self.context.tasks))
            .await
    }

    /// Runs the reload of every file that was replaced and not reloaded yet. If one does not succeed, all files are restored
    /// to what was reloaded last.
    pub(super) async fn reload(
        &self,
        recipe: &Recipe,
        managed: &[ManagedFile],
        facts: &CommandFacts,
    ) -> StepOutcome {
        let at = self.journal();
        let journal = match disk::off_runtime(&self.context.tasks, move || FileJournal::read(&at)).await {
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
            JournalPhase::Returning => failed("reload: failed before the agent was stopped".to_owned()),
        };
        let mut evidence = match outcome {
            StepOutcome::Done => {
                let settled =
                    disk::off_runtime(&self.context.tasks, move || with(journal, files::settle)).await;
                return settled
                    .map_or_else(|reason| failed(format!("reload: {reason}")), |()| StepOutcome::Done);
            }
            StepOutcome::NotYet(_) => return outcome,
            StepOutcome::Failed(evidence) => evidence,
        };
        let after = match disk::off_runtime(&self.context.tasks, move || with(journal, files::put_back)).await
        {
            Err(reason) => format!("; and {reason}"),
            Ok(()) => match self.run_reloads(&commands, facts, deadline).await {
                StepOutcome::Done => self.settle_returned().await,
                // It is unknown which files were read: the journal stays, so that the next apply reloads them, whichever they are.
                StepOutcome::NotYet(worse) | StepOutcome::Failed(worse) => {
                    format!("; the previous files were restored, and then {}", worse.summary)
                }
            },
        };
        evidence.summary.push_str(&after);
        StepOutcome::Failed(evidence)
    }

    /// Clears the journal after restored files were reloaded; returns how that ended.
    async fn settle_returned(&self) -> String {
        let at = self.journal();
        match disk::off_runtime(&self.context.tasks, move || files::settle(&mut FileJournal::read(&at)?))
            .await
        {
            Ok(()) => "; the previous files were restored and reloaded".to_owned(),
            Err(reason) => format!("; the previous files were restored and reloaded, and {reason}"),
        }
    }

    /// The variables of a version's templates.
    async fn context(&self, inputs: RenderInputs<'_>) -> Result<RenderContext, FilesStop> {
        let RenderInputs { version, live } = inputs;
        let none = || format!("{version} is not a revision of a profile");
        let (profile, number) = version.as_numbered().ok_or_else(none)?;
        let profile: ProfileName = profile.parse().map_err(|_| none())?;
        let needed = self.needed(&profile);
        let params = self.context.params.get(&profile, ProfileRevisionNumber::new(number), needed).await;
        let params = params.map_err(|missing| match missing {
            MissingParams::NotYet(summary) => not_yet(summary),
            MissingParams::Never(reason) => FilesStop::Failed(reason),
        })?;
        let layers = live.layers(&profile, &params).map_err(|error| FilesStop::Failed(error.to_string()))?;
        let own = (profile.as_str(), number);
        let (params, masked) = self.revealed(live, own, &layers).await.map_err(not_yet)?;
        Ok(RenderContext {
            params,
            masked,
            node: self.context.node.to_string(),
            namespace: self.context.namespace.to_string(),
            entity: self.name.to_string(),
            version: version.to_string(),
            revision: number,
        })
    }

    /// The params that take effect, with the values of those that are secrets; and the same without these, if there are any.
    async fn revealed(
        &self,
        live: &LiveParams,
        (profile, number): (&str, u64),
        layers: &ParamLayers<Value>,
    ) -> Result<(Params, Option<Params>), String> {
        let resolved = layers.resolved();
        let plain = resolved.iter().map(|(key, (_, value))| ((*key).to_owned(), (*value).clone()));
        let plain: Params = plain.collect();
        let revision_of = |level: &ParamLevel| match level {
            ParamLevel::Node => (None, live.revision),
            ParamLevel::Profile(name) if name.as_str() == profile => (Some(name.to_string()), number),
            ParamLevel::Profile(name) => {
                let revision = live.live.get(name.as_str()).map_or(0, |read| read.revision);
                (Some(name.to_string()), revision)
            }
        };
        let marked = resolved.iter().filter(|(_, (_, value))| SecretMark::of(value).is_some());
        let marked: Vec<(&str, ParamsRevision)> =
            marked.map(|(key, (level, _))| (*key, revision_of(level))).collect();
        if marked.is_empty() {
            return Ok((plain, None));
        }
        let mut wanted: BTreeMap<ParamsRevision, BTreeSet<String>> = BTreeMap::new();
        for (key, set) in &marked {
            wanted.entry(set.clone()).or_default().insert((*key).to_owned());
        }
        let found = self.context.secrets.get(&wanted).await?;
        let mut params = plain.clone();
        for (key, set) in marked {
            let value = found.get(&set).and_then(|values| values.get(key));
            params.extend(value.map(|value| (key.to_owned(), value.clone())));
        }
        Ok((params, Some(plain)))
    }

    /// The revisions of a profile that this node's entities run, ran, or are assigned.
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

    /// The path of this entity's journal.
    fn journal(&self) -> PathBuf {
        self.context.ledger.files().join(format!("{}.json", self.name))
    }
}

fn not_yet(summary: String) -> FilesStop {
    FilesStop::Ended(StepOutcome::NotYet(Evidence { summary, ..Evidence::default() }))
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

/// Renders all files before it writes any.
fn stage_all(managed: &[ManagedFile], context: &RenderContext) -> Result<Vec<StagedFile>, String> {
    let mut texts = Vec::new();
    for file in managed {
        let text = rendered(file, context);
        let text = text.map_err(|reason| hide(format!("{}: {reason}", file.path.display())))?;
        let mode = file.mode.or_else(|| has_secret(file, context, &text).then_some(SECRET_MODE));
        texts.push((file, mode, text));
    }
    let mut staged = Vec::new();
    for (file, mode, text) in texts {
        let attributes = owner(file.owner.as_ref()).map(|owner| FileAttributes { mode, owner });
        match attributes.and_then(|attributes| files::stage(&file.path, attributes, &text)) {
            Ok(one) => staged.extend(one),
            Err(reason) => {
                files::unstage(&staged);
                return Err(reason);
            }
        }
    }
    Ok(staged)
}

/// Whether a text has a secret in it: it would be another one without.
fn has_secret(file: &ManagedFile, context: &RenderContext, text: &str) -> bool {
    let Some(masked) = &context.masked else { return false };
    let without = RenderContext { params: masked.clone(), ..context.clone() };
    rendered(file, &without).map_or(true, |other| other != text)
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
