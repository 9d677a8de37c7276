//! Secrets over HTTP: their records, their values for those who may reveal them, and what a node may read.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use bellwether_api::list::tables::SECRETS;
use bellwether_api::problem::Code;
use bellwether_api::v1::secret::{
    NodeSecrets, ParamSecrets, RevealedSecret, Secret as Shape, SecretKey, SecretKeys, SecretSpec,
};
use bellwether_core::access::ObjectKind;
use bellwether_core::records::profile::ProfileRevision;
use bellwether_core::records::secret::{Secret, SecretValues};
use bellwether_core::words::name::{Namespace, NodeName, ParamKey, SecretKeyId, SecretName};
use bellwether_core::words::plural::plural;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;

use super::auth::Authenticated;
use super::input::{
    AtRevision, DeclaredParam, JsonAnswer, JsonBody, NamedSecret, NamespacePath, Node, Profile, QueryParams,
};
use super::list::{ListAnswer, ListQuery};
use super::problem::{Failure, SetResponse};
use super::readable::Readable;
use super::routes::Empty;
use super::state::AppState;
use crate::ops;
use crate::ops::OpError;
use crate::ops::params::secrets::{OpenedValue, ParamsOwner, open, unseal};
use crate::ops::secret::SecretScope;
use crate::secrets::stored::all_ciphertexts;

pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &SECRETS, &[])?;
    let world = app.world();
    let all = world.fleets.get(&namespace).into_iter().flat_map(|fleet| fleet.secrets.values());
    let secrets = all.map(|kept| Shape::from(&*kept.value));
    list.answer_json((&SECRETS, app.clock.now()), secrets, world.revision)
}

pub(crate) async fn get(
    State(app): State<AppState>,
    (NamespacePath(namespace), NamedSecret(name)): (NamespacePath, NamedSecret),
    readable: Readable,
) -> Result<JsonAnswer<Shape>, Failure> {
    let world = app.world();
    let (fleet, secret) = find(&world, &namespace, &name)?;
    Ok(JsonAnswer(with_uses(fleet, secret, &readable)))
}

/// A secret with what uses it, as far as the caller may read that.
fn with_uses(fleet: &Fleet, secret: &Secret, readable: &Readable) -> Shape {
    let (shown, hidden): (BTreeMap<String, u64>, BTreeMap<String, u64>) =
        ops::secret::uses(fleet, &secret.name).into_iter().partition(|(used, _)| {
            let mut parts = used.split('/');
            let kind = parts.next().and_then(|kind| ObjectKind::parse(kind).ok());
            kind.zip(parts.next()).is_some_and(|(kind, name)| readable.has_object(kind, name))
        });
    let hidden_uses = u64::try_from(hidden.len()).unwrap_or(u64::MAX);
    Shape { uses: shown, hidden_uses, ..Shape::from(secret) }
}

pub(crate) async fn put(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedSecret(name)): (NamespacePath, NamedSecret),
    (AtRevision(only_at), readable): (AtRevision, Readable),
    JsonBody(spec): JsonBody<SecretSpec>,
) -> Result<SetResponse<Shape>, Failure> {
    let actor = caller.actor();
    let scope = SecretScope { namespace: &namespace, name: &name, actor: &actor, only_at };
    let (secret, is_new) = ops::secret::set(&app.records.transactor, scope, &spec, &app.providers).await?;
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let value = fleet.map_or_else(|| Shape::from(&secret), |fleet| with_uses(fleet, &secret, &readable));
    Ok(SetResponse { is_new, value })
}

pub(crate) async fn delete(
    State(app): State<AppState>,
    caller: Authenticated,
    (NamespacePath(namespace), NamedSecret(name)): (NamespacePath, NamedSecret),
) -> Result<JsonAnswer<Empty>, Failure> {
    ops::secret::delete(&app.records.transactor, &namespace, &caller.actor(), &name).await?;
    Ok(JsonAnswer(Empty {}))
}

