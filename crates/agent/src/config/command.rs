//! Commands as written: an array of strings, or a table with `argv`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bellwether_rt::config_error::ConfigError;

use super::config_path::ConfigPath;
use super::recipe::Command;

/// The defaults of the commands of a table.
#[derive(Debug, Clone)]
pub(super) struct CommandDefaults {
    pub(super) workdir: PathBuf,
    pub(super) env: BTreeMap<String, String>,
}

/// The forms of a part of an entity.
pub(super) const FORM: &str = "write an array of strings like [\"/usr/bin/install\", \"-D\"], a table that names a runner, or an array of those; there is no shell";

/// Reads a command from its arguments.
pub(super) fn command(argv: &[String], setting: &CommandDefaults) -> Result<Command, String> {
    let program = argv.first().ok_or("a command needs a program")?;
    if program.is_empty() {
        return Err("the program's name is empty".to_owned());
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err("an argument has a zero byte".to_owned());
    }
    if program.contains('/') && !Path::new(program).is_absolute() {
        return Err(format!("{program:?} is a relative path; write an absolute path or a bare name"));
    }
    Ok(Command {
        argv: argv.to_vec(),
        workdir: setting.workdir.clone(),
        env: setting.env.clone(),
        stdin: None,
    })
}

/// Reads a command from a table with `argv`.
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

/// Accepts an absolute path only.
pub(super) fn directory(path: &Path) -> Result<PathBuf, String> {
    if path.is_absolute() { Ok(path.to_owned()) } else { Err(format!("{path:?} does not begin with /")) }
}

/// Accepts the name of an environment variable: letters, digits and `_`, and none that the agent sets.
pub(super) fn variable(name: &str) -> Result<String, String> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        Err(format!("{name:?} is not a valid variable name: use letters, digits and _"))
    } else if name.starts_with("BELLWETHER_") {
        Err(format!("{name} is set by the agent itself"))
    } else {
        Ok(name.to_owned())
    }
}

/// Reads an array of strings.
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
