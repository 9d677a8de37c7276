//! Checks every value of the files and makes the configuration of them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bellwether_api::v1::registrations::addresses;
use bellwether_core::local::health::Hysteresis;
use bellwether_core::words::name::{ActionName, CheckName};
use bellwether_core::words::time::Span;

use super::command::{CommandDefaults, command, directory, variable};
use super::file::{self, ConfigTables};
use super::recipe::{
    ActionRecipe, CheckRecipe, DEFAULT_CHECK_TIMEOUT, DEFAULT_INTERVAL, DEFAULT_STOP_TIMEOUT,
    DEFAULT_TIMEOUT, DEFAULT_VALIDATE_EVERY, Probe, ProcessRecipe, Recipe,
};
use super::runner::{runners, validation};
use super::{Config, ConfigError, DEFAULT_DATA_DIR, OnExit, kinds};

/// Where a value stands.
#[derive(Debug, Clone)]
pub(super) struct ConfigPath<'a> {
    path: &'a Path,
    key: String,
}

impl<'a> ConfigPath<'a> {
    pub(super) fn new(path: &'a Path, key: String) -> Self {
        Self { path, key }
    }

    pub(super) fn at(&self, key: &str) -> ConfigPath<'a> {
        ConfigPath { path: self.path, key: format!("{}.{key}", self.key) }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn refuse(&self, reason: impl Display) -> ConfigError {
        let (path, key) = (self.path.to_owned(), self.key.clone());
        ConfigError::Value { path, key, reason: reason.to_string() }
    }

    pub(super) fn read<T: FromStr<Err: Display>>(&self, text: &str) -> Result<T, ConfigError> {
        text.parse().map_err(|error| self.refuse(error))
    }

    /// A length of time, longer than nothing.
    pub(super) fn span(&self, text: Option<&str>, otherwise: Span) -> Result<Span, ConfigError> {
        let span = text.map_or(Ok(otherwise), |text| self.read(text))?;
        if span == Span::ZERO { Err(self.refuse("it must be longer than nothing")) } else { Ok(span) }
    }
}

/// Makes the configuration of all files; `main` is named when a section is missing.
pub(super) fn check(main: &Path, whole: ConfigTables) -> Result<Config, ConfigError> {
    let missing = ConfigPath { path: main, key: "agent".to_owned() };
    let (path, agent) = whole.agent.ok_or_else(|| missing.refuse("the section is missing"))?;
    let place = ConfigPath { path: &path, key: "agent".to_owned() };
    let name = agent.name.ok_or_else(|| place.at("name").refuse("give this node a name"))?;
    let mut actions = BTreeMap::new();
    for (name, (path, action)) in whole.actions {
        let place = ConfigPath { path: &path, key: format!("action.{name}") };
        actions.insert(place.read(&name)?, kinds::action(&place, &action)?);
    }
    let mut entities = BTreeMap::new();
    let mut managed = BTreeMap::new();
    for (name, (path, entity)) in whole.entities {
        let place = ConfigPath { path: &path, key: format!("entity.{name}") };
        let recipe = recipe(&place, &entity, &actions)?;
        kinds::apart(&place, &recipe.kind, &mut managed)?;
        entities.insert(place.read(&name)?, recipe);
    }
    let namespace = place.at("namespace").read(agent.namespace.as_deref().unwrap_or("default"))?;
    let name = place.at("name").read(&name)?;
    let names = whole.dns.as_ref().map(|(path, dns)| {
        super::dns::names(&ConfigPath { path, key: "dns".to_owned() }, dns, (&namespace, &name))
    });
    let http = whole.http.as_ref().map(|(path, http)| {
        super::http::http(&ConfigPath { path, key: "http".to_owned() }, http, (&namespace, &name))
    });
    let service_dir = agent
        .service_dir
        .as_deref()
        .map(|path| directory(path).map_err(|reason| place.at("service_dir").refuse(reason)));
    let addresses = agent
        .addresses
        .as_ref()
        .map(|shape| addresses(shape).map_err(|error| place.at("addresses").refuse(error.reason)));
    let files = super::files::all(&whole.files, &entities, &mut managed)?;
    Ok(Config {
        names: names.transpose()?,
        files,
        http: http.transpose()?,
        services: super::services::all(whole.services, service_dir.transpose()?.as_deref())?,
        addresses: addresses.transpose()?,
        name,
        namespace,
        servers: servers(&place.at("server"), agent.server.as_ref())?,
        data_dir: data_dir(&place.at("data_dir"), agent.data_dir)?,
        services_on_exit: on_exit(&place.at("services_on_exit"), agent.services_on_exit.as_deref())?,
        entities,
        actions,
    })
}

