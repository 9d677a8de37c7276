//! The verbs that compare the versions of the fleet's nodes. What a silent node runs is unknown, and "unknown" is never "no".

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bellwether_agent::status::AgentStatus;
use bellwether_api::client::CallError;
use bellwether_api::v1::node::{NodeView, PresenceState};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_rt::clock::Clock;

use super::own_agent;
use super::selected_nodes::all;
use crate::args::{Global, HostsAtVersion, VerifyHosts};
use crate::context::{Context, read_any};
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::time::date;
use crate::show::{Show, table};

/// Refuses an entity that does not exist: no node can run a version of it.
async fn known(context: &Context, entity: &str) -> Result<(), Failure> {
    let entities = context.client.entity(&context.namespace, entity).await;
    entities.map(|_| ()).map_err(|error| found(error, entity))
}

/// The failure to find an entity, with the verb that creates it.
pub(super) fn found(error: CallError, entity: &str) -> Failure {
    let failure = Failure::from(error);
    if !failure.not_found {
        return failure;
    }
    let flag = if entity == "system" { String::new() } else { format!(" -e {entity}") };
    failure.hint(format!("create it and set its version: bellwether trigger-update VERSION{flag}"))
}

/// The nodes by the version that passed validation on them; decommissioned nodes are left out.
///
/// # Errors
/// Not found, if no node runs a version and there is no such entity.
async fn versions(context: &Context, entity: &str) -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for view in all(context, None, false).await? {
        if let Some(version) = view.running.get(entity) {
            versions.entry(version.clone()).or_default().insert(view.node.name.clone());
        }
    }
    if versions.is_empty() {
        known(context, entity).await?;
    }
    Ok(versions)
}

pub(super) async fn running_versions(context: &Context, entity: &str) -> CommandResult {
    let versions = versions(context, entity).await?;
    context.show.data(
        &versions,
        || versions.keys().cloned().collect(),
        |_| {
            let rows = versions.iter().map(|(version, hosts)| {
                let names = hosts.iter().cloned().collect::<Vec<_>>().join(",");
                vec![version.clone(), hosts.len().to_string(), names]
            });
            table(&["version", "count", "nodes"], rows)
        },
    )?;
    Ok(Exit::Yes)
}

/// Why it is unknown what a node runs; `None` if its last report counts: it is not silent, or not for longer than `max_age`.
fn unknown(view: &NodeView, max_age: Option<Span>, now: Timestamp) -> Option<String> {
    let (state, since_ms) = (view.presence.state, view.presence.since_ms);
    let counts = match (state, max_age) {
        (PresenceState::Up, _) | (PresenceState::Suspect, None) => true,
        (PresenceState::Never, _) | (PresenceState::Unreachable, None) => false,
        (PresenceState::Suspect | PresenceState::Unreachable, Some(max_age)) => {
            now.since(Timestamp::from_millis(since_ms)) <= max_age
        }
    };
    let state = if state == PresenceState::Never { "has never reported" } else { state.as_str() };
    (!counts).then(|| format!("{state} since {}", date(since_ms)))
}

/// Tells a person of each node whose version is unknown, with the version that it reported last.
fn note_unknown(context: &Context, entity: &str, nodes: &[(&NodeView, String)]) {
    for (view, why) in nodes {
        let last = view.running.get(entity).map(|version| format!("; it ran {version} before"));
        context.show.note(&format!("{}: unknown, {why}{}", view.node.name, last.unwrap_or_default()));
    }
}

pub(super) async fn hosts_at(context: &Context, at: &HostsAtVersion) -> CommandResult {
    let (entity, version) = (&at.of.entity, &at.version);
    let nodes = all(context, None, false).await?;
    if !nodes.iter().any(|view| view.running.contains_key(entity)) {
        known(context, entity).await?;
    }
    let now = Clock::system().now();
    let (mut lines, mut silent) = (Vec::new(), Vec::new());
    for view in &nodes {
        let runs = view.running.get(entity) == Some(version);
        match unknown(view, at.max_age, now) {
            None if runs => lines.push(view.node.name.clone()),
            Some(why) if runs || view.assigned.get(entity) == Some(version) => silent.push((view, why)),
            None | Some(_) => {}
        }
    }
    lines.sort();
    context.show.data(&lines, || lines.clone(), |_| lines.join("\n"))?;
    note_unknown(context, entity, &silent);
    if !lines.is_empty() {
        return Ok(Exit::Yes);
    }
    if !silent.is_empty() {
        return Ok(Exit::UnknownNodes);
    }
    context.show.note(&format!("no node runs {version} of entity {entity}"));
    Ok(Exit::No)
}

