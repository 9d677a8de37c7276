//! Nodes that are expected, and those of whom nobody hears, over HTTP.

use axum::extract::State;
use bellwether_api::v1::node::{Because, Marked, Unaccounted};
use bellwether_api::v1::page::Page;
use bellwether_core::records::node::{Contact, Presence};
use bellwether_core::world::fleet::Fleet;

use super::App;
use super::auth::Caller;
use super::input::{Answer, Body, Node, Ns};
use super::problem::Failure;
use super::routes::Nothing;
use crate::ops;

pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Node(name)): (Ns, Node),
    Body(because): Body<Because>,
) -> Result<Answer<Nothing>, Failure> {
    ops::expect::expect(&app.desk, &namespace, &caller.actor(), &name, &because.why).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    (Ns(namespace), Node(name)): (Ns, Node),
) -> Result<Answer<Nothing>, Failure> {
    ops::expect::unexpect(&app.desk, &namespace, &caller.actor(), &name).await?;
    Ok(Answer(Nothing {}))
}

pub(crate) async fn unaccounted(
    State(app): State<App>,
    Ns(namespace): Ns,
) -> Result<Answer<Page<Unaccounted>>, Failure> {
    let world = app.world();
    let items = world.fleets.get(&namespace).map(silent).unwrap_or_default();
    Ok(Answer(Page { items, next: None, revision: world.revision.get() }))
}

/// Expected nodes, and joined ones that are not up, by name.
fn silent(fleet: &Fleet) -> Vec<Unaccounted> {
    let expected = fleet.expected.iter().map(|(name, kept)| Unaccounted {
        node: name.to_string(),
        state: "expected".to_owned(),
        since_ms: kept.value.at.as_millis(),
        expected: Some(Marked::from(&*kept.value)),
    });
    let joined = fleet.nodes.iter().filter(|(_, kept)| kept.value.decommissioned.is_none());
    let quiet = joined.filter_map(|(name, kept)| {
        let never = Presence { contact: Contact::Never, since: kept.value.joined_at, server: None };
        let presence = fleet.presences.get(name).map_or(never, |kept| (*kept.value).clone());
        let quiet = match presence.contact {
            Contact::Up => false,
            Contact::Never | Contact::Suspect | Contact::Unreachable => true,
        };
        quiet.then(|| Unaccounted {
            node: name.to_string(),
            state: presence.contact.as_str().to_owned(),
            since_ms: presence.since.as_millis(),
            expected: None,
        })
    });
    let mut all: Vec<Unaccounted> = expected.chain(quiet).collect();
    all.sort_by(|a, b| a.node.cmp(&b.node));
    all
}