/// The value of a secret.
pub(crate) async fn reveal(
    State(app): State<AppState>,
    (NamespacePath(namespace), NamedSecret(name)): (NamespacePath, NamedSecret),
) -> Result<JsonAnswer<RevealedSecret>, Failure> {
    let world = app.world();
    let (_, secret) = find(&world, &namespace, &name)?;
    let opened = open(app.records.transactor.keyring(), &namespace, secret)?;
    revealed(&app, opened).await
}

/// The secret value of a param of the newest revision of a profile.
pub(crate) async fn reveal_of_profile(
    State(app): State<AppState>,
    (NamespacePath(namespace), Profile(name), DeclaredParam(key)): (NamespacePath, Profile, DeclaredParam),
) -> Result<JsonAnswer<RevealedSecret>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let newest = fleet.and_then(|fleet| {
        let number = fleet.profile(&name)?.newest;
        fleet.profile_revisions.get(&(name.clone(), number))
    });
    let found = fleet.zip(newest.and_then(|newest| newest.value.secrets.get(&key)));
    let (fleet, value) = found.ok_or_else(|| no_secret(&key, &format!("profile {name}")))?;
    let keys = (app.records.transactor.keyring(), fleet);
    revealed(&app, unseal(keys, &namespace, ParamsOwner::Profile(&name), (&key, value))?).await
}

/// The secret value of a param of a node's own.
pub(crate) async fn reveal_of_node(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(name), DeclaredParam(key)): (NamespacePath, Node, DeclaredParam),
) -> Result<JsonAnswer<RevealedSecret>, Failure> {
    let world = app.world();
    let fleet = world.fleets.get(&namespace);
    let own = fleet.and_then(|fleet| fleet.node_params.get(&name));
    let found = fleet.zip(own.and_then(|own| own.value.secrets.get(&key)));
    let (fleet, value) = found.ok_or_else(|| no_secret(&key, &format!("node {name}")))?;
    let keys = (app.records.transactor.keyring(), fleet);
    revealed(&app, unseal(keys, &namespace, ParamsOwner::Node(&name), (&key, value))?).await
}

/// The secrets of the params that a node's order names, and of those that reach it without a rollout; no request names them.
pub(crate) async fn of_node(
    State(app): State<AppState>,
    (NamespacePath(namespace), Node(name)): (NamespacePath, Node),
) -> Result<JsonAnswer<NodeSecrets>, Failure> {
    let world = app.world();
    let Some(fleet) = world.fleets.get(&namespace) else { return Ok(JsonAnswer(NodeSecrets::default())) };
    let mut answer = NodeSecrets::default();
    if let Some(own) = fleet.node_params.get(&name).filter(|own| !own.value.secrets.is_empty()) {
        let owner = ParamsOwner::Node(&name);
        let read = values(&app, fleet, (&namespace, owner), &own.value.secrets).await;
        answer.params.push(ParamSecrets { revision: own.value.revision.get(), ..read });
    }
    for revision in revisions(fleet, &name) {
        let owner = ParamsOwner::Profile(&revision.profile);
        let read = values(&app, fleet, (&namespace, owner), &revision.secrets).await;
        let (profile, revision) = (Some(revision.profile.to_string()), revision.number.get());
        answer.params.push(ParamSecrets { profile, revision, ..read });
    }
    Ok(JsonAnswer(answer))
}

