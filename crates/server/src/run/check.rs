//! Whether a server could start: what is in its data directory, and whose installation its store has.

use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;

use super::error::RunError;
use super::store::{open_store_to_look, own_store};
use crate::config::Config;
use crate::installation::{Installation, InstallationError};
use crate::key_files::own_files;
use crate::pki;
use crate::restore_mark::RestoreMark;
use crate::secrets::keyring::{KEYRING_FILE, Keyring};
use crate::set_back::SetBackMark;

/// Refuses a data directory without a certificate authority, or without the store that was with it, by what else is there.
pub(super) fn has_authority(config: &Config) -> Result<(), RunError> {
    let dir = config.data_dir.clone();
    let store = own_store(&dir)?;
    let authority = std::fs::metadata(dir.join("pki/ca.pem"));
    let is_denied = |source: &std::io::Error| source.kind() == std::io::ErrorKind::PermissionDenied;
    if !authority.as_ref().is_err_and(is_denied) {
        RestoreMark::of(config).check()?;
    }
    match authority {
        Ok(_) if config.etcd.is_none() && store.is_none() => Err(RunError::NoStore { dir }),
        Ok(_) => Ok(()),
        Err(source) if is_denied(&source) => Err(RunError::NotAllowed { path: dir, source }),
        Err(_) if config.etcd.is_some() => Err(RunError::NoAuthority { dir }),
        Err(_) if store.is_some() => Err(RunError::StoreAlone { dir }),
        Err(_) => Err(RunError::NotInitialised { dir }),
    }
}

/// Whether the store was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreSeen {
    /// It was, and a server could use it.
    Yes,
    /// A server has it open: it was looked at when that one started.
    InUse,
}

/// Checks whether a server could use its data directory, and its etcd if it has one: it has an installation, whose authority is here, and the
/// files can be read and written. A store in the data directory is looked at and left as it is; one that a server has open is that
/// server's to look at.
///
/// # Errors
/// [`RunError`] naming what prevents a start.
pub async fn check(config: &Config) -> Result<StoreSeen, RunError> {
    has_authority(config)?;
    own_files(&config.data_dir).check()?;
    let dir = &config.data_dir;
    for path in ["pki/ca.pem", "pki/ca.key"].map(|file| dir.join(file)) {
        if let Err(source) = std::fs::File::open(&path) {
            let denied = source.kind() == std::io::ErrorKind::PermissionDenied;
            let absent = RunError::NoAuthority { dir: dir.clone() };
            return Err(if denied { RunError::NotAllowed { path, source } } else { absent });
        }
    }
    Keyring::open(&dir.join(KEYRING_FILE))?;
    if config.etcd.is_none() {
        let path = dir.join("check");
        let written = std::fs::write(&path, "").and_then(|()| std::fs::remove_file(&path));
        written.map_err(|source| RunError::File { path, source })?;
    }
    let path = dir.join("pki/ca.pem");
    let authority = std::fs::read_to_string(&path).map_err(|source| RunError::File { path, source })?;
    let tasks = Tasks::new();
    let store = match open_store_to_look(config, &tasks).await {
        Ok(store) => store,
        Err(error) if error.is_in_use() => return Ok(StoreSeen::InUse),
        Err(error) => return Err(error),
    };
    let fingerprint = pki::fingerprint(&authority).unwrap_or_default();
    let checked = check_installation(config, &store, &fingerprint).await;
    store.close().await;
    tasks.cancel();
    checked.map(|_| StoreSeen::Yes)
}

/// The installation of the store. A store without one is refused: it may be an empty one where another was lost.
pub(super) async fn check_installation(
    config: &Config,
    store: &Store,
    ca_fingerprint: &str,
) -> Result<Installation, RunError> {
    Installation::check_whole(store).await?;
    let installation = Installation::read(store).await?.ok_or(InstallationError::Missing)?;
    installation.belongs_to(ca_fingerprint)?;
    SetBackMark::in_dir(&config.data_dir).check(&installation)?;
    Ok(installation)
}
