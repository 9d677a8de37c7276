//! Parts of an entity as written: the runner of each step, and its parameters.

use std::path::{Path, PathBuf};

use super::command::{CommandDefaults, FORM, command, directory, from_table, strings, variable};
use super::recipe::{Command, Runner, ScriptDirectory, SystemdUnit, UnitAction};

/// Longest unit name that systemd accepts, in bytes.
const MAX_UNIT_BYTES: usize = 255;

/// Reads one step, or an array of them.
pub(super) fn runners(value: &toml::Value, setting: &CommandDefaults) -> Result<Vec<Runner>, String> {
    match value {
        toml::Value::Array(items) if items.iter().all(toml::Value::is_str) => {
            Ok(vec![Runner::Exec(command(&strings(items)?, setting)?)])
        }
        toml::Value::Array(items) => items.iter().map(|item| one(item, setting)).collect(),
        toml::Value::Table(_) => Ok(vec![one(value, setting)?]),
        toml::Value::String(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => Err(FORM.to_owned()),
    }
}

/// Reads the steps of a validation, where a string is a directory.
pub(super) fn validation(value: &toml::Value, setting: &CommandDefaults) -> Result<Vec<Runner>, String> {
    match value {
        toml::Value::String(path) => Ok(vec![Runner::Directory(executables(path, setting.clone())?)]),
        toml::Value::Array(_)
        | toml::Value::Table(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => runners(value, setting),
    }
}

fn one(value: &toml::Value, setting: &CommandDefaults) -> Result<Runner, String> {
    match value {
        toml::Value::Array(items) => Ok(Runner::Exec(command(&strings(items)?, setting)?)),
        toml::Value::Table(table) if table.contains_key("argv") => {
            from_table(table, setting).map(Runner::Exec)
        }
        toml::Value::Table(table) if table.contains_key("puppet") => {
            puppet(table, setting.clone()).map(Runner::Puppet)
        }
        toml::Value::Table(table) if table.contains_key("systemd") => {
            systemd(table, setting.clone()).map(Runner::Systemd)
        }
        toml::Value::Table(table) if table.contains_key("directory") => {
            listed(table, setting.clone()).map(Runner::Directory)
        }
        toml::Value::Table(_) => {
            Err("the table names no runner: argv, puppet, systemd or directory".to_owned())
        }
        toml::Value::String(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_) => Err(FORM.to_owned()),
    }
}

fn puppet(table: &toml::Table, mut setting: CommandDefaults) -> Result<Command, String> {
    let mut argv = ["puppet", "apply", "--detailed-exitcodes", "--color=false"].map(str::to_owned).to_vec();
    let (mut manifest, mut options) = (String::new(), Vec::new());
    let (mut modules, mut hiera, mut noop) = (None, None, None);
    for (key, value) in table {
        match (key.as_str(), value) {
            ("puppet", toml::Value::String(path)) => manifest = from_root(path)?,
            ("modulepath", toml::Value::String(path)) => modules = Some(module_dirs(std::slice::from_ref(path))?),
            ("modulepath", toml::Value::Array(items)) => modules = Some(module_dirs(&strings(items)?)?),
            ("hiera_config", toml::Value::String(path)) => hiera = Some(from_root(path)?),
            ("noop", toml::Value::Boolean(wanted)) => noop = wanted.then_some(()),
            ("options", toml::Value::Array(items)) => options = strings(items)?,
            ("puppet" | "modulepath" | "hiera_config" | "noop" | "options", _) => {
                return Err(format!("{key} has the wrong type"));
            }
            _ => environment(key, value, &mut setting).map_err(|error| {
                error.unwrap_or_else(|| {
                    format!(
                        "unknown key {key:?}; puppet has modulepath, hiera_config, noop, options, workdir and env"
                    )
                })
            })?,
        }
    }
    argv.extend(modules.map(|dirs| format!("--modulepath={dirs}")));
    argv.extend(hiera.map(|path| format!("--hiera_config={path}")));
    argv.extend(noop.map(|()| "--noop".to_owned()));
    argv.extend(options);
    argv.push(manifest);
    command(&argv, &setting)
}

fn module_dirs(dirs: &[String]) -> Result<String, String> {
    if let Some(dir) = dirs.iter().find(|dir| dir.contains(':')) {
        return Err(format!("{dir:?} contains a colon; write several directories as an array"));
    }
    let dirs: Vec<String> = dirs.iter().map(|dir| from_root(dir)).collect::<Result<_, _>>()?;
    Ok(dirs.join(":"))
}

fn systemd(table: &toml::Table, mut setting: CommandDefaults) -> Result<SystemdUnit, String> {
    let (mut name, mut action) = (String::new(), None);
    for (key, value) in table {
        match (key.as_str(), value) {
            ("systemd", toml::Value::String(text)) => name = unit(text)?,
            ("action", toml::Value::String(word)) => {
                let found = UnitAction::ALL.into_iter().find(|action| action.as_str() == word);
                action = Some(found.ok_or_else(|| format!("{word:?} is not one of {}", actions()))?);
            }
            ("systemd" | "action", _) => return Err(format!("{key} has the wrong type")),
            ("env", _) => environment(key, value, &mut setting).map_err(Option::unwrap_or_default)?,
            _ => return Err(format!("unknown key {key:?}; systemd has action and env")),
        }
    }
    let action = action.ok_or_else(|| format!("set action for {name}: one of {}", actions()))?;
    Ok(SystemdUnit { name, action, env: setting.env })
}

fn actions() -> String {
    UnitAction::ALL.map(UnitAction::as_str).join(", ")
}

/// Accepts the characters that systemd allows, and no name that would be read as a flag.
fn unit(text: &str) -> Result<String, String> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    if text.is_empty() || text.len() > MAX_UNIT_BYTES || text.starts_with('-') || !text.bytes().all(fine) {
        return Err(format!("{text:?} is not a valid unit name"));
    }
    Ok(text.to_owned())
}

fn listed(table: &toml::Table, mut setting: CommandDefaults) -> Result<ScriptDirectory, String> {
    let mut path = "";
    for (key, value) in table {
        match (key.as_str(), value) {
            ("directory", toml::Value::String(text)) => path = text,
            ("directory", _) => return Err("directory has the wrong type".to_owned()),
            _ => environment(key, value, &mut setting).map_err(|error| {
                error.unwrap_or_else(|| format!("unknown key {key:?}; a directory has workdir and env"))
            })?,
        }
    }
    executables(path, setting)
}

fn executables(path: &str, setting: CommandDefaults) -> Result<ScriptDirectory, String> {
    Ok(ScriptDirectory { path: directory(Path::new(path))?, workdir: setting.workdir, env: setting.env })
}

/// Reads the keys that every runner has: `workdir` and `env`. For another key, the error has no reason.
fn environment(key: &str, value: &toml::Value, setting: &mut CommandDefaults) -> Result<(), Option<String>> {
    match (key, value) {
        ("workdir", toml::Value::String(path)) => setting.workdir = directory(Path::new(path))?,
        ("env", toml::Value::Table(table)) => {
            for (name, value) in table {
                let value = value.as_str().ok_or_else(|| format!("env.{name} is not a string"))?;
                setting.env.insert(variable(name)?, value.to_owned());
            }
        }
        ("workdir" | "env", _) => return Err(Some(format!("{key} has the wrong type"))),
        _ => return Err(None),
    }
    Ok(())
}

/// An absolute path, as an argument.
fn from_root(text: &str) -> Result<String, String> {
    let path: PathBuf = directory(Path::new(text))?;
    path.to_str().map(str::to_owned).ok_or_else(|| format!("{text:?} is not UTF-8"))
}
