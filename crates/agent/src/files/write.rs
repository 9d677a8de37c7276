//! Writing one file: rendered, checked, moved into place; on a failure it stays as it is. Disk work is off the runtime.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellwether_core::records::status::StatusState;
use bellwether_core::words::digest::Digest;

use super::context::CatalogueContext;
use super::format;
use super::shared::FileContext;
use super::state::FileState;
use crate::apply::files::{self, FileAttributes, FileJournal, owner};
use crate::apply::template;
use crate::config::files::{CatalogueFile, FileForm};
use crate::disk::off_runtime;
use crate::renderer::draw;
use bellwether_api::template::MAX_TEXT_BYTES;

/// The reason given for an undefined variable of a template.
const UNDEFINED: &str =
    "no such service, field or fact; list a service in `services` to have it before it is registered";

/// Writes a file if its services are there and it is not up to date.
pub(super) async fn write(
    shared: &FileContext,
    file: &CatalogueFile,
    context: &Arc<CatalogueContext>,
) -> FileState {
    let pending = |reason: String| FileState { reason, ..FileState::first(file) };
    let success = FileState { state: StatusState::Success, reason: String::new(), ..FileState::first(file) };
    if !context.connected && is_there(shared, &file.path).await {
        return success;
    }
    if !context.known {
        return pending("waiting for the catalogue from the control plane".to_owned());
    }
    if let Some(unmet) = file.selection.unmet(&context.catalogue) {
        return pending(format!("waiting for {unmet}"));
    }
    match replace(shared, file, context).await {
        Ok(false) => success,
        Ok(true) => FileState { changed_ms: Some(shared.clock.now().as_millis()), ..success },
        Err(reason) => FileState { state: StatusState::Failed, reason, ..success },
    }
}

/// Replaces the file if it is not up to date; returns whether it was replaced.
async fn replace(
    shared: &FileContext,
    file: &CatalogueFile,
    context: &Arc<CatalogueContext>,
) -> Result<bool, String> {
    let (of, context) = (file.clone(), context.clone());
    let staged = off_runtime(&shared.tasks, move || {
        let text = text(&of, &context)?;
        files::stage(&of.path, FileAttributes { mode: of.mode, owner: owner(of.owner.as_ref())? }, &text)
    });
    let Some(staged) = staged.await? else { return Ok(false) };
    if let Some(check) = &file.check
        && let Err(reason) = shared.command(&check.about(&staged.beside), file.timeout).await
    {
        off_runtime(&shared.tasks, move || {
            files::unstage(&[staged]);
            Ok(())
        })
        .await?;
        return Err(format!("check: {reason}"));
    }
    let (at, is_read) = (journal(shared, &file.path), file.reload.is_none());
    off_runtime(&shared.tasks, move || {
        let mut journal = FileJournal::read(&at)?;
        files::place(&mut journal, &[staged])?;
        if is_read { files::settle(&mut journal) } else { Ok(()) }
    })
    .await?;
    Ok(true)
}

async fn is_there(shared: &FileContext, path: &Path) -> bool {
    let path = path.to_owned();
    off_runtime(&shared.tasks, move || Ok(path.symlink_metadata().is_ok())).await.unwrap_or_default()
}

/// The text of a file.
fn text(file: &CatalogueFile, context: &CatalogueContext) -> Result<String, String> {
    let text = match &file.form {
        FileForm::Known(format) => format::text(*format, &file.selection, &context.catalogue)?,
        FileForm::Template(from) => {
            let (name, source) = template::read(from)?;
            draw(&name, &source, context.context(&file.selection), UNDEFINED)?
        }
    };
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("the text is longer than {MAX_TEXT_BYTES} bytes; limit it with `services`"));
    }
    Ok(text)
}

/// Whether a file was replaced and not reloaded yet. If that cannot be determined, it counts as not reloaded.
pub(super) async fn is_unread(context: &FileContext, path: &Path) -> bool {
    let at = journal(context, path);
    off_runtime(&context.tasks, move || Ok(!FileJournal::read(&at)?.is_empty())).await.unwrap_or(true)
}

/// Records that files were reloaded.
pub(super) async fn settle(context: &FileContext, read: Vec<CatalogueFile>) -> Result<(), String> {
    let journals: Vec<PathBuf> = read.iter().map(|file| journal(context, &file.path)).collect();
    off_runtime(&context.tasks, move || {
        journals.iter().try_for_each(|at| files::settle(&mut FileJournal::read(at)?))
    })
    .await
}

/// The path of a file's journal, named by a digest of the file's path, which may be longer than a file name.
fn journal(context: &FileContext, path: &Path) -> PathBuf {
    let mut digest = Digest::default();
    digest.add(path.as_os_str().as_encoded_bytes());
    context.journals.join(format!("{:016x}.json", digest.finish()))
}
