//! Files with the same reload: written and reloaded together, and retried after a failure.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bellwether_core::local::delay;
use bellwether_core::records::status::StatusState;
use bellwether_core::words::time::Span;
use bellwether_rt::wait::sleep_or_never;
use tokio::time::Instant;

use super::context::CatalogueContext;
use super::shared::FileContext;
use super::state::{FileState, FileStates};
use super::write;
use crate::config::files::CatalogueFile;
use crate::config::recipe::Command;

/// Files that are written and reloaded together.
pub(super) struct FileGroup {
    pub(super) files: Vec<CatalogueFile>,
    pub(super) context: FileContext,
    /// Whether the control plane answered in this agent's life. Before, the stored catalogue may be older than the files.
    connected: bool,
    /// Failures in a row, by file.
    failed: BTreeMap<PathBuf, u32>,
    reload_failed: u32,
    /// A failed reload is not retried before this.
    reload_at: Option<Instant>,
}

impl FileGroup {
    pub(super) fn new(files: Vec<CatalogueFile>, context: FileContext) -> Self {
        Self { files, context, connected: false, failed: BTreeMap::new(), reload_failed: 0, reload_at: None }
    }

    pub(super) async fn run(mut self) {
        let token = self.context.tasks.token();
        let gather = self.files.iter().map(|file| file.debounce).max().unwrap_or(Span::ZERO).to_duration();
        loop {
            // A dropped check or reload is killed; by the journal the next agent reloads what was not.
            let again = tokio::select! {
                () = token.cancelled() => return,
                again = self.pass() => again,
            };
            let wait = again.map(|at| at.saturating_duration_since(Instant::now()));
            // All arms only wait; the values are read above.
            tokio::select! {
                () = token.cancelled() => return,
                open = self.changed() => if !open { return },
                () = sleep_or_never(wait) => continue,
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(gather) => {}
            }
        }
    }

    /// Waits until something that the files are rendered from changes. Cancel safe.
    async fn changed(&mut self) -> bool {
        let FileContext { snapshot, contact, addresses, .. } = &mut self.context;
        if self.connected {
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

    /// Writes and reloads what needs it. Returns when to retry, if something failed.
    async fn pass(&mut self) -> Option<Instant> {
        let snapshot = self.context.snapshot.borrow_and_update().clone();
        self.connected |= self.context.contact.borrow_and_update().connected_since.is_some();
        let context = Arc::new(CatalogueContext {
            node: self.context.node.clone(),
            namespace: self.context.namespace.clone(),
            addresses: self.context.addresses.now(),
            catalogue: snapshot.catalogue.clone(),
            known: snapshot.index > 0,
            connected: self.connected,
        });
        let mut states = FileStates::new();
        for file in self.files.clone() {
            let state = write::write(&self.context, &file, &context).await;
            states.insert(file.path, state);
        }
        let retry = self.count(&mut states);
        let reload = self.reload(&mut states).await;
        self.show(states);
        retry.into_iter().chain(reload).min()
    }

    /// Counts failures in a row, and returns when to retry.
    fn count(&mut self, states: &mut FileStates) -> Option<Instant> {
        let mut most = 0;
        for (path, state) in states {
            if state.state == StatusState::Failed {
                let failed = self.failed.entry(path.clone()).or_default();
                *failed = failed.saturating_add(1);
                state.failed = *failed;
                most = most.max(*failed);
            } else {
                self.failed.remove(path);
            }
        }
        (most > 0).then(|| Instant::now() + delay::after(most, self.context.seed).to_duration())
    }

    /// Reloads the files that were replaced and not reloaded yet. Returns when to retry, if that failed.
    async fn reload(&mut self, states: &mut FileStates) -> Option<Instant> {
        let unread = self.unread().await;
        if unread.is_empty() {
            (self.reload_failed, self.reload_at) = (0, None);
            return None;
        }
        if let Some(at) = self.reload_at.filter(|at| *at > Instant::now()) {
            self.keep_complaint(&unread, states);
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
                tracing::warn!(reason, attempt = self.reload_failed, "cannot reload new files");
                let reason =
                    format!("reload: {reason}; the file was replaced, and its reader may not have read it");
                for file in &unread {
                    complain(states, file, &reason, self.reload_failed);
                }
                return Some(at);
            }
        }
        (self.reload_failed, self.reload_at) = (0, None);
        if let Err(reason) = write::settle(&self.context, unread.clone()).await {
            for file in &unread {
                complain(states, file, &reason, 1);
            }
            return Some(Instant::now() + delay::LONGEST.to_duration());
        }
        None
    }

    /// The files that were replaced and not reloaded yet.
    async fn unread(&self) -> Vec<CatalogueFile> {
        let mut unread = Vec::new();
        for file in &self.files {
            if file.reload.is_some() && write::is_unread(&self.context, &file.path).await {
                unread.push(file.clone());
            }
        }
        unread
    }

    /// Before a retry is due, the last failure is still the reason.
    fn keep_complaint(&self, unread: &[CatalogueFile], states: &mut FileStates) {
        let board = self.context.board.borrow();
        for file in unread {
            if let Some(shown) =
                board.files.get(&file.path).filter(|shown| shown.state == StatusState::Failed)
            {
                complain(states, file, &shown.reason, self.reload_failed);
            }
        }
    }

    fn show(&self, states: FileStates) {
        self.context.board.send_if_modified(|board| {
            let mut changed = false;
            for (path, mut state) in states {
                let before = board.files.get(&path);
                state.changed_ms = state.changed_ms.or(before.and_then(|before| before.changed_ms));
                if before != Some(&state) {
                    tell(&path, &state);
                    board.files.insert(path, state);
                    changed = true;
                }
            }
            changed
        });
    }
}

/// Marks a written file as failed. A failure of the file itself takes precedence.
fn complain(states: &mut FileStates, file: &CatalogueFile, reason: &str, failed: u32) {
    if let Some(state) = states.get_mut(&file.path).filter(|state| state.state == StatusState::Success) {
        (state.state, state.reason, state.failed) = (StatusState::Failed, reason.to_owned(), failed);
    }
}

fn tell(path: &std::path::Path, state: &FileState) {
    let (path, reason) = (path.display(), &state.reason);
    match state.state {
        StatusState::Failed if state.failed > 1 => {}
        StatusState::Failed => tracing::warn!(%path, reason, "a catalogue file failed"),
        StatusState::Pending | StatusState::Running => {
            tracing::info!(%path, reason, "a catalogue file is pending")
        }
        StatusState::Success => tracing::info!(%path, "a catalogue file is up to date"),
    }
}
