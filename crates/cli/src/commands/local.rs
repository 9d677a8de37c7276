//! Questions to this node's own agent: the service catalogue as it knows it, services of the node, health of the node.

use std::path::Path;

use bellwether_agent::config::files::Format;
use bellwether_agent::files::{format, put};
use bellwether_agent::local::client::{self, LocalError, call};
use bellwether_agent::status::AgentStatus;
use bellwether_api::paths;
use bellwether_api::v1::registrations::CheckStatus;
use bellwether_api::v1::service::definition::LocalService;
use bellwether_core::catalogue::need::RequiredState;
use hyper::http::Method;
use serde::Serialize;

use super::service::{self, unreachable};
use crate::args::{AgentDir, CacheServices, CheckFlags, Global, PublishService, Register, ServiceVerb};
use crate::exit::{CommandResult, Exit, Failure, LocalFault};
use crate::show::{Show, print_data, table};

/// Writes the service catalogue, as this node's agent knows it now.
pub(super) async fn cache_services(global: &Global, cache: CacheServices) -> CommandResult {
    let format = Format::parse(&cache.format);
    let format = format.map_err(|reason| Failure::usage(format!("write that format: {reason}")))?;
    let level = match &cache.level {
        None => format.level(),
        Some(text) => RequiredState::parse(text).ok_or_else(|| {
            Failure::usage(format!("read the level {text:?}: write functional or addressable"))
        })?,
    };
    let catalogue = client::catalogue(&cache.here.data_dir).await.map_err(unreachable)?;
    let text = format::text(format, &format::everything(level), &catalogue).map_err(Failure::ours)?;
    let Some(file) = cache.file else {
        print_data(&text)?;
        return Ok(Exit::Yes);
    };
    let whole = std::path::absolute(&file);
    let whole = whole
        .map_err(|error| Failure::local(LocalFault::Output, format!("write {}: {error}", file.display())))?;
    let changed = put(&whole, &text).map_err(|reason| Failure::local(LocalFault::Output, reason))?;
    let state = if changed { "written" } else { "unchanged" };
    Show::new(global).changed(&format!("{}: {state}", file.display()));
    Ok(Exit::Yes)
}

/// Registers or deregisters a service of this node: `service register`, `check pass` and `deregister` in one, for scripts that
/// publish their service again and again.
pub(super) async fn publish(global: &Global, publish: PublishService) -> CommandResult {
    let agent = publish.here;
    let id = publish.id.clone().unwrap_or_else(|| publish.name.clone());
    if publish.withdraw {
        return service::run(global, ServiceVerb::Deregister { id, agent }).await;
    }
    let has_ttl = publish.ttl.is_some();
    let register = Register {
        name: publish.name,
        id: publish.id,
        port: publish.port,
        address: publish.address,
        tag: publish.tag,
        meta: Vec::new(),
        tcp: None,
        http: None,
        ttl: publish.ttl,
        needs: Vec::new(),
        interval: None,
        agent: agent.clone(),
    };
    service::run(global, ServiceVerb::Register(Box::new(register))).await?;
    if has_ttl {
        let flags = CheckFlags { id, check: None, reason: String::new(), agent };
        service::update_check(&flags, CheckStatus::Passing).await?;
    }
    Ok(Exit::Yes)
}

/// Lists what is not healthy on this node; exits 1 if anything.
pub(super) async fn health(global: &Global, here: &AgentDir) -> CommandResult {
    let (status, services) = ask(&here.data_dir).await.map_err(unreachable)?;
    let wrong = wrong(&status, &services);
    let names = || wrong.iter().map(|each| format!("{}/{}", each.kind, each.name)).collect();
    Show::new(global).data(&wrong, names, |_| {
        let row = |each: &Unhealthy| vec![each.kind.to_owned(), each.name.clone(), each.reason.clone()];
        if wrong.is_empty() {
            return String::new();
        }
        table(&["kind", "name", "reason"], wrong.iter().map(row))
    })?;
    Ok(if wrong.is_empty() { Exit::Yes } else { Exit::No })
}

async fn ask(data_dir: &Path) -> Result<(AgentStatus, Vec<LocalService>), LocalError> {
    let status = client::status(data_dir).await?;
    let services = call::<(), _>(data_dir, Method::GET, paths::AGENT_SERVICES, None).await?;
    Ok((status, services))
}

/// Something of this node that is not healthy.
#[derive(Debug, Serialize)]
struct Unhealthy {
    /// What it is: machine, entity, service, ensemble or file.
    kind: &'static str,
    name: String,
    reason: String,
}

/// Everything that is not healthy. A service with warnings is functional.
fn wrong(status: &AgentStatus, services: &[LocalService]) -> Vec<Unhealthy> {
    let unhealthy = |kind, name: &String, reason| Unhealthy { kind, name: name.clone(), reason };
    let provision = status.provision.iter().filter(|provision| provision.state != "success");
    let provision = provision.map(|provision| unhealthy("machine", &status.node, provision.reason.clone()));
    let entities = status.entities.iter().filter_map(|(name, entity)| {
        let failing = (entity.health == "failing").then(|| entity.line.clone());
        Some(unhealthy("entity", name, failing.or_else(|| entity.problem.clone())?))
    });
    let services =
        services.iter().filter(|service| !matches!(service.status.as_str(), "passing" | "warning"));
    let services = services.map(|service| {
        let name = service.definition.id.as_ref().unwrap_or(&service.definition.name);
        unhealthy("service", name, format!("{}: {}", service.status, service.reason))
    });
    let files = status.files.iter().filter(|(_, file)| file.state != "success");
    let files = files.map(|(path, file)| unhealthy("file", path, file.reason.clone()));
    let is_failed = |state: &str| matches!(state, "failed" | "refused");
    let members = status.members.iter().filter(|(_, member)| is_failed(&member.state));
    let members = members.map(|(name, member)| unhealthy("ensemble", name, member.reason.clone()));
    let configuration = &status.configuration;
    let refused = configuration.refused.iter().chain(&configuration.refused_definitions);
    let refused = refused.map(|reason| unhealthy("configuration", &status.node, format!("cannot {reason}")));
    let unwritable = status.unwritable.iter().map(|reason| format!("cannot {reason}"));
    let disk = unwritable.chain(status.refused.clone()).map(|reason| unhealthy("disk", &status.node, reason));
    provision.chain(disk).chain(refused).chain(entities).chain(services).chain(members).chain(files).collect()
}
