//! Moves, backups and restores of the store that a configuration names, opened by this process alone.

use std::path::Path;

use bellwether_core::words::time::Timestamp;
use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;
use tokio::io::AsyncWrite;

use super::backup::{self, BackupContents, BackupTaken};
use super::migrate::{self, MigrationResult};
use super::set_back;
use super::{TransferError, newest_event};
use crate::config::Config;
use crate::installation::Installation;
use crate::key_files::{KeyDir, WrittenKeys};
use crate::pki;
use crate::restore_mark::RestoreMark;
use crate::run::RunError;
use crate::run::store::{open_store, open_store_to_look, own_store};
use crate::timing::last_time::{ClockDoubt, LastTime};

/// A description of the store, for messages.
#[must_use]
pub fn name(config: &Config) -> String {
    match &config.etcd {
        Some(etcd) => format!("etcd at {} under {}", etcd.endpoints.join(", "), etcd.prefix),
        None => config.data_dir.join("store").display().to_string(),
    }
}

/// Moves all records; see [`migrate::migrate`].
///
/// # Errors
/// [`TransferError`].
pub async fn migrate(
    from: &Config,
    to: &Config,
    tell: impl FnMut(u64),
) -> Result<MigrationResult, TransferError> {
    let goal = name(to);
    exists(from)?;
    with(from, async |from| with(to, async |to| migrate::migrate(from, to, &goal, tell).await).await).await
}

/// Writes a backup; see [`backup::take`].
///
/// # Errors
/// [`TransferError`].
pub async fn back_up(
    config: &Config,
    now: Timestamp,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<BackupTaken, TransferError> {
    exists(config)?;
    let tasks = Tasks::new();
    let store = open_store_to_look(config, &tasks).await?;
    used(store, &tasks, async |store| backup::take(store, now, out).await).await
}

/// Writes a backup with the keys of the installation, which are in the data directory.
///
/// # Errors
/// [`TransferError`].
pub async fn back_up_with_keys(
    config: &Config,
    now: Timestamp,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<BackupTaken, TransferError> {
    exists(config)?;
    let (tasks, keys) = (Tasks::new(), KeyDir::of(&config.data_dir));
    let store = open_store_to_look(config, &tasks).await?;
    used(store, &tasks, async |store| backup::take_with(store, (now, Some(&keys)), out).await).await
}

/// A backup that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredBackup {
    /// What is in it.
    pub contents: BackupContents,
    /// Whether its keys are in the data directory now, so that a server starts.
    pub has_keys: bool,
}

/// Which certificate authority a data directory may have into which a backup is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedAuthority {
    /// That of the backup, or none yet.
    Own,
    /// Any: a person puts that of the backup there afterwards.
    Any,
}

/// Restores a backup; see [`backup::restore`]. The server that starts on it does not believe a clock that is far from this time, or from
/// that of the backup.
///
/// # Errors
/// [`TransferError`].
pub async fn restore(
    config: &Config,
    now: Timestamp,
    file: &Path,
    allowed: AllowedAuthority,
) -> Result<RestoredBackup, TransferError> {
    // Before the store is opened, which creates one where there is none.
    let (contents, keys) = backup::restorable(file).await?;
    if allowed == AllowedAuthority::Own {
        has_no_other_authority(config, &contents)?;
    }
    let dir = KeyDir::of(&config.data_dir);
    let (keys, has_keys) = match (dir.other(&keys)?, allowed) {
        (None, _) => (keys.as_slice(), !keys.is_empty()),
        (Some(path), AllowedAuthority::Own) => return Err(TransferError::KeysPresent { path }),
        (Some(_), AllowedAuthority::Any) => (Default::default(), false),
    };
    let newest = Timestamp::from_millis(contents.newest_ms);
    believe(config, now, Some(newest))?;
    // Before the records: a restore that ended is not repeated, and a server starts with both or neither.
    let written = if has_keys { dir.complete(keys)? } else { WrittenKeys::default() };
    let restored = restore_records(config, now, (file, &contents)).await;
    if restored.is_err() {
        written.remove();
    }
    restored?;
    LastTime::of(config).write(now.max(newest));
    Ok(RestoredBackup { contents, has_keys })
}

