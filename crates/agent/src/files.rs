//! Files of the catalogue: written when what they are made of changes, read again by whoever reads them. One task for all
//! files with the same reload, so that what changes together is one reload.
//!
//! A file that cannot be written now stays as it is, and the reason is said. Nothing is ever removed.

mod context;
pub mod format;
mod write;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::local::delay;
use bellwether_core::records::status::StatusState;
use bellwether_core::words::name::{EntityName, Namespace, NodeName};
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::apply::{CommandFacts, exec, files};
use crate::catalogue::CatalogueSnapshot;
use crate::config::files::CatalogueFile;
use crate::config::recipe::Command;
use crate::link::contact::ServerContact;
use crate::report_board::ReportBoard;
use crate::service::LocalAddresses;
use context::CatalogueContext;

/// How one file stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) state: StatusState,
    /// One line; empty when all is well.
    pub(crate) reason: String,
    /// How many times in a row it went wrong.
    pub(crate) failed: u32,
    /// When it was last replaced in this agent's life, in milliseconds of its clock.
    pub(crate) changed_ms: Option<u64>,
    /// Entities whose dynamic part waits for it.
    pub(crate) before: std::collections::BTreeSet<EntityName>,
}

/// Every file by its path.
pub(crate) type FileStates = BTreeMap<PathBuf, FileState>;

/// What all files share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct FileContext {
    pub(crate) node: NodeName,
    pub(crate) namespace: Namespace,
    /// Where the journals are.
    pub(crate) journals: PathBuf,
    pub(crate) board: watch::Sender<ReportBoard>,
    pub(crate) snapshot: watch::Receiver<Arc<CatalogueSnapshot>>,
    pub(crate) contact: watch::Receiver<ServerContact>,
    pub(crate) addresses: LocalAddresses,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) tasks: Tasks,
}

/// Says of every file that it is not written yet, and starts writing.
pub(crate) fn start(files: Vec<CatalogueFile>, context: &FileContext) {
    context.board.send_modify(|board| {
        for file in &files {
            board.files.insert(file.path.clone(), FileState::first(file));
        }
    });
    for files in together(files) {
        let group = FileGroup {
            files,
            context: context.clone(),
            heard: false,
            failed: BTreeMap::new(),
            reload_failed: 0,
            reload_at: None,
        };
        context.tasks.spawn("files", group.run());
    }
}

/// Replaces a file with `text` in one move, never through a link; says whether it changed.
///
/// # Errors
/// One line with the file and the reason; the file is as it was then.
pub fn put(path: &std::path::Path, text: &str) -> Result<bool, String> {
    files::replace(path, text)
}

impl FileState {
    fn first(file: &CatalogueFile) -> Self {
        let (state, reason) = (StatusState::Pending, "not written yet".to_owned());
        Self { state, reason, failed: 0, changed_ms: None, before: file.before.clone() }
    }
}

/// Files with the same reload together; one without a reload alone.
fn together(files: Vec<CatalogueFile>) -> Vec<Vec<CatalogueFile>> {
    let mut groups: Vec<Vec<CatalogueFile>> = Vec::new();
    for file in files {
        let same = |group: &&mut Vec<CatalogueFile>| {
            file.reload.is_some() && group.first().is_some_and(|first| first.reload == file.reload)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(file),
            None => groups.push(vec![file]),
        }
    }
    groups
}

/// Files that are written and read together.
struct FileGroup {
    files: Vec<CatalogueFile>,
    context: FileContext,
    /// Whether the control plane answered in this agent's life. Before, the kept catalogue may be older than the files.
    heard: bool,
    /// How many times in a row each went wrong.
    failed: BTreeMap<PathBuf, u32>,
    reload_failed: u32,
    /// A reload that failed is not tried before.
    reload_at: Option<Instant>,
}

impl FileGroup {
    async fn run(mut self) {
        let token = self.context.tasks.token();
        let gather = self.files.iter().map(|file| file.debounce).max().unwrap_or(Span::ZERO).to_duration();
        loop {
            // A check or reload that is dropped is killed; the journal has the next agent read what was not.
            let again = tokio::select! {
                () = token.cancelled() => return,
                again = self.pass() => again,
            };
            // All only wait; the values are looked at above.
            tokio::select! {
                () = token.cancelled() => return,
                open = self.changed() => if !open { return },
                () = at(again) => continue,
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(gather) => {}
            }
        }
    }

    /// Waits until something changed that files are made of. Cancel safe.
    async fn changed(&mut self) -> bool {
        let FileContext { snapshot, contact, addresses, .. } = &mut self.context;
        if self.heard {
            tokio::select! {
                changed = snapshot.changed() => changed.is_ok(),
                () = addresses.changed() => true,
            }
        } else {
            tokio::select! {
                changed = snapshot.changed() => changed.is_ok(),
                changed = contact.changed() => changed.is_ok(),
                () = addresses.changed() => true,
            }
        }
    }

    /// Writes what is to be written and has it read. Says when to try again, if something went wrong.
    async fn pass(&mut self) -> Option<Instant> {
        let snapshot = self.context.snapshot.borrow_and_update().clone();
        self.heard |= self.context.contact.borrow_and_update().connected_since.is_some();
        let context = Arc::new(CatalogueContext {
            node: self.context.node.clone(),
            namespace: self.context.namespace.clone(),
            addresses: self.context.addresses.now(),
            catalogue: snapshot.catalogue.clone(),
        });
        let known = snapshot.index > 0;
        let mut standings = FileStates::new();
        for file in self.files.clone() {
            let standing = self.write(&file, known, &context).await;
            standings.insert(file.path, standing);
        }
        let retry = self.count(&mut standings);
        let reload = self.reload(&mut standings).await;
        self.show(standings);
        retry.into_iter().chain(reload).min()
    }

