//! `service`: the services of the fleet with their health; and those of this node, through its own agent.

use super::lists;
use bellwether_api::v1::service::ServiceSummary;
use std::path::Path;

use bellwether_agent::local::client::{LocalError, call};
use bellwether_api::client::CallError;
use bellwether_api::paths::{self, fill};
use bellwether_api::v1::registrations::CheckStatus;
use bellwether_api::v1::service::ServiceView;
use bellwether_api::v1::service::definition::{CheckDefinition, LocalService, ServiceDefinition, TtlUpdate};
use hyper::http::Method;
use serde_json::Value;

use crate::args::{CheckFlags, Global, ListFlags, Register, ServiceCheck, ServiceVerb};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::show::time::date;
use crate::show::{Show, table};

pub(super) async fn run(global: &Global, verb: ServiceVerb) -> CommandResult {
    let show = Show::new(global);
    match verb {
        ServiceVerb::List(flags) => return list(&Context::new(global)?, &flags).await,
        ServiceVerb::Get { name } => get(&Context::new(global)?, &name).await?,
        ServiceVerb::Forget { name } => {
            let context = Context::new(global)?;
            context.client.forget_service(&context.namespace, &name).await?;
            show.changed(&format!("service {name}: forgotten"));
        }
        ServiceVerb::Register(register) => {
            let definition = definition(&register)?;
            ask(&register.agent.data_dir, Method::PUT, paths::AGENT_SERVICES, Some(&definition)).await?;
            show.changed(&format!("service {}: registered", register.id.as_ref().unwrap_or(&register.name)));
        }
        ServiceVerb::Deregister { id, agent } => {
            let path = fill(paths::AGENT_SERVICE, &[&id]);
            ask::<()>(&agent.data_dir, Method::DELETE, &path, None).await?;
            show.changed(&format!("service {id}: deregistered"));
        }
        ServiceVerb::Check(result) => {
            let (flags, status) = match result {
                ServiceCheck::Pass(flags) => (flags, CheckStatus::Passing),
                ServiceCheck::Warn(flags) => (flags, CheckStatus::Warning),
                ServiceCheck::Fail(flags) => (flags, CheckStatus::Failing),
            };
            update_check(&flags, status).await?;
            show.changed(&format!("service {}: check set to {status}", flags.id));
        }
        ServiceVerb::Local { agent } => local(global, &agent.data_dir).await?,
    }
    Ok(Exit::Yes)
}

/// Sets a TTL check of an instance of this node.
pub(super) async fn update_check(flags: &CheckFlags, status: CheckStatus) -> Result<(), Failure> {
    let path = match &flags.check {
        Some(check) => fill(paths::AGENT_CHECK_TTL_UPDATE, &[&flags.id, check]),
        None => fill(paths::AGENT_TTL_UPDATE, &[&flags.id]),
    };
    let update = TtlUpdate { status, note: flags.reason.clone() };
    ask(&flags.agent.data_dir, Method::PUT, &path, Some(&update)).await
}

async fn list(context: &Context, flags: &ListFlags) -> CommandResult {
    let namespace = &context.namespace;
    let read = async |context: &Context| context.client.services(namespace).await;
    lists::show(context, flags, &fill(paths::SERVICES, &[namespace]), read, async |page| {
        shown(context, &page.items)
    })
    .await
}

fn shown(context: &Context, items: &[ServiceSummary]) -> Result<(), Failure> {
    let names = || items.iter().map(|service| service.name.clone()).collect();
    context.show.data(&items, names, |_| {
        let rows = items.iter().map(|service| {
            let tags = service.tags.iter().cloned().collect::<Vec<_>>().join(" ");
            let serve = format!("{} of {}", service.functional, service.addressable);
            vec![service.name.clone(), serve, tags]
        });
        table(&["service", "functional", "tags"], rows)
    })
}

