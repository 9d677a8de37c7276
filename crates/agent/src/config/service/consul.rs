//! Service definitions in Consul's form: name, id, port, address, tags, meta, and checks by script, arguments, HTTP, TCP
//! or TTL. Other keys are ignored; a check of an unsupported kind is refused, because a service that is never checked
//! would appear healthy.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bellwether_api::v1::service::definition::{CheckDefinition, ServiceDefinition};
use serde::Deserialize;

/// Unsupported kinds of checks.
const UNKNOWN_KINDS: [&str; 7] =
    ["grpc", "docker_container_id", "alias_node", "alias_service", "os_service", "udp", "h2ping"];

#[derive(Debug, Deserialize)]
struct File {
    service: Option<Service>,
    #[serde(default)]
    services: Vec<Service>,
}

#[derive(Debug, Deserialize)]
struct Service {
    name: String,
    #[serde(alias = "ID")]
    id: Option<String>,
    port: Option<u16>,
    address: Option<String>,
    #[serde(default)]
    tags: BTreeSet<String>,
    #[serde(default)]
    meta: BTreeMap<String, String>,
    check: Option<serde_json::Value>,
    #[serde(default)]
    checks: Vec<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Check {
    name: Option<String>,
    id: Option<String>,
    script: Option<String>,
    args: Option<Vec<String>>,
    http: Option<String>,
    tcp: Option<String>,
    ttl: Option<String>,
    interval: Option<String>,
    timeout: Option<String>,
    success_before_passing: Option<u32>,
    failures_before_critical: Option<u32>,
}

/// The services of one file.
///
/// # Errors
/// The reason, with the service and the check.
pub(in crate::config) fn read(text: &str) -> Result<Vec<ServiceDefinition>, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let services = file.service.into_iter().chain(file.services);
    let services = services.map(definition).collect::<Result<Vec<_>, _>>()?;
    if services.is_empty() {
        return Err("there is no \"service\" and no \"services\" in it".to_owned());
    }
    Ok(services)
}

fn definition(service: Service) -> Result<ServiceDefinition, String> {
    let name = service.name;
    let address = match service.address.as_deref() {
        None | Some("") => None,
        Some(text) => {
            let read: Result<IpAddr, _> = text.parse();
            Some(read.map_err(|_| format!("service {name}: address {text:?} is not an IP address"))?)
        }
    };
    let mut checks = Vec::new();
    for (at, check) in service.check.into_iter().chain(service.checks).enumerate() {
        checks.push(of_check(check, at + 1).map_err(|reason| format!("service {name}: {reason}"))?);
    }
    Ok(ServiceDefinition {
        name,
        id: service.id,
        port: service.port.filter(|port| *port != 0),
        address,
        interface: None,
        tags: service.tags,
        meta: service.meta,
        entity: None,
        needs: Vec::new(),
        checks,
    })
}

fn of_check(check: serde_json::Value, number: usize) -> Result<CheckDefinition, String> {
    if let Some(kind) = UNKNOWN_KINDS.iter().find(|kind| check.get(**kind).is_some()) {
        return Err(format!("a check by {kind} is not supported; use args, http, tcp or ttl"));
    }
    let check: Check = serde_json::from_value(check).map_err(|error| format!("check {number}: {error}"))?;
    // In Consul, exit code 0 is passing, 1 a warning, and anything else critical.
    let exec = match (check.script, check.args) {
        (Some(script), None) => Some(vec!["sh".to_owned(), "-c".to_owned(), script]),
        (None, args) => args,
        (Some(_), Some(_)) => return Err("a check has a script or args, not both".to_owned()),
    };
    let warning_exit = exec.as_ref().map(|_| 1);
    let given = check.id.or(check.name).map(|name| label(&name)).filter(|name| !name.is_empty());
    let rise = check.success_before_passing.map(|more| more.saturating_add(1));
    let fall = check.failures_before_critical.map(|more| more.saturating_add(1));
    Ok(CheckDefinition {
        name: given.unwrap_or_else(|| format!("check-{number}")),
        exec,
        warning_exit,
        http: check.http,
        status: None,
        tcp: check.tcp,
        ttl: check.ttl,
        interval: check.interval,
        timeout: check.timeout,
        // One result decides, unless the file has other limits.
        fall: Some(fall.unwrap_or(1)),
        rise: Some(rise.unwrap_or(1)),
    })
}

/// A check's name as a DNS label: characters that a label may not have become dashes.
fn label(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let dashed: String = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    dashed.chars().take(63).collect::<String>().trim_matches('-').to_owned()
}
