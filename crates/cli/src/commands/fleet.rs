//! The verbs for fleets run by version. Answers go to stdout, yes or no into the exit code; "unknown" is never "no".

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::node::NodeView;
use bellwether_api::v1::policy::{OnFailure, Policy};
use bellwether_api::v1::rollout::NewRollout;

use serde::Serialize;

use super::selected_nodes::all;
use super::{local, statuses};
use crate::args::{FleetCommand, Global, PendingUpdate, TriggerUpdate, VerifyHosts};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::{Show, table};

pub(super) async fn run(global: &Global, verb: FleetCommand) -> CommandResult {
    match verb {
        FleetCommand::TriggerUpdate(trigger) => trigger_update(&Context::new(global)?, trigger).await,
        FleetCommand::CurrentVersion { of } => current_version(&Context::new(global)?, &of.entity).await,
        FleetCommand::PendingUpdate(pending) => pending_update(global, &pending).await,
        FleetCommand::LocalVersion(pending) => local_version(global, &pending),
        FleetCommand::RunningVersions { of } => running_versions(&Context::new(global)?, &of.entity).await,
        FleetCommand::HostsAtVersion(at) => {
            hosts_at(&Context::new(global)?, &at.of.entity, &at.version).await
        }
        FleetCommand::VerifyHosts(verify) => verify_hosts(&Context::new(global)?, verify).await,
        FleetCommand::CheckSingleVersion { version, verbose, of } => {
            check_single(&Context::new(global)?, &of.entity, &version, verbose).await
        }
        FleetCommand::UpdateStatus(set) => statuses::update(global, set).await,
        FleetCommand::DeleteStatus(which) => statuses::delete(global, which).await,
        FleetCommand::PublishService(publish) => local::publish(global, publish).await,
        FleetCommand::CacheServices(cache) => local::cache_services(global, cache).await,
        FleetCommand::LocalHealth { here } => local::health(global, &here).await,
        FleetCommand::GetFailures { hosts } => statuses::failures(&Context::new(global)?, hosts).await,
    }
}

/// The policy of an entity that `trigger-update` creates: every target at once, and none is rolled back.
fn at_once() -> Policy {
    let text = |text: &str| Some(text.to_owned());
    Policy {
        batch: text("100%"),
        soak: text("0s"),
        deadline: text("1h"),
        on_failure: Some(OnFailure::Continue),
        unreachable: text("100%"),
        ..Policy::default()
    }
}

async fn trigger_update(context: &Context, trigger: TriggerUpdate) -> CommandResult {
    let (client, namespace, entity) = (&context.client, &context.namespace, &trigger.of.entity);
    match client.entity(namespace, entity).await {
        Ok(_) => {}
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
            let spec = EntitySpec { selector: "all".to_owned(), policy: at_once(), ..EntitySpec::default() };
            client.set_entity(namespace, entity, &spec).await?;
        }
        Err(error) => return Err(error.into()),
    }
    let new = NewRollout { version: Some(trigger.version), reason: trigger.reason, ..NewRollout::default() };
    let started = client.start_rollout(namespace, entity, &new).await?;
    context.show.changed(&format!("entity {entity}: rollout of {} started", started.version));
    context.show.note(&format!("watch it with: bellwether rollout get {entity} -w"));
    Ok(Exit::Yes)
}

async fn desired(context: &Context, entity: &str) -> Result<Option<String>, Failure> {
    match context.client.current_rollout(&context.namespace, entity, None, Duration::ZERO).await {
        Ok(view) => Ok(view.desired),
        Err(error) => Err(found(error, entity)),
    }
}

/// Refuses an entity that does not exist: no node can run a version of it.
async fn known(context: &Context, entity: &str) -> Result<(), Failure> {
    let entities = context.client.entity(&context.namespace, entity).await;
    entities.map(|_| ()).map_err(|error| found(error, entity))
}

/// The failure to find an entity, with the verb that creates it.
fn found(error: CallError, entity: &str) -> Failure {
    let failure = Failure::from(error);
    if !failure.not_found {
        return failure;
    }
    let flag = if entity == "system" { String::new() } else { format!(" -e {entity}") };
    failure.hint(format!("create it and set its version: bellwether trigger-update VERSION{flag}"))
}

async fn current_version(context: &Context, entity: &str) -> CommandResult {
    match desired(context, entity).await? {
        Some(version) => {
            print_version(&context.show, &version)?;
            Ok(Exit::Yes)
        }
        None => Err(Failure::stated(Exit::No, format!("no version of entity {entity} was set yet"))
            .hint("bellwether trigger-update VERSION")),
    }
}

/// The version that this node's agent reports.
fn validated(pending: &PendingUpdate) -> Result<Option<String>, Failure> {
    let status = bellwether_agent::status::read(&pending.agent.data_dir)
        .map_err(|error| Failure::new(Exit::Unknown, error.to_string()))?;
    Ok(status.entities.get(&pending.of.entity).and_then(|entity| entity.running.clone()))
}

