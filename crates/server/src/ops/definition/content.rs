//! The content of tasks, stages and workflows: what a request may say, and its canonical form.

use std::collections::BTreeSet;
use std::fmt;

use bellwether_api::condition::check_condition;
use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::secret::SecretMark;
use bellwether_api::v1::workflow::{Script, StageSpec, TaskFile, TaskSpec, TaskStep, WorkflowSpec};
use bellwether_core::access::{Claim, NamePattern, Rights};
use bellwether_core::records::definition::DefinitionId;
use bellwether_core::words::name::{
    Namespace, ParamKey, ProfileName, StageName, StepName, TaskName, WorkflowName,
};
use bellwether_core::words::time::Span;
use bellwether_core::world::fleet::Fleet;
use serde_json::{Map, Value};

use crate::ops::params::schema::ParamSchema;
use crate::ops::{OpError, grant};

/// Longest description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 1_024;

/// Most steps of a task.
const MAX_STEPS: usize = 32;

/// Longest template of a step, in bytes.
const MAX_TEMPLATE_BYTES: usize = 64 << 10;

/// Most words of an interpreter.
const MAX_INTERPRETER: usize = 16;

/// Most params of a task, tasks of a stage, and stages of a workflow.
const MAX_NAMES: usize = 64;

/// Most profiles of a stage.
const MAX_PROFILES: usize = 32;

/// Most claims of a task.
const MAX_CLAIMS: usize = 32;

/// Longest timeout of a task.
const MAX_TIMEOUT: Span = Span::from_secs(7 * 24 * 60 * 60);

/// Most attempts of a task by itself.
const MAX_ATTEMPTS: u32 = 10;

/// Valid content of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionContent(Value);

impl DefinitionContent {
    /// Whether it is this one, as it is stored.
    pub(in crate::ops) fn is(&self, stored: Option<&String>) -> bool {
        stored.is_some_and(|stored| *stored == self.canonical())
    }

    /// Its canonical form: JSON without spaces, with the members of objects in the order of their names.
    pub(super) fn canonical(&self) -> String {
        self.0.to_string()
    }
}

/// The content of a definition; `None` if there is none of this name.
pub(in crate::ops) fn content_of<T: serde::de::DeserializeOwned>(
    fleet: &Fleet,
    id: &DefinitionId,
) -> Result<Option<T>, ShapeError> {
    let Some(kept) = fleet.definitions.get(id) else { return Ok(None) };
    serde_json::from_str(&kept.value.content)
        .map(Some)
        .map_err(|error| ShapeError::at(&id.to_string(), format!("cannot read what is stored: {error}")))
}

/// Checks a task.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn task(spec: &TaskSpec) -> Result<DefinitionContent, ShapeError> {
    described(&spec.description)?;
    if let Some(condition) = &spec.condition {
        check_condition(condition).map_err(|reason| ShapeError::at("if", reason))?;
    }
    between("steps", spec.steps.len(), 1, MAX_STEPS)?;
    let mut names = BTreeSet::new();
    for (index, step) in spec.steps.iter().enumerate() {
        self::step(step).map_err(|error| error.within(&format!("steps[{index}]")))?;
        if !names.insert(&step.name) {
            let reason = format!("another step has the name {:?} too", step.name);
            return Err(ShapeError::at(&format!("steps[{index}].name"), reason));
        }
    }
    between("params", spec.params.len(), 0, MAX_NAMES)?;
    for (key, schema) in &spec.params {
        let place = format!("params.{key}");
        read::<ParamKey>(&place, key)?;
        param(schema).map_err(|error| error.within(&place))?;
    }
    claims(spec)?;
    if let Some(text) = &spec.timeout {
        let timeout: Span = read("timeout", text)?;
        if timeout == Span::ZERO || timeout > MAX_TIMEOUT {
            return Err(ShapeError::at("timeout", format!("must be more than 0s and at most {MAX_TIMEOUT}")));
        }
    }
    if let Some(retry) = &spec.retry {
        if !spec.idempotent {
            let reason = "a task that may not run again is begun once; mark it as idempotent if it may";
            return Err(ShapeError::at("retry", reason));
        }
        if !(1..=MAX_ATTEMPTS).contains(&retry.attempts) {
            return Err(ShapeError::at("retry.attempts", format!("must be 1 to {MAX_ATTEMPTS}")));
        }
    }
    content(spec)
}

/// Checks the schema of a param, and its default.
fn param(schema: &Map<String, Value>) -> Result<(), ShapeError> {
    let checked = ParamSchema::read(&Value::Object(schema.clone()).to_string())?;
    let Some(default) = schema.get("default") else { return Ok(()) };
    if SecretMark::of(default).is_some() {
        return Err(ShapeError::at("default", "must not be a secret; set it on a node or in a profile"));
    }
    checked.check(default).map_err(|reason| ShapeError::at("default", format!("does not fit: {reason}")))
}

/// The claims that the jobs of a task have besides what their node, run and cluster imply.
fn claims(spec: &TaskSpec) -> Result<Vec<Claim>, ShapeError> {
    between("claims", spec.claims.len(), 0, MAX_CLAIMS)?;
    let read = |(index, text): (usize, &String)| {
        Claim::parse(text).map_err(|error| ShapeError::at(&format!("claims[{index}]"), error))
    };
    spec.claims.iter().enumerate().map(read).collect()
}