/// The names of the nodes to verify; none if every node is to be.
fn named(verify: &VerifyHosts) -> Result<BTreeSet<String>, Failure> {
    let mut names = BTreeSet::new();
    for host in &verify.hosts {
        if host == "-" {
            let text = read_any(Path::new("-"), "host names")?;
            names.extend(text.split_whitespace().map(str::to_owned));
        } else {
            names.insert(host.clone());
        }
    }
    if names.is_empty() && !verify.hosts.is_empty() {
        return Err(Failure::new(Exit::No, "verify nodes: the list on stdin is empty"));
    }
    Ok(names)
}

pub(super) async fn verify(global: &Global, verify: &VerifyHosts) -> CommandResult {
    let names = named(verify)?;
    let own = own_agent::status(global, &verify.agent.data_dir).await?;
    match own.filter(|own| names.len() == 1 && names.contains(&own.node)) {
        Some(own) => verify_own(global, verify, &own),
        None => verify_fleet(&Context::new(global)?, verify, names).await,
    }
}

/// Answers for this machine from its agent, which knows what it runs also while it is cut off.
fn verify_own(global: &Global, verify: &VerifyHosts, own: &AgentStatus) -> CommandResult {
    let running = own.entities.get(&verify.of.entity).and_then(|entity| entity.running.as_ref());
    if running == Some(&verify.version) {
        return Ok(Exit::Yes);
    }
    let running = running.map_or("not-validated", String::as_str);
    let shown = BTreeMap::from([(&own.node, running)]);
    Show::new(global).data(&shown, || vec![own.node.clone()], |_| format!("{} {running}", own.node))?;
    Ok(Exit::No)
}

async fn verify_fleet(context: &Context, verify: &VerifyHosts, mut names: BTreeSet<String>) -> CommandResult {
    let entity = &verify.of.entity;
    let nodes: BTreeMap<String, NodeView> =
        all(context, None, false).await?.into_iter().map(|view| (view.node.name.clone(), view)).collect();
    if names.is_empty() {
        names.extend(nodes.keys().cloned());
    }
    if names.is_empty() {
        return Err(Failure::new(Exit::No, "verify nodes: no node has joined"));
    }
    if !nodes.values().any(|view| view.running.contains_key(entity)) {
        known(context, entity).await?;
    }
    let now = Clock::system().now();
    let (mut wrong, mut silent) = (BTreeMap::new(), Vec::new());
    for name in names {
        let Some(view) = nodes.get(&name) else {
            wrong.insert(name, "not-found".to_owned());
            continue;
        };
        let running = view.running.get(entity);
        if let Some(why) = unknown(view, verify.max_age, now) {
            silent.push((view, why));
        } else if running != Some(&verify.version) {
            wrong.insert(name, running.cloned().unwrap_or_else(|| "not-validated".to_owned()));
        }
    }
    let exit = match (wrong.is_empty(), silent.is_empty()) {
        (false, _) => Exit::No,
        (true, false) => Exit::UnknownNodes,
        (true, true) => Exit::Yes,
    };
    let mut shown = wrong;
    shown.extend(silent.iter().map(|(view, _)| (view.node.name.clone(), "unknown".to_owned())));
    let lines = || shown.iter().map(|(host, version)| format!("{host} {version}")).collect::<Vec<_>>();
    context.show.data(&shown, || shown.keys().cloned().collect(), |_| lines().join("\n"))?;
    note_unknown(context, entity, &silent);
    Ok(exit)
}

pub(super) async fn check_single(
    context: &Context,
    entity: &str,
    version: &str,
    verbose: bool,
) -> CommandResult {
    let versions = versions(context, entity).await?;
    let others = versions.iter().filter(|(other, _)| *other != version);
    let others =
        others.flat_map(|(other, hosts)| hosts.iter().map(move |host| (host.clone(), other.clone())));
    let others: BTreeMap<String, String> = others.collect();
    if verbose || context.show.is_data() {
        let lines = || others.iter().map(|(host, other)| format!("{host} {other}")).collect::<Vec<_>>();
        context.show.data(&others, || others.keys().cloned().collect(), |_| lines().join("\n"))?;
    }
    Ok(if others.is_empty() && versions.contains_key(version) { Exit::Yes } else { Exit::No })
}