/// Restores the records of a backup.
async fn restore_records(
    config: &Config,
    now: Timestamp,
    (file, contents): (&Path, &BackupContents),
) -> Result<(), TransferError> {
    let mark = RestoreMark::of(config);
    let set = mark.set(&contents.installation);
    set.map_err(|source| TransferError::File { action: "write", path: mark.path(), source })?;
    let restored = with(config, async |store| {
        backup::restore_noting(store, (&config.name, now), file, || mark.remove()).await
    });
    let restored = restored.await;
    // A process that is killed leaves it.
    mark.remove();
    restored.map(|_| ())
}

/// Notes that a store was set back; see [`set_back::note`].
///
/// # Errors
/// [`TransferError`].
pub async fn note_set_back(config: &Config, now: Timestamp) -> Result<Installation, TransferError> {
    exists(config)?;
    let noted = with(config, async |store| {
        let newest = newest_event(store).await?;
        believe(config, now, newest)?;
        Ok((set_back::note(store, (&config.name, now)).await?, newest))
    });
    let (installation, newest) = noted.await?;
    LastTime::of(config).write(newest.map_or(now, |newest| newest.max(now)));
    Ok(installation)
}

/// Refuses a data directory with another authority than that of a backup. One that cannot be read is left to the start of a server.
fn has_no_other_authority(config: &Config, backup: &BackupContents) -> Result<(), TransferError> {
    let Some((theirs, ours)) = other_fingerprint(config, &backup.ca_fingerprint) else { return Ok(()) };
    Err(TransferError::Authority { dir: config.data_dir.display().to_string(), theirs, ours })
}

/// What to know of a data directory with another authority than that of its installation, which has this fingerprint.
#[must_use]
pub fn other_authority(config: &Config, fingerprint: &str) -> Option<String> {
    let (theirs, ours) = other_fingerprint(config, fingerprint)?;
    Some(format!(
        "{}/pki has the authority of another installation (ca.pem {theirs}, and that of these records is {ours}): no server starts \
         with it; put ca.pem and ca.key of this installation there",
        config.data_dir.display()
    ))
}

/// The fingerprint of an authority in the data directory that is not this one, and this one, both shortened.
fn other_fingerprint(config: &Config, ours: &str) -> Option<(String, String)> {
    let there = std::fs::read_to_string(config.data_dir.join("pki/ca.pem")).ok()?;
    let theirs = pki::fingerprint(&there)?;
    let cut = |text: &str| text.chars().take(16).collect();
    (theirs != ours).then(|| (cut(&theirs), cut(ours)))
}

/// Refuses a system clock that may be ahead: an epoch begins with its time, and none that begins later may be below it.
fn believe(config: &Config, now: Timestamp, newest: Option<Timestamp>) -> Result<(), TransferError> {
    match LastTime::of(config).doubt(config, now, newest) {
        Some(doubt @ ClockDoubt::Ahead(_)) => Err(TransferError::Clock { doubt: doubt.to_string() }),
        // What is behind the numbers that were issued is refused by them.
        Some(ClockDoubt::Behind(_)) | None => Ok(()),
    }
}

/// Checks that there is a store to read: opening one would create it.
fn exists(config: &Config) -> Result<(), TransferError> {
    if config.etcd.is_some() {
        return Ok(());
    }
    match own_store(&config.data_dir)? {
        Some(_) => Ok(()),
        None => Err(RunError::NotInitialised { dir: config.data_dir.clone() }.into()),
    }
}

/// Opens the store of a configuration, runs `work` on it, and closes it.
async fn with<T>(
    config: &Config,
    work: impl AsyncFnOnce(&Store) -> Result<T, TransferError>,
) -> Result<T, TransferError> {
    let tasks = Tasks::new();
    let store = open_store(config, &tasks).await?;
    used(store, &tasks, work).await
}

/// Runs `work` on an open store, and closes it.
async fn used<T>(
    store: Store,
    tasks: &Tasks,
    work: impl AsyncFnOnce(&Store) -> Result<T, TransferError>,
) -> Result<T, TransferError> {
    let done = work(&store).await;
    store.close().await;
    tasks.cancel();
    done
}