async fn get(context: &Context, name: &str) -> Result<(), Failure> {
    let view = context.client.service(&context.namespace, name, None, std::time::Duration::ZERO).await?;
    let names = || view.instances.iter().map(|instance| instance.node.clone()).collect();
    context.show.data(&view, names, |_| sheet(&view))
}

/// A service with its instances.
pub(super) fn sheet(view: &ServiceView) -> String {
    let rows = view.instances.iter().map(|instance| {
        let addresses = instance.addresses.values().flatten().map(ToString::to_string);
        vec![
            instance.node.clone(),
            instance.name.clone(),
            instance.status.to_string(),
            date(instance.since_ms),
            addresses.collect::<Vec<_>>().join(" "),
            instance.port.map_or_else(|| "-".to_owned(), |port| port.to_string()),
            instance.tags.iter().cloned().collect::<Vec<_>>().join(" "),
            instance.reason.clone(),
        ]
    });
    let head = format!("{} of {} registered instances are functional", view.functional, view.addressable);
    if view.instances.is_empty() {
        return format!("{head}; no instance of {} is registered now", view.name);
    }
    let columns = ["node", "id", "level", "since", "addresses", "port", "tags", "reason"];
    format!("{head}\n{}", table(&columns, rows))
}

fn definition(register: &Register) -> Result<ServiceDefinition, Failure> {
    let pair = |text: &String| {
        let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
        let pair = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
        pair.ok_or_else(|| Failure::usage(format!("read --meta {text:?}: write KEY=VALUE")))
    };
    let meta = register.meta.iter().map(pair).collect::<Result<_, _>>()?;
    let interval = register.interval.clone();
    let check = |name: &str| CheckDefinition {
        name: name.to_owned(),
        interval: interval.clone(),
        ..CheckDefinition::default()
    };
    let tcp = register.tcp.clone().map(|tcp| CheckDefinition { tcp: Some(tcp), ..check("tcp") });
    let http = register.http.clone().map(|http| CheckDefinition { http: Some(http), ..check("http") });
    let ttl = register.ttl.clone();
    let ttl = ttl.map(|ttl| CheckDefinition { ttl: Some(ttl), interval: None, ..check("ttl") });
    Ok(ServiceDefinition {
        name: register.name.clone(),
        id: register.id.clone(),
        port: register.port,
        address: register.address,
        interface: None,
        tags: register.tag.iter().cloned().collect(),
        meta,
        entity: None,
        needs: register.needs.clone(),
        checks: tcp.into_iter().chain(http).chain(ttl).collect(),
    })
}

async fn local(global: &Global, data_dir: &Path) -> Result<(), Failure> {
    let services: Vec<LocalService> =
        call::<(), _>(data_dir, Method::GET, paths::AGENT_SERVICES, None).await.map_err(unreachable)?;
    let id = |service: &LocalService| {
        service.definition.id.clone().unwrap_or_else(|| service.definition.name.clone())
    };
    let names = || services.iter().map(id).collect();
    Show::new(global).data(&services, names, |_| {
        let rows = services.iter().map(|service| {
            vec![
                service.definition.name.clone(),
                id(service),
                service.status.to_string(),
                service.source.clone(),
                service.reason.clone(),
            ]
        });
        table(&["service", "id", "level", "source", "reason"], rows)
    })
}

async fn ask<B: serde::Serialize>(
    data_dir: &Path,
    method: Method,
    path: &str,
    body: Option<&B>,
) -> Result<(), Failure> {
    call::<B, Value>(data_dir, method, path, body).await.map(drop).map_err(unreachable)
}

/// What this node's agent refused, or that it cannot be reached.
pub(super) fn unreachable(error: LocalError) -> Failure {
    match error {
        LocalError::Problem(problem) => CallError::Problem(problem).into(),
        LocalError::Away { .. } | LocalError::Broken(_) => {
            Failure::local(LocalFault::Contact, error.to_string()).hint(
                "check with `bellwether agent status`; give --data-dir if the agent keeps its data elsewhere",
            )
        }
    }
}