/// Prints a version; as data it is a JSON string.
fn print_version(show: &Show, version: &str) -> Result<(), Failure> {
    show.data(&version, || vec![version.to_owned()], |_| version.to_owned())
}

fn local_version(global: &Global, pending: &PendingUpdate) -> CommandResult {
    let entity = &pending.of.entity;
    match validated(pending) {
        Ok(Some(version)) => {
            print_version(&Show::new(global), &version)?;
            Ok(Exit::Yes)
        }
        Ok(None) => Err(Failure::stated(
            Exit::No,
            format!("no version of entity {entity} was validated on this node yet"),
        )),
        Err(failure) => Err(failure),
    }
}

/// Whether an update of an entity is pending on this node, as data.
#[derive(Debug, Serialize)]
struct PendingAnswer<'a> {
    entity: &'a str,
    /// Whether this node runs another version than the assigned one.
    pending: bool,
    /// The version that this node runs; absent before its first.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<String>,
    assigned: String,
}

impl<'a> PendingAnswer<'a> {
    fn new(entity: &'a str, running: Option<String>, assigned: String) -> Self {
        Self { entity, pending: running.as_ref() != Some(&assigned), running, assigned }
    }

    /// Prints the pending version; if there is none, a note for a person. Exits 1 if none is pending.
    fn print(&self, global: &Global) -> CommandResult {
        let show = Show::new(global);
        let names = || Vec::from_iter(self.pending.then(|| self.assigned.clone()));
        show.data(self, names, |_| names().concat())?;
        if self.pending {
            return Ok(Exit::Yes);
        }
        show.note(&format!("up to date: {}", self.assigned));
        Ok(Exit::No)
    }
}

async fn pending_update(global: &Global, pending: &PendingUpdate) -> CommandResult {
    let running = validated(pending).ok().flatten();
    let wanted = match Context::new(global) {
        Ok(context) => desired(&context, &pending.of.entity).await,
        Err(failure) => Err(failure),
    };
    let unknown = if running.is_some() { Exit::UnknownWithLocal } else { Exit::Unknown };
    match wanted {
        Ok(Some(assigned)) => PendingAnswer::new(&pending.of.entity, running, assigned).print(global),
        Ok(None) => Err(Failure::new(unknown, "decide whether an update is pending: no version was set yet")),
        Err(failure) => {
            let what = format!("decide whether an update is pending: {}", failure.message);
            Err(Failure { hint: failure.hint, ..Failure::new(unknown, what) })
        }
    }
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

async fn running_versions(context: &Context, entity: &str) -> CommandResult {
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

async fn hosts_at(context: &Context, entity: &str, version: &str) -> CommandResult {
    let hosts = versions(context, entity).await?.remove(version).unwrap_or_default();
    let lines: Vec<String> = hosts.into_iter().collect();
    context.show.data(&lines, || lines.clone(), |_| lines.join("\n"))?;
    if lines.is_empty() {
        context.show.note(&format!("no node runs {version} of entity {entity}"));
        return Ok(Exit::No);
    }
    Ok(Exit::Yes)
}

async fn verify_hosts(context: &Context, verify: VerifyHosts) -> CommandResult {
    let mut wanted = BTreeSet::new();
    for host in &verify.hosts {
        if host == "-" {
            let text = crate::context::read(std::path::Path::new("-"), "host names")?;
            wanted.extend(text.split_whitespace().map(str::to_owned));
        } else {
            wanted.insert(host.clone());
        }
    }
    let nodes: BTreeMap<String, NodeView> =
        all(context, None, false).await?.into_iter().map(|view| (view.node.name.clone(), view)).collect();
    if verify.hosts.is_empty() {
        wanted.extend(nodes.keys().cloned());
    }
    if wanted.is_empty() {
        return Err(Failure::new(Exit::No, "verify nodes: none is named, and none has joined"));
    }
    if !nodes.values().any(|view| view.running.contains_key(&verify.of.entity)) {
        known(context, &verify.of.entity).await?;
    }
    let running =
        |host: &String| nodes.get(host).and_then(|view| view.running.get(&verify.of.entity)).cloned();
    let wrong: Vec<(String, String)> = wanted
        .iter()
        .filter(|host| running(host).as_ref() != Some(&verify.version))
        .map(|host| {
            let known = nodes.contains_key(host.as_str());
            let nothing = if known { "not-validated" } else { "not-found" };
            (host.clone(), running(host).unwrap_or_else(|| nothing.to_owned()))
        })
        .collect();
    let lines: Vec<String> = wrong.iter().map(|(host, version)| format!("{host} {version}")).collect();
    let by_host: BTreeMap<_, _> = wrong.iter().cloned().collect();
    context.show.data(&by_host, || by_host.keys().cloned().collect(), |_| lines.join("\n"))?;
    Ok(if wrong.is_empty() { Exit::Yes } else { Exit::No })
}

async fn check_single(context: &Context, entity: &str, version: &str, verbose: bool) -> CommandResult {
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