fn data_dir(place: &ConfigPath, path: Option<PathBuf>) -> Result<PathBuf, ConfigError> {
    directory(&path.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA_DIR))).map_err(|reason| place.refuse(reason))
}

fn on_exit(place: &ConfigPath, text: Option<&str>) -> Result<OnExit, ConfigError> {
    match text {
        None | Some("leave") => Ok(OnExit::Leave),
        Some("stop") => Ok(OnExit::Stop),
        Some(other) => Err(place.refuse(format!("{other:?} is neither \"leave\" nor \"stop\""))),
    }
}

fn servers(place: &ConfigPath, value: Option<&toml::Value>) -> Result<Vec<String>, ConfigError> {
    let form = || place.refuse("write an address like \"https://host:7420\", or a list of them");
    let items = match value {
        Some(toml::Value::String(one)) => vec![one.as_str()],
        Some(toml::Value::Array(items)) => {
            items.iter().map(toml::Value::as_str).collect::<Option<Vec<_>>>().ok_or_else(form)?
        }
        Some(_) | None => return Err(form()),
    };
    if items.is_empty() {
        return Err(form());
    }
    items.into_iter().map(|item| server(item).map_err(|reason| place.refuse(reason))).collect()
}

/// A server's address without a trailing slash.
///
/// # Errors
/// Why it is none.
pub(crate) fn server(text: &str) -> Result<String, String> {
    let uri: http::Uri = text.parse().map_err(|error| format!("{text:?} is no address: {error}"))?;
    if uri.scheme_str() != Some("https") {
        return Err(format!("{text:?} does not begin with https://"));
    }
    if uri.host().is_none_or(str::is_empty) || !matches!(uri.path(), "" | "/") {
        return Err(format!("{text:?} is not https://host:port"));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn recipe(
    place: &ConfigPath,
    entity: &file::EntityTable,
    actions: &BTreeMap<ActionName, ActionRecipe>,
) -> Result<Recipe, ConfigError> {
    let setting = setting(place, &entity.env, entity.workdir.as_deref(), None)?;
    let part = |key: &str, value: Option<&toml::Value>| {
        let read = value.map_or(Ok(Vec::new()), |value| runners(value, &setting));
        read.map_err(|reason| place.at(key).refuse(reason))
    };
    let validation = entity.validate.as_ref().map_or(Ok(Vec::new()), |value| validation(value, &setting));
    let mut checks = BTreeMap::new();
    for each in &entity.check {
        let place = place.at(&format!("check.{}", each.name));
        let name: CheckName = place.read(&each.name)?;
        if checks.insert(name, probing(&place, each, &setting)?).is_some() {
            return Err(place.refuse("there are two checks of that name"));
        }
    }
    let process = entity.process.as_ref();
    Ok(Recipe {
        kind: kinds::kind(place, entity, actions, &setting)?,
        needs: super::needs::needs(&place.at("needs"), &entity.needs)?,
        follows: entity
            .follows
            .iter()
            .map(|service| place.at("follows").read(service))
            .collect::<Result<_, _>>()?,
        statics: part("static", entity.r#static.as_ref())?,
        dynamics: part("dynamic", entity.dynamic.as_ref())?,
        validation: validation.map_err(|reason| place.at("validate").refuse(reason))?,
        validate_every: validate_every(&place.at("validate_every"), entity)?,
        timeout: place.at("timeout").span(entity.timeout.as_deref(), DEFAULT_TIMEOUT)?,
        process: process.map(|process| supervised(&place.at("process"), process, &setting)).transpose()?,
        checks,
    })
}

/// How often a validation is repeated: `0` for never, and never if there is nothing to repeat.
fn validate_every(place: &ConfigPath, entity: &file::EntityTable) -> Result<Option<Span>, ConfigError> {
    let every = match &entity.validate_every {
        Some(_) if entity.validate.is_none() => return Err(place.refuse("there is no validate to repeat")),
        Some(text) => place.read(text)?,
        None => DEFAULT_VALIDATE_EVERY,
    };
    Ok((every > Span::ZERO && entity.validate.is_some()).then_some(every))
}

pub(super) fn setting(
    place: &ConfigPath,
    env: &BTreeMap<String, String>,
    workdir: Option<&Path>,
    outer: Option<&CommandDefaults>,
) -> Result<CommandDefaults, ConfigError> {
    let mut setting = outer
        .cloned()
        .unwrap_or_else(|| CommandDefaults { workdir: PathBuf::from("/"), env: BTreeMap::new() });
    for (name, value) in env {
        let name = variable(name).map_err(|reason| place.at("env").refuse(reason))?;
        if value.contains('\0') {
            return Err(place.at("env").refuse(format!("{name} has a zero byte")));
        }
        setting.env.insert(name, value.clone());
    }
    if let Some(workdir) = workdir {
        setting.workdir = directory(workdir).map_err(|reason| place.at("workdir").refuse(reason))?;
    }
    Ok(setting)
}

fn supervised(
    place: &ConfigPath,
    process: &file::ProcessTable,
    outer: &CommandDefaults,
) -> Result<ProcessRecipe, ConfigError> {
    let setting = setting(place, &process.env, process.workdir.as_deref(), Some(outer))?;
    let argv = command(&process.argv, &setting).map_err(|reason| place.at("argv").refuse(reason))?;
    let stop_timeout =
        place.at("stop_timeout").span(process.stop_timeout.as_deref(), DEFAULT_STOP_TIMEOUT)?;
    Ok(ProcessRecipe { command: argv, stop_timeout })
}

fn probing(
    place: &ConfigPath,
    check: &file::CheckTable,
    setting: &CommandDefaults,
) -> Result<CheckRecipe, ConfigError> {
    let probe = match (&check.exec, &check.http, &check.tcp) {
        (Some(argv), None, None) => {
            let command = command(argv, setting).map_err(|reason| place.at("exec").refuse(reason))?;
            Probe::Exec { command, warning: None }
        }
        (None, Some(url), None) => {
            let status = Some(check.status.unwrap_or(200));
            http(url, status).map_err(|reason| place.at("http").refuse(reason))?
        }
        (None, None, Some(address)) => {
            let authority = authority(address).map_err(|reason| place.at("tcp").refuse(reason))?;
            Probe::Tcp { authority }
        }
        (None, None, None) => return Err(place.refuse("say what to ask: exec, http or tcp")),
        (_, _, _) => return Err(place.refuse("ask one thing: exec, http or tcp")),
    };
    if check.status.is_some() && check.http.is_none() {
        return Err(place.at("status").refuse("only an http check has a status"));
    }
    if check.status.is_some_and(|status| !(100..600).contains(&status)) {
        return Err(place.at("status").refuse("it is not from 100 to 599"));
    }
    let limits = Hysteresis::default();
    let hysteresis =
        Hysteresis { fall: check.fall.unwrap_or(limits.fall), rise: check.rise.unwrap_or(limits.rise) };
    for (key, number) in [("fall", hysteresis.fall), ("rise", hysteresis.rise)] {
        if !(1..=100).contains(&number) {
            return Err(place.at(key).refuse(format!("{number} is not from 1 to 100")));
        }
    }
    Ok(CheckRecipe {
        probe,
        interval: place.at("interval").span(check.interval.as_deref(), DEFAULT_INTERVAL)?,
        timeout: place.at("timeout").span(check.timeout.as_deref(), DEFAULT_CHECK_TIMEOUT)?,
        hysteresis,
    })
}

/// What an HTTP check asks.
pub(super) fn http(url: &str, status: Option<u16>) -> Result<Probe, String> {
    let uri: http::Uri = url.parse().map_err(|error| format!("{url:?} is no address: {error}"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(
                "an http check asks a service on this machine without TLS; for https use an exec check \
                        with a program that knows which certificate to trust"
                    .to_owned(),
            );
        }
        Some(_) | None => return Err(format!("{url:?} does not begin with http://")),
    }
    let host = uri.host().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| format!("{url:?} names no host"))?;
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
    Ok(Probe::Http { authority: format!("{host}:{}", uri.port_u16().unwrap_or(80)), path, status })
}

/// A text that is `host:port`.
pub(super) fn authority(text: &str) -> Result<String, String> {
    let parsed = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let port = parsed.and_then(|(_, port)| port.parse::<u16>().ok());
    match port {
        Some(port) if port > 0 => Ok(text.to_owned()),
        Some(_) | None => Err(format!("{text:?} is not host:port")),
    }
}