    /// Counts what went wrong in a row, and says when it is tried again.
    fn count(&mut self, standings: &mut FileStates) -> Option<Instant> {
        let mut most = 0;
        for (path, standing) in standings {
            if standing.state == StatusState::Failed {
                let failed = self.failed.entry(path.clone()).or_default();
                *failed = failed.saturating_add(1);
                standing.failed = *failed;
                most = most.max(*failed);
            } else {
                self.failed.remove(path);
            }
        }
        (most > 0).then(|| Instant::now() + delay::after(most, self.context.seed).to_duration())
    }

    /// Has the files read that were put in place and are not known to be read. Says when to try again, if it failed.
    async fn reload(&mut self, standings: &mut FileStates) -> Option<Instant> {
        let unread = self.unread().await;
        if unread.is_empty() {
            (self.reload_failed, self.reload_at) = (0, None);
            return None;
        }
        if let Some(at) = self.reload_at.filter(|at| *at > Instant::now()) {
            self.keep_complaint(&unread, standings);
            return Some(at);
        }
        let timeout = unread.iter().map(|file| file.timeout).max().unwrap_or(Span::ZERO);
        let mut commands: Vec<Command> = Vec::new();
        for file in &unread {
            let command = file.reload.as_ref().map(|reload| reload.about(&file.path));
            commands.extend(command.filter(|command| !commands.contains(command)));
        }
        for command in commands {
            if let Err(reason) = self.command(&command, timeout).await {
                self.reload_failed = self.reload_failed.saturating_add(1);
                let at = Instant::now() + delay::after(self.reload_failed, self.context.seed).to_duration();
                self.reload_at = Some(at);
                tracing::warn!(reason, attempt = self.reload_failed, "could not have new files read");
                let reason = format!("reload: {reason}; it is in place, and not known to be read");
                for file in &unread {
                    complain(standings, file, &reason, self.reload_failed);
                }
                return Some(at);
            }
        }
        (self.reload_failed, self.reload_at) = (0, None);
        if let Err(reason) = write::settle(&self.context, unread.clone()).await {
            for file in &unread {
                complain(standings, file, &reason, 1);
            }
            return Some(Instant::now() + delay::LONGEST.to_duration());
        }
        None
    }

    /// The files that were put in place and are not known to be read.
    async fn unread(&self) -> Vec<CatalogueFile> {
        let mut unread = Vec::new();
        for file in &self.files {
            if file.reload.is_some() && write::is_unread(&self.context, &file.path).await {
                unread.push(file.clone());
            }
        }
        unread
    }

    /// A reload that is not due yet is still what is wrong.
    fn keep_complaint(&self, unread: &[CatalogueFile], standings: &mut FileStates) {
        let board = self.context.board.borrow();
        for file in unread {
            if let Some(said) = board.files.get(&file.path).filter(|said| said.state == StatusState::Failed) {
                complain(standings, file, &said.reason, self.reload_failed);
            }
        }
    }

    /// Runs a command; what it said last is part of the reason why not.
    async fn command(&self, command: &Command, timeout: Span) -> Result<(), String> {
        let facts = CommandFacts { node: self.context.node.to_string(), ..CommandFacts::default() };
        let ended = exec::run(command, &facts, timeout.to_duration(), None).await;
        let said = ended.tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        match (ended.exit, said) {
            (exec::CommandExit::Success, _) => Ok(()),
            (exit, "") => Err(exit.to_string()),
            (exit, said) => Err(format!("{exit}: {said}")),
        }
    }

    fn show(&self, standings: FileStates) {
        self.context.board.send_if_modified(|board| {
            let mut changed = false;
            for (path, mut standing) in standings {
                let before = board.files.get(&path);
                standing.changed_ms = standing.changed_ms.or(before.and_then(|before| before.changed_ms));
                if before != Some(&standing) {
                    tell(&path, &standing);
                    board.files.insert(path, standing);
                    changed = true;
                }
            }
            changed
        });
    }
}

/// A file that was written and is not right all the same. What is wrong with the file itself comes first.
fn complain(standings: &mut FileStates, file: &CatalogueFile, reason: &str, failed: u32) {
    if let Some(standing) =
        standings.get_mut(&file.path).filter(|standing| standing.state == StatusState::Success)
    {
        (standing.state, standing.reason, standing.failed) = (StatusState::Failed, reason.to_owned(), failed);
    }
}

fn tell(path: &std::path::Path, standing: &FileState) {
    let (path, reason) = (path.display(), &standing.reason);
    match standing.state {
        StatusState::Failed if standing.failed > 1 => {}
        StatusState::Failed => tracing::warn!(%path, reason, "a file of the catalogue failed"),
        StatusState::Pending | StatusState::Running => {
            tracing::info!(%path, reason, "a file of the catalogue waits")
        }
        StatusState::Success => tracing::info!(%path, "a file of the catalogue is as it is to be"),
    }
}

/// Waits until a moment; for ever when there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
