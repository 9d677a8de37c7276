//! Checks every value of the files and builds the configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bellwether_api::v1::registrations::addresses;
use bellwether_core::words::name::{ActionName, CheckName, EntityName, NodeName};
use bellwether_core::words::time::Span;
use bellwether_rt::config_error::ConfigError;

use super::command::{CommandDefaults, command, directory, setting};
use super::config_path::ConfigPath;
use super::error::DefinitionError;
use super::file::{self, ConfigTables};
use super::kinds;
use super::probe::CheckFields;
use super::recipe::{
    ActionRecipe, CheckRecipe, DEFAULT_STOP_TIMEOUT, DEFAULT_TIMEOUT, DEFAULT_VALIDATE_EVERY, ProcessRecipe,
    Recipe,
};
use super::runner::{runners, validation};
use super::settings::{BootCommands, Config, DEFAULT_DATA_DIR, OnExit};
use crate::limits::DEFAULT_CGROUP;

/// Builds the configuration from all files; `main` is named if a section is missing.
pub(super) fn check(main: &Path, whole: ConfigTables) -> Result<Config, ConfigError> {
    let missing = ConfigPath::new(main, "agent".to_owned());
    let (path, agent) = whole.agent.ok_or_else(|| missing.refuse("the section is missing"))?;
    let place = ConfigPath::new(&path, "agent".to_owned());
    let name = agent.name.ok_or_else(|| place.at("name").refuse("set the name of this node"))?;
    let mut actions = BTreeMap::new();
    for (name, (path, action)) in whole.actions {
        let place = ConfigPath::new(&path, format!("action.{name}"));
        actions.insert(place.read(&name)?, kinds::action(&place, &action)?);
    }
    let cgroup = agent.cgroup.unwrap_or_else(|| PathBuf::from(DEFAULT_CGROUP));
    let cgroup = directory(&cgroup).map_err(|reason| place.at("cgroup").refuse(reason))?;
    let mut managed = BTreeMap::new();
    let entities = recipes(whole.entities, &actions, &cgroup, &mut managed)?;
    let probes = super::data_store::all(whole.probes)?;
    let namespace = place.at("namespace").read(agent.namespace.as_deref().unwrap_or("default"))?;
    let name = node_name(&place.at("name"), &name)?;
    let names = whole.dns.as_ref().map(|(path, dns)| {
        super::dns::names(&ConfigPath::new(path, "dns".to_owned()), dns, &namespace, &name)
    });
    let http = whole.http.as_ref().map(|(path, http)| {
        super::http::http(&ConfigPath::new(path, "http".to_owned()), http, &namespace, &name)
    });
    let data_dir = data_dir(&place.at("data_dir"), agent.data_dir)?;
    let ensembles = whole.ensembles.map(|(path, table)| {
        super::ensembles::ensembles(&ConfigPath::new(&path, "ensembles".to_owned()), table, &data_dir)
    });
    let service_dir = agent
        .service_dir
        .as_deref()
        .map(|path| directory(path).map_err(|reason| place.at("service_dir").refuse(reason)));
    let addresses = agent
        .addresses
        .as_ref()
        .map(|shape| addresses(shape).map_err(|error| place.at("addresses").refuse(error.reason)));
    let defined = super::services::all(whole.services, service_dir.transpose()?.as_deref())?;
    let files = super::files::all(&whole.files, &entities, &mut managed)?;
    Ok(Config {
        names: names.transpose()?,
        files,
        http: http.transpose()?,
        services: defined.services,
        refused_definitions: defined.refused,
        addresses: addresses.transpose()?,
        name,
        namespace,
        servers: servers(&place.at("server"), agent.server.as_ref())?,
        ensembles: ensembles.transpose()?,
        data_dir,
        allows_tasks: allows_tasks(&place.at("tasks"), agent.tasks.as_deref())?,
        hosts_logical: hosts_logical(&place, agent.hosts_logical, agent.tasks.as_deref())?,
        boot_commands: boot_commands(&place, agent.reboot_command, agent.poweroff_command)?,
        services_on_exit: on_exit(&place.at("services_on_exit"), agent.services_on_exit.as_deref())?,
        entities,
        actions,
        probes,
    })
}

/// The recipes of entities; `managed` gets the files that they write.
fn recipes(
    tables: BTreeMap<String, (PathBuf, file::EntityTable)>,
    actions: &BTreeMap<ActionName, ActionRecipe>,
    cgroup: &Path,
    managed: &mut BTreeMap<PathBuf, String>,
) -> Result<BTreeMap<EntityName, Recipe>, ConfigError> {
    let mut entities = BTreeMap::new();
    for (name, (path, entity)) in tables {
        let place = ConfigPath::new(&path, format!("entity.{name}"));
        let limits = kinds::limits(&place, &entity, cgroup)?;
        let recipe = Recipe { limits, ..recipe(&place, &entity, actions)? };
        kinds::apart(&place, &recipe.kind, managed)?;
        entities.insert(place.read(&name)?, recipe);
    }
    Ok(entities)
}