/// The keys that secrets are encrypted with, and how many secrets each of them has; the keys of certificate authorities are among these.
pub(crate) async fn keys(State(app): State<AppState>) -> Result<JsonAnswer<SecretKeys>, Failure> {
    let (world, keyring) = (app.world(), app.records.transactor.keyring());
    let active = keyring.active(&world).ok();
    let mut counts: BTreeMap<&SecretKeyId, u64> = BTreeMap::new();
    for text in all_ciphertexts(&world) {
        *counts.entry(&text.key).or_default() += 1;
    }
    let servers: Vec<_> = world.servers.values().map(|kept| &*kept.value).collect();
    let known: Vec<&SecretKeyId> = servers.iter().flat_map(|server| &server.secret_keys).collect();
    let mut warnings: Vec<String> = Vec::new();
    for server in servers.iter().filter(|server| server.secret_keys.is_empty()) {
        warnings.push(format!(
            "server {} has no key for secrets; copy pki/secrets.key from another server to it, and restart it",
            server.name
        ));
    }
    for (id, count) in counts.iter().filter(|(id, _)| !known.contains(id)) {
        let need = format!(
            "{} {}",
            plural(usize::try_from(*count).unwrap_or(usize::MAX), "secret"),
            if *count == 1 { "needs" } else { "need" }
        );
        warnings.push(format!(
            "no server has the key {id}, and {need} it; put back a copy of pki/secrets.key, or set them again"
        ));
    }
    let mut seen = BTreeSet::new();
    let ids = keyring.ids();
    let newest_first = ids.iter().rev().chain(known).chain(counts.keys().copied());
    let keys = newest_first.filter(|id| seen.insert((*id).clone())).map(|id| SecretKey {
        id: id.to_string(),
        active: active.as_ref() == Some(id),
        servers: servers
            .iter()
            .filter(|server| server.secret_keys.contains(id))
            .map(|server| server.name.to_string())
            .collect(),
        secrets: counts.get(id).copied().unwrap_or_default(),
    });
    Ok(JsonAnswer(SecretKeys { keys: keys.collect(), warnings }))
}

/// The revisions of profiles whose params reach a node, and that have secrets.
fn revisions<'a>(fleet: &'a Fleet, node: &NodeName) -> Vec<&'a ProfileRevision> {
    let assigned = fleet.contents.get(node).into_iter().flat_map(|content| content.entities.values());
    let assigned = assigned.filter_map(|assigned| {
        let (profile, _) = assigned.version.as_numbered()?;
        let profile = profile.parse().ok()?;
        let number = ProfileRevision::number_in(&profile, &assigned.version)?;
        Some(&*fleet.profile_revisions.get(&(profile, number))?.value)
    });
    let mut seen = BTreeSet::new();
    let live = fleet.live_params(node).profiles.into_iter();
    let all = assigned.chain(live).filter(|revision| !revision.secrets.is_empty());
    all.filter(|revision| seen.insert((revision.profile.clone(), revision.number))).collect()
}

/// The values of secrets, as far as they can be read.
async fn values(
    app: &AppState,
    fleet: &Fleet,
    (namespace, owner): (&Namespace, ParamsOwner<'_>),
    secrets: &SecretValues,
) -> ParamSecrets {
    let mut read = ParamSecrets::default();
    for (key, value) in secrets {
        let opened = unseal((app.records.transactor.keyring(), fleet), namespace, owner, (key, value));
        let value = match opened {
            Ok(opened) => opened.value(&app.providers).await,
            Err(error) => Err(error.to_string()),
        };
        match value {
            Ok(value) => drop(read.values.insert(key.to_string(), value)),
            Err(reason) => drop(read.unavailable.insert(key.to_string(), reason)),
        }
    }
    read
}

async fn revealed(app: &AppState, opened: OpenedValue<'_>) -> Result<JsonAnswer<RevealedSecret>, Failure> {
    let value = opened.value(&app.providers).await;
    let value =
        value.map_err(|reason| Failure::new(Code::Refused, format!("cannot read the secret: {reason}")))?;
    Ok(JsonAnswer(RevealedSecret { value }))
}

fn find<'a>(
    world: &'a World,
    namespace: &Namespace,
    name: &SecretName,
) -> Result<(&'a Fleet, &'a Secret), Failure> {
    let fleet = world.fleets.get(namespace);
    let found = fleet.and_then(|fleet| Some((fleet, &*fleet.secrets.get(name)?.value)));
    found.ok_or_else(|| {
        let hint =
            format!("list those there are: bellwether secret list; create it: bellwether secret set {name}");
        Failure::from(OpError::NotFound(format!("secret {name}"))).hint(hint)
    })
}

fn no_secret(key: &ParamKey, whose: &str) -> Failure {
    Failure::from(OpError::NotFound(format!("a secret param {key} of {whose}"))).hint(
        "a param is a secret if it is declared so (bellwether param declare KEY --secret) or names a secret",
    )
}
