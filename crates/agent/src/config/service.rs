//! Services of this node: checks of definitions in the configuration, from programs, and in Consul's form.

pub(super) mod consul;

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::v1::service::definition::{CheckDefinition, ServiceDefinition};
use bellwether_core::catalogue::need::Need;
use bellwether_core::records::registrations::{MAX_WORD_BYTES, MAX_WORDS};
use bellwether_core::records::report::MAX_WAITS_FOR;
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::{CheckName, EntityName, InstanceName, InterfaceName, ServiceName, Tag};
use bellwether_core::words::time::Span;

pub use super::error::DefinitionError;
use super::error::{parse, wrong};
use super::probe::{CheckFields, no_defaults, span};
use super::recipe::CheckRecipe;

/// Most checks of one service.
const MAX_CHECKS: usize = 16;

/// The kinds of check of a service.
const KINDS: &str = "exec, http, tcp or ttl";

/// The interface of an address that is given without one.
const GIVEN: &str = "given";

/// A service of this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The service's name.
    pub name: ServiceName,
    /// The instance among those of this node.
    pub id: InstanceName,
    /// Its address.
    pub at: ServiceAddress,
    /// Its port.
    pub port: Option<u16>,
    /// Its tags, by which clients select instances.
    pub tags: BTreeSet<Tag>,
    /// Further data for clients.
    pub meta: BTreeMap<String, String>,
    /// The entity it belongs to.
    pub entity: Option<EntityName>,
    /// Services that must be there before it is functional.
    pub needs: Vec<Need>,
    /// Checks that the agent probes.
    pub checks: BTreeMap<CheckName, CheckRecipe>,
    /// TTL checks, with the time for which an update is valid.
    pub ttl_checks: BTreeMap<CheckName, Span>,
}

/// The address of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceAddress {
    /// All addresses of the node.
    Machine,
    /// The node's addresses on this interface.
    Interface(InterfaceName),
    /// These addresses.
    Address(Addresses),
}

impl Service {
    /// Checks a definition.
    ///
    /// # Errors
    /// [`DefinitionError`] naming the field.
    pub fn of(definition: &ServiceDefinition) -> Result<Self, DefinitionError> {
        let name: ServiceName = parse("name", &definition.name)?;
        let id = parse("id", definition.id.as_deref().unwrap_or(&definition.name))?;
        if definition.port == Some(0) {
            return Err(wrong("port", "not from 1 to 65535"));
        }
        if definition.tags.len() > MAX_WORDS || definition.meta.len() > MAX_WORDS {
            let field = if definition.tags.len() > MAX_WORDS { "tags" } else { "meta" };
            return Err(wrong(field, format!("more than {MAX_WORDS} entries")));
        }
        let long = |text: &String| text.len() > MAX_WORD_BYTES;
        if definition.meta.iter().any(|(key, value)| long(key) || long(value)) {
            return Err(wrong("meta", format!("a key or value is longer than {MAX_WORD_BYTES} bytes")));
        }
        let tags = definition.tags.iter().map(|tag| parse("tags", tag)).collect::<Result<_, _>>()?;
        let entity = definition.entity.as_deref().map(|entity| parse("entity", entity)).transpose()?;
        let (at, port) = (at(definition)?, definition.port);
        let (checks, ttl_checks) = checks(&definition.checks)?;
        let (needs, meta) = (needs(&name, &definition.needs)?, definition.meta.clone());
        Ok(Self { name, id, at, port, tags, meta, entity, needs, checks, ttl_checks })
    }
}

fn at(definition: &ServiceDefinition) -> Result<ServiceAddress, DefinitionError> {
    match (definition.address, &definition.interface) {
        (None, None) => Ok(ServiceAddress::Machine),
        (None, Some(interface)) => Ok(ServiceAddress::Interface(parse("interface", interface)?)),
        (Some(address), None) => {
            let interface = parse("address", GIVEN)?;
            Ok(ServiceAddress::Address(Addresses(BTreeMap::from([(interface, vec![address])]))))
        }
        (Some(_), Some(_)) => Err(wrong("interface", "set address or interface, not both")),
    }
}

fn needs(own: &ServiceName, texts: &[String]) -> Result<Vec<Need>, DefinitionError> {
    if texts.len() > MAX_WAITS_FOR {
        return Err(wrong("needs", format!("more than {MAX_WAITS_FOR} needs")));
    }
    let needs = texts.iter().map(|text| parse::<Need>("needs", text)).collect::<Result<Vec<_>, _>>()?;
    if needs.iter().any(|need| need.service == *own) {
        return Err(wrong("needs", "a service cannot need itself"));
    }
    Ok(needs)
}

type Checks = (BTreeMap<CheckName, CheckRecipe>, BTreeMap<CheckName, Span>);

fn checks(definitions: &[CheckDefinition]) -> Result<Checks, DefinitionError> {
    if definitions.len() > MAX_CHECKS {
        return Err(wrong("check", format!("more than {MAX_CHECKS} checks")));
    }
    let (mut probed, mut ttl_checks) = (BTreeMap::new(), BTreeMap::new());
    for definition in definitions {
        let name: CheckName = parse("check", &definition.name)?;
        if probed.contains_key(&name) || ttl_checks.contains_key(&name) {
            return Err(wrong(&format!("check.{name}"), "there are two checks of that name"));
        }
        let fields = fields(definition);
        let within = |error: DefinitionError| error.within(&format!("check.{name}"));
        match &definition.ttl {
            Some(ttl) => {
                if fields.probe(&no_defaults()).map_err(within)?.is_some() {
                    return Err(wrong(&format!("check.{name}.ttl"), format!("name only one of {KINDS}")));
                }
                ttl_checks.insert(name.clone(), span("ttl", Some(ttl), Span::ZERO).map_err(within)?);
            }
            None => {
                probed.insert(name.clone(), fields.recipe(&no_defaults()).map_err(within)?);
            }
        }
    }
    Ok((probed, ttl_checks))
}

fn fields(definition: &CheckDefinition) -> CheckFields<'_> {
    CheckFields {
        exec: definition.exec.as_deref(),
        warning_exit: definition.warning_exit,
        http: definition.http.as_deref(),
        status: definition.status,
        tcp: definition.tcp.as_deref(),
        interval: definition.interval.as_deref(),
        timeout: definition.timeout.as_deref(),
        fall: definition.fall,
        rise: definition.rise,
        kinds: KINDS,
    }
}

#[cfg(test)]
mod tests;
