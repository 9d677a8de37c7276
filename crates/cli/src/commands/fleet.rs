//! The verbs for fleets run by version. Answers go to stdout, yes or no into the exit code; "unknown" is never "no".

use std::time::Duration;

use bellwether_agent::status::AgentStatus;
use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::rollout::{NewRollout, RolloutView};

use serde::Serialize;

use super::hosts::found;
use super::{hosts, local, own_agent, statuses};
use crate::args::{FleetCommand, Global, PendingUpdate, TriggerUpdate};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::Show;

pub(super) async fn run(global: &Global, verb: FleetCommand) -> CommandResult {
    match verb {
        FleetCommand::TriggerUpdate(trigger) => trigger_update(&Context::new(global)?, trigger).await,
        FleetCommand::CurrentVersion(current) => current_version(global, &current).await,
        FleetCommand::PendingUpdate(pending) => pending_update(global, &pending).await,
        FleetCommand::LocalVersion(pending) => local_version(global, &pending).await,
        FleetCommand::RunningVersions { of } => {
            hosts::running_versions(&Context::new(global)?, &of.entity).await
        }
        FleetCommand::HostsAtVersion(at) => hosts::hosts_at(&Context::new(global)?, &at).await,
        FleetCommand::VerifyHosts(verify) => hosts::verify(global, &verify).await,
        FleetCommand::CheckSingleVersion { version, verbose, of } => {
            hosts::check_single(&Context::new(global)?, &of.entity, &version, verbose).await
        }
        FleetCommand::UpdateStatus(set) => statuses::update(global, set).await,
        FleetCommand::DeleteStatus(which) => statuses::delete(global, which).await,
        FleetCommand::PublishService(publish) => local::publish(global, publish).await,
        FleetCommand::CacheServices(cache) => local::cache_services(global, cache).await,
        FleetCommand::LocalHealth { here } => local::health(global, &here).await,
        FleetCommand::GetFailures { hosts } => statuses::failures(&Context::new(global)?, hosts).await,
    }
}

/// The policy fields of a rollout to every target at once, and the fields that would keep targets waiting.
fn all_at_once() -> (Policy, Vec<String>) {
    let policy = Policy { batch: Some("100%".to_owned()), ..Policy::default() };
    (policy, ["stages", "max_unavailable", "domain"].map(str::to_owned).into())
}

async fn trigger_update(context: &Context, trigger: TriggerUpdate) -> CommandResult {
    let (client, namespace, entity) = (&context.client, &context.namespace, &trigger.of.entity);
    match client.entity(namespace, entity).await {
        Ok(_) => {}
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
            let spec = EntitySpec { selector: "all".to_owned(), ..EntitySpec::default() };
            client.set_entity(namespace, entity, &spec).await?;
            let created = format!("entity {entity}: created for every node, with the default policy");
            context.show.changed(&created);
            context.show.note(&format!("show the policy with: bellwether entity get {entity}"));
        }
        Err(error) => return Err(error.into()),
    }
    let (policy, unset) = if trigger.all_at_once { all_at_once() } else { Default::default() };
    let new = NewRollout {
        version: Some(trigger.version),
        reason: trigger.reason,
        policy,
        unset,
        ..NewRollout::default()
    };
    let started = client.start_rollout(namespace, entity, &new).await?;
    context.show.changed(&format!("entity {entity}: {}", started.summary()));
    context.show.note(&format!("watch it with: bellwether rollout get {entity} -w"));
    Ok(Exit::Yes)
}

async fn rollout(context: &Context, entity: &str) -> Result<RolloutView, Failure> {
    let view = context.client.current_rollout(&context.namespace, entity, None, Duration::ZERO).await;
    view.map_err(|error| found(error, entity))
}

