//! Operations on namespaces. One is created by the first write in it.

use std::time::Duration;

use bellwether_api::v1::namespace::NamespaceView;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::name::{Actor, Namespace};
use bellwether_core::words::plural::Plural;
use bellwether_core::world::World;
use bellwether_core::world::occupancy::NamespaceContents;

use super::{OpError, event};
use crate::transactor::Transactor;

/// Longest wait for the removal of deleted entities.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);

/// Records per commit, below the store's limit of 128 operations.
const PER_COMMIT: usize = 100;

/// All namespaces with what they contain, by name.
#[must_use]
pub fn list(world: &World) -> Vec<NamespaceView> {
    let contents = |name| world.fleets.get(name).map(|fleet| fleet.contents_left()).unwrap_or_default();
    world.namespaces().iter().map(|name| NamespaceView::of(name, &contents(name))).collect()
}

/// Deletes a namespace that contains nothing but the history of what it contained. What is created in it meanwhile stays.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] for `default`, and naming what the namespace contains.
pub async fn delete(transactor: &Transactor, namespace: &Namespace, actor: &Actor) -> Result<(), OpError> {
    if namespace.as_str() == "default" {
        let reason = format!("delete namespace {namespace}: it always exists");
        return Err(OpError::Refused { reason, hint: None });
    }
    if !transactor.world().has_namespace(namespace) {
        return Err(OpError::NotFound(format!("namespace {namespace}")));
    }
    wait_until_removed(transactor, namespace).await;
    loop {
        let is_done = transactor.change(namespace, actor, |_, fleet, _| {
            let left = fleet.contents_left();
            if !left.is_empty() {
                return Err(not_empty(namespace, &left));
            }
            let writes: Vec<Write> = fleet.remains(PER_COMMIT).into_iter().map(Write::delete).collect();
            let is_done = writes.is_empty();
            Ok(((!is_done).then_some(Changeset { writes, events: Vec::new() }), is_done))
        });
        if is_done.await? {
            break;
        }
    }
    // It has no log any more.
    let default = Namespace::parse("default")
        .map_err(|error| bellwether_api::shape::ShapeError::at("namespace", error))?;
    let deleted = event("namespace.deleted", format!("namespace/{namespace}"), "it was empty");
    let record = |_: &World, _: &_, _| {
        Ok::<_, OpError>((Some(Changeset { writes: Vec::new(), events: vec![deleted.clone()] }), ()))
    };
    transactor.change(&default, actor, record).await
}

/// Waits until entities that were deleted are removed completely.
async fn wait_until_removed(transactor: &Transactor, namespace: &Namespace) {
    let mut worlds = transactor.follow();
    let removed =
        worlds.wait_for(|world| world.fleets.get(namespace).is_none_or(|fleet| fleet.orphans.is_empty()));
    if tokio::time::timeout(REMOVED_WITHIN, removed).await.is_err() {
        tracing::warn!(%namespace, "a deleted entity is not removed completely yet");
    }
}

fn not_empty(namespace: &Namespace, left: &NamespaceContents) -> OpError {
    let found = left.counts().into_iter().filter(|(count, _)| *count > 0);
    let found: Vec<String> = found
        .map(|(count, name)| Plural(u64::try_from(count).unwrap_or(u64::MAX), name).to_string())
        .collect();
    let reason = format!("delete namespace {namespace}: it contains {}", found.join(", "));
    let hint = "delete them, and decommission its nodes, first".to_owned();
    OpError::Refused { reason, hint: Some(hint) }
}
