//! Initialises a control plane: certificate authority, store, first admin token.

use std::path::PathBuf;
use std::sync::Arc;

use bellwether_api::client::secret::Secret;
use bellwether_core::records::key::global::{GlobalKey, GlobalRecord};
use bellwether_core::records::token::Token;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, Namespace, RoleName};
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::{BoxFuture, Tasks};
use bellwether_store::Store;

use crate::config::Config;
use crate::installation::Installation;
use crate::key_files::{ADMIN_TOKEN_FILE, own_files};
use crate::metrics::Metrics;
use crate::new_dirs::NewDirs;
use crate::pki::{self, Pki};
use crate::records::commit::{Committer, Fence};
use crate::restore_mark::RestoreMark;
use crate::run::error::RunError;
use crate::run::store::open_store;
use crate::secret;
use crate::secrets::keyring::{KEYRING_FILE, Keyring};
use crate::sessions::Sessions;
use crate::set_back::SetBackNotice;
use crate::store_rules::StoreRules;
use crate::transactor::{CommitContext, Transactor};
use crate::world::{self, RelistHandle, WorldFollower};
use crate::world_view::WorldPublisher;

/// Result of [`init`].
#[derive(Debug)]
pub struct InitialisedInstallation {
    /// The first admin token; also in `token_file`.
    pub token: Secret,
    /// The file with the token, mode 0600.
    pub token_file: PathBuf,
    /// The CA's certificate (PEM file), which clients trust.
    pub ca_file: PathBuf,
    /// SHA-256 of the CA's certificate, lower-case hex.
    pub ca_fingerprint: String,
}

/// Initialises a control plane: certificate authority, store, one admin token. Certificate and key of an authority that are
/// in `pki` of the data directory already are used.
///
/// # Errors
/// [`RunError`]; an existing installation is not changed.
pub fn init(config: &Config) -> BoxFuture<'_, Result<InitialisedInstallation, RunError>> {
    Box::pin(initialise(config))
}

async fn initialise(config: &Config) -> Result<InitialisedInstallation, RunError> {
    let dirs = NewDirs::make(&config.data_dir)
        .map_err(|source| RunError::File { path: config.data_dir.clone(), source })?;
    own_files(&config.data_dir).check()?;
    RestoreMark::of(config).check()?;
    let tasks = Tasks::new();
    let made = match open_store(config, &tasks).await {
        Ok(store) => {
            let made = init_in(config, &store, &tasks).await;
            store.close().await;
            made
        }
        Err(error) => Err(error),
    };
    tasks.cancel();
    if made.is_err() {
        dirs.remove();
    }
    made
}

async fn init_in(config: &Config, store: &Store, tasks: &Tasks) -> Result<InitialisedInstallation, RunError> {
    let (dir, clock) = (config.data_dir.clone(), Clock::system());
    Installation::check_uninitialised(store).await?;
    let authority = Pki::open(&dir.join("pki"), &config.names, clock.now())?;
    let keys = dir.join(KEYRING_FILE);
    if Keyring::open(&keys)?.ids().is_empty() {
        Keyring::add_key(&keys)?;
    }
    // Tokens in a store without an installation are left by an interrupted `init`: nobody has seen their secrets.
    let world = world::load(store, &World::default()).await?;
    let token = secret::new_token()?;
    first_token(store, &clock, tasks, &world, &token).await?;
    let token_file = write_token(config, &token)?;
    // Written last: its presence marks the installation as complete.
    Installation::new(authority.ca_fingerprint()).write(store).await?;
    Ok(InitialisedInstallation {
        token,
        token_file,
        ca_file: dir.join("pki/ca.pem"),
        ca_fingerprint: authority.ca_fingerprint(),
    })
}

/// Writes an admin token to its file in the data directory, in place of another one.
pub(crate) fn write_token(config: &Config, token: &Secret) -> Result<PathBuf, RunError> {
    let path = config.data_dir.join(ADMIN_TOKEN_FILE);
    let write = |source| RunError::File { path: path.clone(), source };
    if path.exists() {
        std::fs::remove_file(&path).map_err(write)?;
    }
    pki::write_private(&path, token.expose()).map_err(write)?;
    Ok(path)
}

async fn first_token(
    store: &Store,
    clock: &Clock,
    tasks: &Tasks,
    world: &World,
    token: &Secret,
) -> Result<(), RunError> {
    let name = Actor::parse("admin").expect("plain letters are an actor");
    let record = GlobalRecord::Token(Token {
        name: name.clone(),
        roles: vec![RoleName::parse("admin").expect("plain letters are a label")],
        only_in: None,
        secret_hash: secret::hash(token.expose().as_bytes()),
        created_at: clock.now(),
        expires_at: None,
    });
    let mut writes: Vec<Write> =
        world.tokens.keys().map(|hash| Write::delete(GlobalKey::Token(hash.clone()))).collect();
    writes.push(Write::put(record));
    commit_alone(store, clock, tasks, world, (name, Changeset { writes, events: vec![] })).await
}

/// Commits a change to a store that no server of this process serves.
pub(crate) async fn commit_alone(
    store: &Store,
    clock: &Clock,
    tasks: &Tasks,
    world: &World,
    (actor, changeset): (Actor, Changeset),
) -> Result<(), RunError> {
    let home = Namespace::parse("default").expect("plain letters are a label");
    let (publisher, published) = WorldPublisher::new(Arc::new(world.clone()));
    let (_, asked) = RelistHandle::new();
    let sessions = Sessions::new(clock.clone());
    let follower = WorldFollower {
        store: store.clone(),
        publisher,
        sessions,
        asked,
        rules: StoreRules::of(false),
        metrics: Metrics::default(),
        set_back: SetBackNotice::default(),
    };
    tasks.spawn("world", follower.run(world.clone(), tasks.token()));
    let committer = Committer::start(store.clone(), clock.clone(), Fence::default(), tasks);
    let transactor = Transactor::new(published, committer, store.clone(), clock.clone());
    transactor.commit(world, &home, CommitContext::person(actor), vec![changeset]).await?;
    Ok(())
}
