//! Services that this machine offers: definitions of the configuration, of programs, and of files in Consul's form, checked.

pub(super) mod consul;

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::v1::service::definition::{CheckDefinition, ServiceDefinition};
use bellwether_core::catalogue::need::Need;
use bellwether_core::records::registrations::{MAX_WORD_BYTES, MAX_WORDS};
use bellwether_core::records::report::MAX_LACKS;
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

/// The interface that an address is shown under when nobody says which has it.
const GIVEN: &str = "given";

/// A service that this machine offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The service.
    pub name: ServiceName,
    /// Which one among those of this machine.
    pub id: InstanceName,
    /// Where it is reached.
    pub at: ServiceAddress,
    /// Its port.
    pub port: Option<u16>,
    /// What its like is told apart by.
    pub tags: BTreeSet<Tag>,
    /// Whatever its users want to know besides.
    pub meta: BTreeMap<String, String>,
    /// The entity it belongs to.
    pub entity: Option<EntityName>,
    /// What must be there before it is said to serve.
    pub needs: Vec<Need>,
    /// What is asked all the time.
    pub checks: BTreeMap<CheckName, CheckRecipe>,
    /// What is listened for, and for how long it holds.
    pub listening: BTreeMap<CheckName, Span>,
}

/// Where a service is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceAddress {
    /// At the machine's own addresses.
    Machine,
    /// At the machine's addresses on this interface.
    Interface(InterfaceName),
    /// There.
    Address(Addresses),
}

impl Service {
    /// Makes a service of its definition.
    ///
    /// # Errors
    /// [`DefinitionError`] naming the field.
    pub fn of(definition: &ServiceDefinition) -> Result<Self, DefinitionError> {
        let name: ServiceName = parse("name", &definition.name)?;
        let id = parse("id", definition.id.as_deref().unwrap_or(&definition.name))?;
        if definition.port == Some(0) {
            return Err(wrong("port", "it is not from 1 to 65535"));
        }
        if definition.tags.len() > MAX_WORDS || definition.meta.len() > MAX_WORDS {
            let field = if definition.tags.len() > MAX_WORDS { "tags" } else { "meta" };
            return Err(wrong(field, format!("there are more than {MAX_WORDS}")));
        }
        let long = |text: &String| text.len() > MAX_WORD_BYTES;
        if definition.meta.iter().any(|(key, value)| long(key) || long(value)) {
            return Err(wrong("meta", format!("a key or value is longer than {MAX_WORD_BYTES} bytes")));
        }
        let tags = definition.tags.iter().map(|tag| parse("tags", tag)).collect::<Result<_, _>>()?;
        let entity = definition.entity.as_deref().map(|entity| parse("entity", entity)).transpose()?;
        let (at, port) = (at(definition)?, definition.port);
        let (checks, listening) = checks(&definition.checks)?;
        let (needs, meta) = (needs(&name, &definition.needs)?, definition.meta.clone());
        Ok(Self { name, id, at, port, tags, meta, entity, needs, checks, listening })
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
        (Some(_), Some(_)) => Err(wrong("interface", "say an address or an interface, not both")),
    }
}

fn needs(own: &ServiceName, texts: &[String]) -> Result<Vec<Need>, DefinitionError> {
    if texts.len() > MAX_LACKS {
        return Err(wrong("needs", format!("there are more than {MAX_LACKS}")));
    }
    let needs = texts.iter().map(|text| parse::<Need>("needs", text)).collect::<Result<Vec<_>, _>>()?;
    if needs.iter().any(|need| need.service == *own) {
        return Err(wrong("needs", "it would wait for itself"));
    }
    Ok(needs)
}

type Checks = (BTreeMap<CheckName, CheckRecipe>, BTreeMap<CheckName, Span>);

fn checks(definitions: &[CheckDefinition]) -> Result<Checks, DefinitionError> {
    if definitions.len() > MAX_CHECKS {
        return Err(wrong("check", format!("there are more than {MAX_CHECKS}")));
    }
    let (mut asked, mut heard) = (BTreeMap::new(), BTreeMap::new());
    for definition in definitions {
        let name: CheckName = parse("check", &definition.name)?;
        if asked.contains_key(&name) || heard.contains_key(&name) {
            return Err(wrong(&format!("check.{name}"), "there are two checks of that name"));
        }
        let fields = fields(definition);
        let within = |error: DefinitionError| error.within(&format!("check.{name}"));
        match &definition.ttl {
            Some(ttl) => {
                if fields.probe(&no_defaults()).map_err(within)?.is_some() {
                    return Err(wrong(&format!("check.{name}.ttl"), format!("name only one of {KINDS}")));
                }
                heard.insert(name.clone(), span("ttl", Some(ttl), Span::ZERO).map_err(within)?);
            }
            None => {
                asked.insert(name.clone(), fields.recipe(&no_defaults()).map_err(within)?);
            }
        }
    }
    Ok((asked, heard))
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