/// Refuses a task whose claims its author does not have, in its namespace.
///
/// # Errors
/// [`OpError::Ungrantable`] with the claim; [`OpError::Invalid`].
pub fn grantable(rights: &Rights, namespace: &Namespace, spec: &TaskSpec) -> Result<(), OpError> {
    let here = NamePattern::parse(namespace.as_str()).map_err(|error| ShapeError::at("namespace", error))?;
    let claims: Vec<Claim> = claims(spec)?.iter().filter_map(|claim| claim.only_in(&here)).collect();
    grant::grantable(rights, &claims, "write a task with claims")
}

/// Checks a stage.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn stage(spec: &StageSpec) -> Result<DefinitionContent, ShapeError> {
    described(&spec.description)?;
    listed::<TaskName>("tasks", &spec.tasks, (1, MAX_NAMES))?;
    listed::<ProfileName>("profiles", &spec.profiles, (0, MAX_PROFILES))?;
    content(spec)
}

/// Checks a workflow of this name. Two that undo each other are valid: a run that undoes another has no rollback.
///
/// # Errors
/// [`ShapeError`] naming the field.
pub fn workflow(name: &str, spec: &WorkflowSpec) -> Result<DefinitionContent, ShapeError> {
    described(&spec.description)?;
    listed::<StageName>("stages", &spec.stages, (1, MAX_NAMES))?;
    if let Some(rollback) = &spec.rollback {
        read::<WorkflowName>("rollback", rollback)?;
        if rollback == name {
            let reason = format!("workflow {name} cannot undo its own runs; name the one that does");
            return Err(ShapeError::at("rollback", reason));
        }
    }
    content(spec)
}

fn content(spec: &impl serde::Serialize) -> Result<DefinitionContent, ShapeError> {
    serde_json::to_value(spec).map(DefinitionContent).map_err(|error| ShapeError::at("the body", error))
}

fn described(description: &str) -> Result<(), ShapeError> {
    if description.len() <= MAX_DESCRIPTION_BYTES {
        return Ok(());
    }
    let reason = format!("{} bytes; at most {MAX_DESCRIPTION_BYTES} are allowed", description.len());
    Err(ShapeError::at("description", reason))
}

fn between(place: &str, count: usize, least: usize, most: usize) -> Result<(), ShapeError> {
    if (least..=most).contains(&count) {
        return Ok(());
    }
    let allowed = if least == 0 { format!("at most {most}") } else { format!("{least} to {most}") };
    Err(ShapeError::at(place, format!("there are {count}; {allowed} are allowed")))
}

/// Checks a list of names, of which none may be there twice.
fn listed<T>(place: &str, names: &[String], (least, most): (usize, usize)) -> Result<(), ShapeError>
where
    T: std::str::FromStr<Err: fmt::Display> + Ord,
{
    between(place, names.len(), least, most)?;
    let mut seen = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        let place = format!("{place}[{index}]");
        if !seen.insert(read::<T>(&place, name)?) {
            return Err(ShapeError::at(&place, format!("{name} is in the list twice")));
        }
    }
    Ok(())
}

fn step(step: &TaskStep) -> Result<(), ShapeError> {
    read::<StepName>("name", &step.name)?;
    match (&step.script, &step.file) {
        (Some(script), None) => self::script(script).map_err(|error| error.within("script")),
        (None, Some(file)) => self::file(file).map_err(|error| error.within("file")),
        (None, None) | (Some(_), Some(_)) => {
            Err(ShapeError::at("script", "a step has either a script or a file"))
        }
    }
}

fn script(script: &Script) -> Result<(), ShapeError> {
    template(&script.text)?;
    between("interpreter", script.interpreter.len(), 0, MAX_INTERPRETER)?;
    match script.interpreter.iter().position(|word| word.is_empty() || word.contains('\0')) {
        Some(index) => Err(ShapeError::at(&format!("interpreter[{index}]"), "must not be empty")),
        None => Ok(()),
    }
}

fn file(file: &TaskFile) -> Result<(), ShapeError> {
    template(&file.text)?;
    let path = std::path::Path::new(&file.path);
    let is_plain = path
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::RootDir));
    if file.path.is_empty() || file.path.ends_with('/') || file.path.contains('\0') || !is_plain {
        let reason = "must be the path of a file without `.` and `..`, absolute or in the job's directory";
        return Err(ShapeError::at("path", reason));
    }
    let Some(mode) = &file.mode else { return Ok(()) };
    match u32::from_str_radix(mode, 8) {
        Ok(bits) if bits <= 0o7777 && mode.len() <= 5 => Ok(()),
        Ok(_) | Err(_) => Err(ShapeError::at("mode", "must be octal, such as 0640")),
    }
}

/// Checks a template: its length, and its syntax.
fn template(text: &str) -> Result<(), ShapeError> {
    if text.len() > MAX_TEMPLATE_BYTES {
        let reason = format!("{} bytes; at most {MAX_TEMPLATE_BYTES} are allowed", text.len());
        return Err(ShapeError::at("text", reason));
    }
    if text.contains('\0') {
        return Err(ShapeError::at("text", "must not contain a zero byte"));
    }
    bellwether_api::template::check("template", text).map_err(|reason| ShapeError::at("text", reason))
}
