//! Checks the kind of an entity's recipe: versions, files of a profile, or runs of an action.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use bellwether_core::words::name::ActionName;
use bellwether_rt::config_error::ConfigError;

use super::command::{CommandDefaults, command, directory, setting};
use super::config_path::ConfigPath;
use super::file;
use super::recipe::{ActionRecipe, DEFAULT_TIMEOUT, ManagedFile, RecipeKind, Template};
use crate::limits::{self, ResourceLimits};
use crate::users::UserName;

/// Most files of one entity.
const MAX_FILES: usize = 256;

/// The kind of an entity's recipe.
pub(super) fn kind(
    place: &ConfigPath,
    entity: &file::EntityTable,
    actions: &BTreeMap<ActionName, ActionRecipe>,
    setting: &CommandDefaults,
) -> Result<RecipeKind, ConfigError> {
    match (&entity.action, entity.file.as_slice()) {
        (None, []) => Ok(RecipeKind::Versions),
        (None, files) if files.len() > MAX_FILES => {
            Err(place.at("file").refuse(format!("more than {MAX_FILES} files")))
        }
        (None, files) => {
            let files = files.iter().map(|file| managed(&place.at("file"), file, setting));
            Ok(RecipeKind::Files(files.collect::<Result<_, _>>()?))
        }
        (Some(name), _) => {
            let place = place.at("action");
            if has_parts(entity) {
                return Err(place.refuse("an entity with an action has no other keys"));
            }
            let name: ActionName = place.read(name)?;
            let missing = || {
                let known: Vec<String> = actions.keys().map(ToString::to_string).collect();
                place.refuse(format!("there is no [action.{name}]; there are: {}", known.join(", ")))
            };
            let action = actions.get(&name).cloned().ok_or_else(missing)?;
            Ok(RecipeKind::Action(name, action))
        }
    }
}

fn has_parts(entity: &file::EntityTable) -> bool {
    let parts = [&entity.r#static, &entity.dynamic, &entity.validate].into_iter().any(Option::is_some);
    let more = entity.process.is_some() || !entity.check.is_empty() || !entity.file.is_empty();
    parts
        || more
        || entity.from_start
        || entity.validate_every.is_some()
        || entity.timeout.is_some()
        || entity.workdir.is_some()
        || entity.user.is_some()
        || entity.memory_max.is_some()
        || entity.cpu_quota.is_some()
        || entity.nofile.is_some()
        || !entity.env.is_empty()
}

fn managed(
    place: &ConfigPath,
    file: &file::ManagedFileTable,
    setting: &CommandDefaults,
) -> Result<ManagedFile, ConfigError> {
    let place = place.at(&file.path.display().to_string());
    let path = plain(&file.path).map_err(|reason| place.at("path").refuse(reason))?;
    let template = template(&place, file.template.as_deref(), file.text.as_deref())?
        .ok_or_else(|| place.refuse("name one of template or text"))?;
    let mode = file.mode.as_deref().map(mode).transpose();
    let one = |key: &str, argv: Option<&Vec<String>>| {
        let read = argv.map(|argv| command(argv, setting)).transpose();
        read.map_err(|reason| place.at(key).refuse(reason))
    };
    Ok(ManagedFile {
        path,
        template,
        mode: mode.map_err(|reason| place.at("mode").refuse(reason))?,
        owner: user(&place.at("owner"), file.owner.as_deref())?,
        check: one("check", file.check.as_ref())?,
        reload: one("reload", file.reload.as_ref())?,
    })
}

/// The source of a template, if one is given.
pub(super) fn template(
    place: &ConfigPath,
    file: Option<&Path>,
    text: Option<&str>,
) -> Result<Option<Template>, ConfigError> {
    match (file, text) {
        (Some(path), None) => {
            let path = directory(path).map_err(|reason| place.at("template").refuse(reason))?;
            Ok(Some(Template::File(path)))
        }
        (None, Some(text)) => Ok(Some(Template::Text(text.to_owned()))),
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(place.refuse("name only one of template or text")),
    }
}

/// Accepts the absolute path of a file, without `.` and `..`.
pub(super) fn plain(path: &Path) -> Result<PathBuf, String> {
    let path = directory(path)?;
    let detour = path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir));
    let named = path.file_name().and_then(|name| name.to_str()).is_some();
    if detour || !named || path.as_os_str().to_str().is_none_or(|text| text.ends_with('/')) {
        return Err(format!("{path:?} is not the path of a file without .. in it"));
    }
    Ok(path)
}

pub(super) fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o7777);
    mode.ok_or_else(|| format!("{text:?} is not a valid mode: write it in octal, like \"0640\""))
}

/// The name or the number of a user, if one is given.
pub(super) fn user(place: &ConfigPath, text: Option<&str>) -> Result<Option<UserName>, ConfigError> {
    text.map(UserName::parse).transpose().map_err(|reason| place.refuse(reason))
}

/// The limits of an entity; `None` if it has none. Its runs have cgroups in `cgroup`.
pub(super) fn limits(
    place: &ConfigPath,
    entity: &file::EntityTable,
    cgroup: &Path,
) -> Result<Option<ResourceLimits>, ConfigError> {
    let refused = |key: &'static str| move |reason: String| place.at(key).refuse(reason);
    let memory = entity.memory_max.as_deref().map(limits::memory).transpose();
    let quota = entity.cpu_quota.as_deref().map(limits::quota).transpose();
    let limits = ResourceLimits {
        memory_max_bytes: memory.map_err(refused("memory_max"))?,
        cpu_quota_percent: quota.map_err(refused("cpu_quota"))?,
        nofile: entity.nofile.map(limits::open_files).transpose().map_err(refused("nofile"))?,
        cgroup: cgroup.to_owned(),
    };
    if let Some(reason) = limits.quota_is_refused() {
        return Err(place.at("cpu_quota").refuse(format!("cannot limit processor time: {reason}")));
    }
    let is_limited =
        limits.memory_max_bytes.is_some() || limits.cpu_quota_percent.is_some() || limits.nofile.is_some();
    Ok(is_limited.then_some(limits))
}

/// Refuses a recipe with a file that is written already.
pub(super) fn apart(
    place: &ConfigPath,
    kind: &RecipeKind,
    known: &mut BTreeMap<PathBuf, String>,
) -> Result<(), ConfigError> {
    let RecipeKind::Files(files) = kind else { return Ok(()) };
    for file in files {
        let place = place.at("file").at(&file.path.display().to_string());
        alone(&place, &file.path, known)?;
    }
    Ok(())
}

/// Refuses a file that is written already.
pub(super) fn alone(
    place: &ConfigPath,
    path: &Path,
    known: &mut BTreeMap<PathBuf, String>,
) -> Result<(), ConfigError> {
    match known.insert(path.to_owned(), place.key().to_owned()) {
        Some(other) => Err(place.refuse(format!("{other} writes this file already"))),
        None => Ok(()),
    }
}

/// An action of this node.
pub(super) fn action(place: &ConfigPath, action: &file::ActionTable) -> Result<ActionRecipe, ConfigError> {
    let setting = setting(place, &action.env, action.workdir.as_deref(), None)?;
    let command = command(&action.run, &setting).map_err(|reason| place.at("run").refuse(reason))?;
    let timeout = place.at("timeout").span(action.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    Ok(ActionRecipe { command, timeout, idempotent: action.idempotent })
}