/// The node's name, in lower case.
fn node_name(place: &ConfigPath<'_>, text: &str) -> Result<NodeName, ConfigError> {
    let name: NodeName = place.read(&text.to_ascii_lowercase())?;
    if name.as_str() != text {
        tracing::info!(%name, "the node name is used in lower case");
    }
    Ok(name)
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

fn allows_tasks(place: &ConfigPath, text: Option<&str>) -> Result<bool, ConfigError> {
    match text {
        None | Some("deny") => Ok(false),
        Some("allow") => Ok(true),
        Some(other) => Err(place.refuse(format!("{other:?} is neither \"allow\" nor \"deny\""))),
    }
}

/// A logical node does nothing but tasks.
fn hosts_logical(place: &ConfigPath, hosts: bool, tasks: Option<&str>) -> Result<bool, ConfigError> {
    if hosts && !allows_tasks(&place.at("tasks"), tasks)? {
        let reason = "this node would host logical nodes, which run tasks: set tasks = \"allow\" too";
        return Err(place.at("hosts_logical").refuse(reason));
    }
    Ok(hosts)
}

fn boot_commands(
    place: &ConfigPath,
    reboot: Option<Vec<String>>,
    power_off: Option<Vec<String>>,
) -> Result<BootCommands, ConfigError> {
    let defaults = BootCommands::default();
    let command = |key: &str, words: Option<Vec<String>>, default: Vec<String>| match words {
        None => Ok(default),
        Some(words) if words.first().is_some_and(|program| !program.is_empty()) => Ok(words),
        Some(_) => Err(place.at(key).refuse("write program and arguments, like [\"systemctl\", \"reboot\"]")),
    };
    Ok(BootCommands {
        reboot: command("reboot_command", reboot, defaults.reboot)?,
        power_off: command("poweroff_command", power_off, defaults.power_off)?,
    })
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
/// Why it is not valid.
pub(crate) fn server(text: &str) -> Result<String, String> {
    let uri: http::Uri = text.parse().map_err(|error| format!("{text:?} is not a valid address: {error}"))?;
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
        if checks.insert(name, check_recipe(&place, each, &setting)?).is_some() {
            return Err(place.refuse("there are two checks of that name"));
        }
    }
    let process = entity.process.as_ref();
    Ok(Recipe {
        kind: kinds::kind(place, entity, actions, &setting)?,
        needs: super::needs::needs(&place.at("needs"), &entity.needs)?,
        // Files whose reload failed were restored, and must be placed again.
        from_start: entity.from_start || !entity.file.is_empty(),
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
        user: kinds::user(&place.at("user"), entity.user.as_deref())?,
        limits: None,
        process: process.map(|process| supervised(&place.at("process"), process, &setting)).transpose()?,
        checks,
    })
}

/// Interval of revalidation: `0` for never, and never if there is no validation.
fn validate_every(place: &ConfigPath, entity: &file::EntityTable) -> Result<Option<Span>, ConfigError> {
    let every = match &entity.validate_every {
        Some(_) if entity.validate.is_none() => return Err(place.refuse("the entity has no validate")),
        Some(text) => place.read(text)?,
        None => DEFAULT_VALIDATE_EVERY,
    };
    Ok((every > Span::ZERO && entity.validate.is_some()).then_some(every))
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
    let drain_time = match &process.drain_time {
        Some(text) => place.at("drain_time").read(text)?,
        None => Span::ZERO,
    };
    let user = kinds::user(&place.at("user"), process.user.as_deref())?;
    Ok(ProcessRecipe { command: argv, user, stop_timeout, drain_time })
}

fn check_recipe(
    place: &ConfigPath,
    check: &file::CheckTable,
    defaults: &CommandDefaults,
) -> Result<CheckRecipe, ConfigError> {
    let fields = CheckFields {
        exec: check.exec.as_deref(),
        warning_exit: None,
        http: check.http.as_deref(),
        status: check.status.or(check.http.as_ref().map(|_| 200)),
        tcp: check.tcp.as_deref(),
        interval: check.interval.as_deref(),
        timeout: check.timeout.as_deref(),
        fall: check.fall,
        rise: check.rise,
        kinds: "exec, http or tcp",
    };
    let refused = |error: DefinitionError| match error.field.as_str() {
        "" => place.refuse(error.reason),
        field => place.at(field).refuse(error.reason),
    };
    fields.recipe(defaults).map_err(refused)
}
