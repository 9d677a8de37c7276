//! Services that this machine offers: definitions of the configuration, of programs, and of files in Consul's form, checked.

pub(super) mod consul;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;

use bellwether_api::v1::service::definition::{CheckDefinition, ServiceDefinition};
use bellwether_core::catalogue::need::Need;
use bellwether_core::local::health::Hysteresis;
use bellwether_core::records::registrations::{MAX_WORD_BYTES, MAX_WORDS};
use bellwether_core::records::report::MAX_LACKS;
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::name::{CheckName, EntityName, InstanceName, InterfaceName, ServiceName, Tag};
use bellwether_core::words::time::Span;

use super::command::{CommandDefaults, command};
use super::recipe::{CheckRecipe, DEFAULT_CHECK_TIMEOUT, DEFAULT_INTERVAL, Probe};
use super::validate::{authority, http};

/// Most checks of one service.
const MAX_CHECKS: usize = 16;

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

/// What is wrong with a definition: which field, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionError {
    /// The field, like `check.port.interval`.
    pub field: String,
    /// Why not.
    pub reason: String,
}

fn wrong(field: &str, reason: impl Display) -> DefinitionError {
    DefinitionError { field: field.to_owned(), reason: reason.to_string() }
}

fn read<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, DefinitionError> {
    text.parse().map_err(|error| wrong(field, error))
}

impl Service {
    /// Makes a service of its definition.
    ///
    /// # Errors
    /// [`DefinitionError`] naming the field.
    pub fn of(definition: &ServiceDefinition) -> Result<Self, DefinitionError> {
        let name: ServiceName = read("name", &definition.name)?;
        let id = read("id", definition.id.as_deref().unwrap_or(&definition.name))?;
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
        let tags = definition.tags.iter().map(|tag| read("tags", tag)).collect::<Result<_, _>>()?;
        let entity = definition.entity.as_deref().map(|entity| read("entity", entity)).transpose()?;
        let (at, port) = (at(definition)?, definition.port);
        let (checks, listening) = checks(&definition.checks)?;
        let (needs, meta) = (needs(&name, &definition.needs)?, definition.meta.clone());
        Ok(Self { name, id, at, port, tags, meta, entity, needs, checks, listening })
    }
}

fn at(definition: &ServiceDefinition) -> Result<ServiceAddress, DefinitionError> {
    match (definition.address, &definition.interface) {
        (None, None) => Ok(ServiceAddress::Machine),
        (None, Some(interface)) => Ok(ServiceAddress::Interface(read("interface", interface)?)),
        (Some(address), None) => {
            let interface = read("address", GIVEN)?;
            Ok(ServiceAddress::Address(Addresses(BTreeMap::from([(interface, vec![address])]))))
        }
        (Some(_), Some(_)) => Err(wrong("interface", "say an address or an interface, not both")),
    }
}

fn needs(own: &ServiceName, texts: &[String]) -> Result<Vec<Need>, DefinitionError> {
    if texts.len() > MAX_LACKS {
        return Err(wrong("needs", format!("there are more than {MAX_LACKS}")));
    }
    let needs = texts.iter().map(|text| read::<Need>("needs", text)).collect::<Result<Vec<_>, _>>()?;
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
        let field = |field: &str| format!("check.{}.{field}", definition.name);
        let name: CheckName = read("check", &definition.name)?;
        if asked.contains_key(&name) || heard.contains_key(&name) {
            return Err(wrong(&format!("check.{name}"), "there are two checks of that name"));
        }
        match &definition.ttl {
            Some(ttl) => {
                if probe(definition)?.is_some() {
                    return Err(wrong(&field("ttl"), "ask one thing: exec, http, tcp or ttl"));
                }
                heard.insert(name, span(&field("ttl"), Some(ttl), Span::ZERO)?);
            }
            None => {
                let probe = probe(definition)?;
                let probe = probe.ok_or_else(|| {
                    wrong(&format!("check.{name}"), "say what to ask: exec, http, tcp or ttl")
                })?;
                asked.insert(name, asking(definition, probe)?);
            }
        }
    }
    Ok((asked, heard))
}

fn asking(definition: &CheckDefinition, probe: Probe) -> Result<CheckRecipe, DefinitionError> {
    let field = |field: &str| format!("check.{}.{field}", definition.name);
    let limits = Hysteresis::default();
    let hysteresis = Hysteresis {
        fall: definition.fall.unwrap_or(limits.fall),
        rise: definition.rise.unwrap_or(limits.rise),
    };
    for (key, number) in [("fall", hysteresis.fall), ("rise", hysteresis.rise)] {
        if !(1..=100).contains(&number) {
            return Err(wrong(&field(key), format!("{number} is not from 1 to 100")));
        }
    }
    Ok(CheckRecipe {
        probe,
        interval: span(&field("interval"), definition.interval.as_deref(), DEFAULT_INTERVAL)?,
        timeout: span(&field("timeout"), definition.timeout.as_deref(), DEFAULT_CHECK_TIMEOUT)?,
        hysteresis,
    })
}

fn probe(check: &CheckDefinition) -> Result<Option<Probe>, DefinitionError> {
    let field = |field: &str| format!("check.{}.{field}", check.name);
    if check.status.is_some() && check.http.is_none() {
        return Err(wrong(&field("status"), "only an http check has a status"));
    }
    if check.status.is_some_and(|status| !(100..600).contains(&status)) {
        return Err(wrong(&field("status"), "it is not from 100 to 599"));
    }
    if check.warning_exit.is_some() && check.exec.is_none() {
        return Err(wrong(&field("warning_exit"), "only an exec check has an exit code"));
    }
    if check.warning_exit.is_some_and(|code| !(1..256).contains(&code)) {
        return Err(wrong(&field("warning_exit"), "it is not from 1 to 255"));
    }
    let setting = CommandDefaults { workdir: "/".into(), env: BTreeMap::new() };
    Ok(match (&check.exec, &check.http, &check.tcp) {
        (Some(argv), None, None) => {
            let command = command(argv, &setting).map_err(|reason| wrong(&field("exec"), reason))?;
            Some(Probe::Exec { command, warning: check.warning_exit })
        }
        (None, Some(url), None) => {
            Some(http(url, check.status).map_err(|reason| wrong(&field("http"), reason))?)
        }
        (None, None, Some(address)) => {
            let authority = authority(address).map_err(|reason| wrong(&field("tcp"), reason))?;
            Some(Probe::Tcp { authority })
        }
        (None, None, None) => None,
        (_, _, _) => {
            return Err(wrong(&format!("check.{}", check.name), "ask one thing: exec, http, tcp or ttl"));
        }
    })
}

/// A length of time, longer than nothing.
fn span(field: &str, text: Option<&str>, otherwise: Span) -> Result<Span, DefinitionError> {
    let span = text.map_or(Ok(otherwise), |text| read(field, text))?;
    if span == Span::ZERO { Err(wrong(field, "it must be longer than nothing")) } else { Ok(span) }
}

#[cfg(test)]
mod tests;
