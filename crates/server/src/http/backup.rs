//! Backups over HTTP: all records at one revision, while the server goes on.

use std::io::{self, SeekFrom};
use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bellwether_api::media::JSON_LINES;
use bellwether_api::problem::Code;
use bellwether_api::v1::backup::NewBackup;
use bellwether_store::StoreError;
use bytes::{Bytes, BytesMut};
use http::header;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::auth::Authenticated;
use super::input::OptionalBody;
use super::problem::Failure;
use super::state::AppState;
use crate::key_files::KeyDir;
use crate::transfer::{TransferError, backup};
use crate::unnamed_file;

/// Most attempts: the store keeps the newest commits only, and on a slow disk a busy one may drop the revision that is read.
const ATTEMPTS: u32 = 5;

/// How often it is looked how much space a backup has left: a fast disk takes some hundred megabytes meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Bytes of a part of the answer.
const PART_BYTES: usize = 64 << 10;

/// Answers a backup. All of it is written to a file without a name first, since the store does not keep a revision for as long as a slow
/// client may take. The file is gone when the answer is given, or its client is.
pub(crate) async fn take(
    State(app): State<AppState>,
    caller: Authenticated,
    OptionalBody(request): OptionalBody<NewBackup>,
) -> Result<Response, Failure> {
    // With the keys one can be anybody, and the records have the hashes of all tokens: nobody gets there with fewer rights than all.
    if !caller.rights()?.is_everything() {
        let detail = "forbidden: a backup has all records, and may have the keys of the installation, so it needs every right";
        return Err(Failure::new(Code::Forbidden, detail).hint("use a token with the role admin"));
    }
    let permit = app.traffic.admission.backup()?;
    let keys = request.keys.then_some(&app.identity.key_files);
    let file = written(&app, keys).await.map_err(failure)?;
    tracing::info!(actor = %caller.actor(), keys = request.keys, "a backup was taken");
    let sent = SentBackup { file, stop: app.stop.clone(), _permit: permit };
    let parts = futures_util::stream::unfold(sent, SentBackup::next);
    Ok(([(header::CONTENT_TYPE, JSON_LINES)], Body::from_stream(parts)).into_response())
}

/// A file with a backup of the present state, from its beginning.
async fn written(app: &AppState, keys: Option<&KeyDir>) -> Result<File, TransferError> {
    let dir = app.identity.key_files.data_dir().to_owned();
    let at = |source| TransferError::File { action: "write", path: dir.join("(a backup)"), source };
    let made = tokio::task::spawn_blocking({
        let dir = dir.clone();
        move || unnamed_file::make(&dir)
    });
    let made = made.await.map_err(io::Error::other).and_then(|made| made);
    let mut file = File::from_std(made.map_err(at)?);
    let mut attempt = 1;
    loop {
        // A backup that is ended has been read by nobody.
        let taken = tokio::select! {
            taken = backup::take_with(&app.records.store, (app.clock.now(), keys), &mut file) => taken,
            () = room_ends(|| free_bytes(&dir)) => Err(at(io::ErrorKind::StorageFull.into())),
        };
        match taken {
            Err(TransferError::Store(StoreError::Compacted { .. })) if attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
            Ok(_) => break,
        }
        file.seek(SeekFrom::Start(0)).await.map_err(at)?;
        file.set_len(0).await.map_err(at)?;
    }
    file.seek(SeekFrom::Start(0)).await.map_err(at)?;
    Ok(file)
}

/// Waits until less than half of the space is left that is free now: the store beside the backup needs some, too.
async fn room_ends(free: impl Fn() -> u64) {
    let least = free() / 2;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if free() < least {
            return;
        }
    }
}

/// Free space on the file system of a directory; any amount if that is not known.
fn free_bytes(dir: &Path) -> u64 {
    rustix::fs::statvfs(dir).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn failure(error: TransferError) -> Failure {
    let detail = format!("cannot {error}");
    match error {
        TransferError::Store(StoreError::Compacted { .. }) => {
            let detail = format!(
                "cannot read all records at one revision in {ATTEMPTS} attempts: the store is changed faster than it is read"
            );
            Failure::new(Code::Store, detail).hint("retry when less is going on").retry_after_ms(10_000)
        }
        TransferError::Store(_) => Failure::new(Code::Store, detail).retry_after_ms(1_000),
        TransferError::File { .. } => {
            let hint = "a backup is written to the data directory of the server first, and takes at most half of the space that is free there: make room";
            Failure::new(Code::Store, detail).hint(hint).retry_after_ms(10_000)
        }
        TransferError::OtherKeys { .. } => Failure::new(Code::Refused, detail),
        TransferError::Installation(_)
        | TransferError::InUse { .. }
        | TransferError::Disturbed
        | TransferError::Lost { .. }
        | TransferError::Clock { .. }
        | TransferError::Authority { .. }
        | TransferError::KeysPresent { .. }
        | TransferError::Keys(_)
        | TransferError::Unreadable { .. }
        | TransferError::Damaged(_)
        | TransferError::Newer { .. }
        | TransferError::Open(_)
        | TransferError::Shape(_) => Failure::new(Code::Internal, detail),
    }
}

/// A backup that is sent. No other is taken meanwhile.
struct SentBackup {
    file: File,
    stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl SentBackup {
    /// The next part.
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        let mut part = BytesMut::with_capacity(PART_BYTES);
        // Both arms only wait: what was read is not missed by anybody once the server stops.
        let read = tokio::select! {
            read = self.file.read_buf(&mut part) => read,
            () = self.stop.cancelled() => Err(io::Error::other("the server stops")),
        };
        match read {
            Ok(0) => None,
            Ok(_) => Some((Ok(part.freeze()), self)),
            Err(error) => Some((Err(error), self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_backup_takes_no_more_than_half_of_the_free_space() {
        let free = AtomicU64::new(1_000);
        let ends = room_ends(|| free.load(Ordering::Relaxed));
        let used = async {
            for left in [900, 501, 500] {
                free.store(left, Ordering::Relaxed);
                tokio::time::sleep(2 * LOOK_EVERY).await;
            }
            free.store(499, Ordering::Relaxed);
            std::future::pending::<()>().await;
        };
        // It looks at what is free before any of it is used.
        tokio::select! {
            biased;
            () = ends => {}
            () = used => {}
        }
        assert_eq!(free.load(Ordering::Relaxed), 499);
    }
}