/// Why the version to run is another one than the version requested last; `None` unless that one was rolled back.
fn rolled_back(view: &RolloutView) -> Option<String> {
    let requested =
        view.progress.requested.as_ref().filter(|requested| view.desired.as_ref() != Some(*requested))?;
    let of_requested = view.rollout.as_ref().filter(|rollout| rollout.version == *requested);
    if let Some(undone) = of_requested.and_then(|rollout| rollout.undone.as_ref()) {
        let reason = if undone.reason.is_empty() { String::new() } else { format!(": {}", undone.reason) };
        return Some(format!("{requested} was requested last and undone by {}{reason}", undone.by));
    }
    let bad = view.progress.bad.iter().rfind(|bad| bad.version == *requested)?;
    Some(format!("{requested} was requested last and rolled back: {}", bad.reason))
}

async fn current_version(global: &Global, current: &PendingUpdate) -> CommandResult {
    let entity = &current.of.entity;
    if let Some(own) = own_agent::status(global, &current.agent.data_dir).await? {
        let show = Show::new(global);
        let Some(version) = assigned(&own, entity) else {
            return Err(Failure::stated(
                Exit::No,
                format!("no version of entity {entity} is assigned to this node"),
            ));
        };
        print_version(&show, version)?;
        own_agent::note_age(&show, &own);
        return Ok(Exit::Yes);
    }
    let context = Context::new(global)?;
    let view = rollout(&context, entity).await?;
    match &view.desired {
        Some(version) => {
            print_version(&context.show, version)?;
            if let Some(why) = rolled_back(&view) {
                context.show.note(&why);
            }
            Ok(Exit::Yes)
        }
        None => Err(Failure::stated(Exit::No, format!("no version of entity {entity} was set yet"))
            .hint("bellwether trigger-update VERSION")),
    }
}

/// The version that this machine's agent was assigned last.
fn assigned<'a>(own: &'a AgentStatus, entity: &str) -> Option<&'a str> {
    own.entities.get(entity)?.assigned.as_deref()
}

/// The version that this node's agent reports, or reported last.
async fn validated(pending: &PendingUpdate) -> Result<Option<String>, Failure> {
    let current = bellwether_agent::local::client::current(&pending.agent.data_dir).await;
    let status = current.map_err(|error| Failure::new(Exit::Unknown, error.to_string()))?.into_inner();
    Ok(status.entities.get(&pending.of.entity).and_then(|entity| entity.running.clone()))
}

/// Prints a version; as data it is a JSON string.
fn print_version(show: &Show, version: &str) -> Result<(), Failure> {
    show.data(&version, || vec![version.to_owned()], |_| version.to_owned())
}

async fn local_version(global: &Global, pending: &PendingUpdate) -> CommandResult {
    let entity = &pending.of.entity;
    match validated(pending).await {
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

/// The version that this node is to run, as its own agent knows it, or the server.
async fn to_run(global: &Global, entity: &str, own: Option<&AgentStatus>) -> Result<Option<String>, Failure> {
    match own {
        Some(own) => {
            own_agent::note_age(&Show::new(global), own);
            Ok(assigned(own, entity).map(str::to_owned))
        }
        None => Ok(rollout(&Context::new(global)?, entity).await?.desired),
    }
}

async fn pending_update(global: &Global, pending: &PendingUpdate) -> CommandResult {
    let entity = &pending.of.entity;
    let own = own_agent::status(global, &pending.agent.data_dir).await;
    let running = match &own {
        Ok(Some(own)) => own.entities.get(entity).and_then(|entity| entity.running.clone()),
        Ok(None) | Err(_) => validated(pending).await.ok().flatten(),
    };
    let unknown = if running.is_some() { Exit::UnknownWithLocal } else { Exit::Unknown };
    let wanted = match own {
        Ok(own) => to_run(global, entity, own.as_ref()).await,
        Err(failure) => Err(failure),
    };
    match wanted {
        Ok(Some(assigned)) => PendingAnswer::new(entity, running, assigned).print(global),
        Ok(None) => Err(Failure::new(unknown, "decide whether an update is pending: no version was set yet")),
        Err(failure) => {
            let what = format!("decide whether an update is pending: {}", failure.message);
            Err(Failure { hint: failure.hint, ..Failure::new(unknown, what) })
        }
    }
}
