//! One file: made, checked, put in place; or why not, and then it stays as it is. Disk work is off the runtime.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellwether_core::records::status::StatusState;

use super::context::CatalogueContext;
use super::format;
use super::shared::FileContext;
use super::state::FileState;
use crate::apply::files::{self, FileJournal};
use crate::apply::render::{MAX_TEXT_BYTES, draw};
use crate::apply::template;
use crate::config::files::{CatalogueFile, FileForm};

/// Why a template's word is not there.
const UNDEFINED: &str =
    "no such service, field or fact; name a service in `services` to have it before it is offered";

/// Writes a file if it is to be written and is not there as it is to be.
pub(super) async fn write(
    shared: &FileContext,
    file: &CatalogueFile,
    context: &Arc<CatalogueContext>,
) -> FileState {
    let pending = |reason: String| FileState { reason, ..FileState::first(file) };
    let well = FileState { state: StatusState::Success, reason: String::new(), ..FileState::first(file) };
    if !context.connected && is_there(shared, &file.path).await {
        return well;
    }
    if !context.known {
        return pending("waits for the catalogue: the control plane has not sent it yet".to_owned());
    }
    if let Some(unmet) = file.selection.unmet(&context.catalogue) {
        return pending(format!("waits for {unmet}"));
    }
    match replace(shared, file, context).await {
        Ok(false) => well,
        Ok(true) => FileState { changed_ms: Some(shared.clock.now().as_millis()), ..well },
        Err(reason) => FileState { state: StatusState::Failed, reason, ..well },
    }
}

/// Puts the file in place if it is not there already; says whether it was replaced.
async fn replace(
    shared: &FileContext,
    file: &CatalogueFile,
    context: &Arc<CatalogueContext>,
) -> Result<bool, String> {
    let (of, context) = (file.clone(), context.clone());
    let staged = off(shared, move || {
        let text = text(&of, &context)?;
        files::stage((&of.path, of.mode), &text)
    });
    let Some(staged) = staged.await? else { return Ok(false) };
    if let Some(check) = &file.check
        && let Err(reason) = shared.command(&check.about(&staged.beside), file.timeout).await
    {
        off(shared, move || {
            files::unstage(&[staged]);
            Ok(())
        })
        .await?;
        return Err(format!("check: {reason}"));
    }
    let (at, is_read) = (journal(shared, &file.path), file.reload.is_none());
    off(shared, move || {
        let mut journal = FileJournal::read(&at)?;
        files::place(&mut journal, &[staged])?;
        if is_read { files::settle(&mut journal) } else { Ok(()) }
    })
    .await?;
    Ok(true)
}

async fn is_there(shared: &FileContext, path: &Path) -> bool {
    let path = path.to_owned();
    off(shared, move || Ok(path.symlink_metadata().is_ok())).await.unwrap_or_default()
}

/// What a file is to say.
fn text(file: &CatalogueFile, context: &CatalogueContext) -> Result<String, String> {
    let text = match &file.form {
        FileForm::Known(format) => format::text(*format, &file.selection, &context.catalogue)?,
        FileForm::Template(from) => {
            let (name, source) = template::read(from)?;
            draw((&name, &source), context.context(&file.selection), UNDEFINED)?
        }
    };
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("it would be longer than {MAX_TEXT_BYTES} bytes; name the services it is about"));
    }
    Ok(text)
}

/// Whether a file was put in place and is not known to be read. What cannot be told is taken for unread.
pub(super) async fn is_unread(context: &FileContext, path: &Path) -> bool {
    let at = journal(context, path);
    off(context, move || Ok(!FileJournal::read(&at)?.is_empty())).await.unwrap_or(true)
}

/// Remembers that files are read.
pub(super) async fn settle(context: &FileContext, read: Vec<CatalogueFile>) -> Result<(), String> {
    let journals: Vec<PathBuf> = read.iter().map(|file| journal(context, &file.path)).collect();
    off(context, move || journals.iter().try_for_each(|at| files::settle(&mut FileJournal::read(at)?))).await
}

/// Where the journal of a file is: by a number made of its path (FNV-1a), because a path may be longer than a name.
fn journal(context: &FileContext, path: &Path) -> PathBuf {
    let number = path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    context.journals.join(format!("{number:016x}.json"))
}

async fn off<T: Send + 'static>(
    context: &FileContext,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = context.tasks.spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(format!("could not go on: {error}")))
}
