//! Files with the same reload: written and reloaded together, and tried again when something failed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::local::delay;
use bellwether_core::records::status::StatusState;
use bellwether_core::words::time::Span;
use tokio::time::Instant;

use super::context::CatalogueContext;
use super::shared::FileContext;
use super::state::{FileState, FileStates};
use super::write;
use crate::config::files::CatalogueFile;
use crate::config::recipe::Command;

/// Files that are written and read together.
pub(super) struct FileGroup {
    pub(super) files: Vec<CatalogueFile>,
    pub(super) context: FileContext,
    /// Whether the control plane answered in this agent's life. Before, the kept catalogue may be older than the files.
    heard: bool,
    /// How many times in a row each went wrong.
    failed: BTreeMap<PathBuf, u32>,
    reload_failed: u32,
    /// A reload that failed is not tried before.
    reload_at: Option<Instant>,
}

impl FileGroup {
    pub(super) fn new(files: Vec<CatalogueFile>, context: FileContext) -> Self {
        Self { files, context, heard: false, failed: BTreeMap::new(), reload_failed: 0, reload_at: None }
    }

    pub(super) async fn run(mut self) {
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
            known: snapshot.index > 0,
            connected: self.heard,
        });
        let mut standings = FileStates::new();
        for file in self.files.clone() {
            let standing = write::write(&self.context, &file, &context).await;
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
            if let Err(reason) = self.context.command(&command, timeout).await {
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
