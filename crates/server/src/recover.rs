//! Lets in an admin who lost every token: whoever may write the store of an installation makes a new one, without a server.

use std::path::PathBuf;

use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::records::token::Token;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, RoleName};
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_store::Store;

use crate::config::Config;
use crate::init::{commit_alone, write_token};
use crate::installation::{Installation, InstallationError};
use crate::ops::token::RECOVERY;
use crate::run::error::RunError;
use crate::run::store::open_store;
use crate::secret;
use crate::timing::start;
use crate::world;

/// A new admin token.
#[derive(Debug)]
pub struct RecoveredAccess {
    /// Its name.
    pub name: Actor,
    /// The file with its secret, mode 0600.
    pub token_file: PathBuf,
}

/// Creates a token with the role `admin`, and writes it to `admin-token` in the data directory. A store of the server's own must not be
/// in use.
///
/// # Errors
/// [`RunError`] when the store cannot be opened, has no installation, or is in use.
pub async fn admin_token(config: &Config) -> Result<RecoveredAccess, RunError> {
    let own_store = config.data_dir.join("store");
    if config.etcd.is_none() && !own_store.exists() {
        // Opening one would create it.
        return Err(InstallationError::Missing.into());
    }
    let tasks = Tasks::new();
    let store = open_store(config, &tasks).await?;
    let made = admin_token_in(config, &store, &tasks).await;
    store.close().await;
    tasks.cancel();
    made
}

async fn admin_token_in(config: &Config, store: &Store, tasks: &Tasks) -> Result<RecoveredAccess, RunError> {
    let installation = Installation::read(store).await?.ok_or(InstallationError::Missing)?;
    if let Some(place) = installation.moved_to {
        return Err(InstallationError::Moved { id: installation.id, place }.into());
    }
    let world = world::load(store, &World::default()).await?;
    let clock = Clock::system();
    start::not_behind(&world, &clock);
    let (name, secret) = (free_name(&world), secret::new_token()?);
    let token = GlobalRecord::Token(Token {
        name: name.clone(),
        roles: vec![RoleName::parse("admin").expect("plain letters are a label")],
        only_in: None,
        secret_hash: secret::hash(secret.expose().as_bytes()),
        created_at: clock.now(),
        expires_at: None,
    });
    let event = EventDraft {
        kind: "token.created",
        subject: format!("token/{name}"),
        before: None,
        after: None,
        cause: "role admin; created on the machine of a server, without a token".to_owned(),
    };
    let changeset = Changeset { writes: vec![Write::put(token)], events: vec![event] };
    let actor = Actor::parse(RECOVERY).expect("plain letters are an actor");
    commit_alone(store, &clock, tasks, &world, (actor, changeset)).await?;
    Ok(RecoveredAccess { name, token_file: write_token(config, &secret)? })
}

/// A name that no token has.
fn free_name(world: &World) -> Actor {
    let is_free = |name: &Actor| world.tokens.values().all(|kept| kept.value.name != *name);
    let numbered = (2_u64..).map(|number| format!("{RECOVERY}-{number}"));
    let names = std::iter::once(RECOVERY.to_owned()).chain(numbered);
    let mut names = names.filter_map(|name| Actor::parse(&name).ok());
    names.find(is_free).expect("there are more numbers than tokens")
}
