//! Commands as written: an array of strings, or a table with `argv`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::config_path::ConfigPath;
use super::error::ConfigError;
use super::recipe::Command;

/// What commands have unless they say otherwise.
#[derive(Debug, Clone)]
pub(super) struct CommandDefaults {
    pub(super) workdir: PathBuf,
    pub(super) env: BTreeMap<String, String>,
}

/// How a part of an entity is written.
pub(super) const FORM: &str = "write an array of strings like [\"/usr/bin/install\", \"-D\"], a table that names a runner, or an array of those; there is no shell";

/// A command with these arguments.
pub(super) fn command(argv: &[String], setting: &CommandDefaults) -> Result<Command, String> {
    let program = argv.first().ok_or("a command needs a program")?;
    if program.is_empty() {
        return Err("the program's name is empty".to_owned());
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err("an argument has a zero byte".to_owned());
    }
    if program.contains('/') && !Path::new(program).is_absolute() {
        return Err(format!("{program:?} is a relative path; write it from / on, or a bare name"));
    }
    Ok(Command { argv: argv.to_vec(), workdir: setting.workdir.clone(), env: setting.env.clone() })
}

/// The command of a table with `argv`.
pub(super) fn from_table(table: &toml::Table, setting: &CommandDefaults) -> Result<Command, String> {
    let mut setting = setting.clone();
    let mut argv = None;
    for (key, value) in table {
        match (key.as_str(), value) {
            ("argv", toml::Value::Array(items)) => argv = Some(strings(items)?),
            ("workdir", toml::Value::String(path)) => setting.workdir = directory(Path::new(path))?,
            ("env", toml::Value::Table(table)) => {
                for (name, value) in table {
                    let value = value.as_str().ok_or_else(|| format!("env.{name} is not a string"))?;
                    setting.env.insert(variable(name)?, value.to_owned());
                }
            }
            ("argv" | "workdir" | "env", _) => return Err(format!("{key} has the wrong type")),
            _ => return Err(format!("unknown key {key:?}; a command has argv, workdir and env")),
        }
    }
    command(&argv.ok_or("the command has no argv")?, &setting)
}

/// A directory from / on.
pub(super) fn directory(path: &Path) -> Result<PathBuf, String> {
    if path.is_absolute() { Ok(path.to_owned()) } else { Err(format!("{path:?} does not begin with /")) }
}

/// A variable's name: letters, digits and `_`, and none of ours.
pub(super) fn variable(name: &str) -> Result<String, String> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        Err(format!("{name:?} is no name for a variable: letters, digits and _"))
    } else if name.starts_with("BELLWETHER_") {
        Err(format!("{name} is set by the agent itself"))
    } else {
        Ok(name.to_owned())
    }
}

/// Strings, and nothing else.
pub(super) fn strings(items: &[toml::Value]) -> Result<Vec<String>, String> {
    items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(|| FORM.to_owned())).collect()
}

/// The defaults of the commands of one table, on top of those of the table around it.
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
