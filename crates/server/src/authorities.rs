//! Brings what this server signs with and whom it trusts to what the record of the authorities says, at its start and with every change.

pub mod error;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellwether_core::records::authorities::Authorities;
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use serde_json::Value;

use self::error::AuthoritiesError;
use crate::authority_place::place;
use crate::http::AppState;
use crate::pki::{AuthorityPair, Pki};
use crate::secrets::keyring::{Keyring, KeyringError};

/// The file with the certificates of the authorities that are trusted, once there was more than one.
const TRUSTED_FILE: &str = "pki/trusted.pem";

/// The file with the certificates of the authorities that were trusted when this server ran last.
#[must_use]
pub fn trusted_file(data_dir: &Path) -> PathBuf {
    let several = data_dir.join(TRUSTED_FILE);
    if several.exists() { several } else { data_dir.join("pki/ca.pem") }
}

/// Uses the authorities of the record; without one, nothing changes.
///
/// # Errors
/// [`AuthoritiesError`]; those before are used then.
pub(crate) fn take_in(
    (pki, keyring): (&Pki, &Keyring),
    world: &World,
    clock: &Clock,
) -> Result<(), AuthoritiesError> {
    let Some(present) = world.authorities.as_ref().map(|kept| &*kept.value) else { return Ok(()) };
    let pairs = pairs(keyring, present)?;
    pki.take_in(present.version.get(), &pairs, clock.now())?;
    Ok(())
}

/// The authorities that are trusted, the active one first, with its key: nothing is signed with the others.
fn pairs(keyring: &Keyring, present: &Authorities) -> Result<Vec<AuthorityPair>, KeyringError> {
    let mut pairs = Vec::new();
    for authority in present.trusted() {
        let key = match &authority.key {
            Some(sealed) if pairs.is_empty() => {
                match keyring.unseal(&place(&authority.fingerprint), sealed)? {
                    Value::String(key) => Some(key),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                        return Err(KeyringError::Altered);
                    }
                }
            }
            Some(_) | None => None,
        };
        pairs.push(AuthorityPair { certificate: authority.certificate.clone(), key });
    }
    Ok(pairs)
}

/// Follows the record until the server stops.
pub(crate) fn start(app: &AppState, data_dir: &Path, tasks: &Tasks) {
    let follower = Follower { app: app.clone(), file: data_dir.join(TRUSTED_FILE) };
    let token = tasks.token();
    tasks.spawn("authorities", async move {
        // All arms only wait; what is dropped is done again by the next start.
        tokio::select! {
            () = follower.run() => {}
            () = token.cancelled() => {}
        }
    });
}

struct Follower {
    app: AppState,
    file: PathBuf,
}

impl Follower {
    async fn run(&self) {
        let mut worlds = self.app.records.transactor.follow();
        let mut seen = self.app.identity.pki.live().version();
        if seen > 0 {
            self.write().await;
        }
        loop {
            let world = Arc::clone(&worlds.borrow_and_update());
            let version = world.authorities.as_ref().map_or(0, |kept| kept.value.version.get());
            if version != seen {
                seen = version;
                self.take_in(&world).await;
            }
            drop(world);
            if worlds.changed().await.is_err() {
                return;
            }
        }
    }

    async fn take_in(&self, world: &World) {
        let keyring = self.app.records.transactor.keyring();
        match take_in((&self.app.identity.pki, keyring), world, &self.app.clock) {
            Ok(()) => {
                let version = self.app.identity.pki.live().version();
                tracing::info!(version, "the certificate authorities changed");
                self.write().await;
                // Polls wait for the authorities that this server has taken in, not for the record.
                self.app.traffic.sessions.wake_all();
            }
            Err(error) => {
                tracing::error!("cannot {error}; the authorities before stay in use on this server")
            }
        }
    }

    /// Writes the certificates for programs on this machine.
    async fn write(&self) {
        let (live, file) = (self.app.identity.pki.live(), self.file.clone());
        let written = tokio::task::spawn_blocking(move || replace(&file, live.bundle())).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, file = %self.file.display(), "cannot write the certificates of the authorities");
            }
            Err(error) => tracing::warn!(%error, "cannot write the certificates of the authorities"),
        }
    }
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let beside = file.with_extension("new");
    std::fs::write(&beside, text)?;
    std::fs::File::open(&beside)?.sync_all()?;
    std::fs::rename(&beside, file)
}
