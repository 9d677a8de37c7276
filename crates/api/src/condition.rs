//! Conditions of tasks: expressions of the template language that are true or false, over the variables of a task's templates. Bounded as
//! templates are.

use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Enumerator, Object, Serde, ValueKind};
use minijinja::{Error, ErrorKind, Value};
use serde_json::{Map, Value as Json};

use crate::template::{MAX_TAG_BYTES, environment, plain};

/// The variables that templates and conditions of tasks have.
pub const TASK_VARIABLES: [&str; 8] =
    ["params", "node", "facts", "outputs", "run", "workflow", "stage", "task"];

/// What the language itself has besides variables.
const FUNCTIONS: [&str; 3] = ["range", "dict", "namespace"];

/// The words by which a condition asks whether something is there.
const ASKS: [&str; 2] = ["defined", "default"];

/// Checks the length and the syntax of a condition, and that it reads no variable that there is not.
///
/// # Errors
/// One line with the position and the reason.
pub fn check_condition(text: &str) -> Result<(), String> {
    if text.len() > MAX_TAG_BYTES {
        return Err(format!("longer than {MAX_TAG_BYTES} bytes"));
    }
    let worded = |error| worded(text, &error);
    let environment = environment().map_err(worded)?;
    let expression = environment.compile_expression(text).map_err(worded)?;
    let mut unknown: Vec<String> = expression.undeclared_variables(false).into_iter().collect();
    unknown.retain(|name| !TASK_VARIABLES.contains(&name.as_str()) && !FUNCTIONS.contains(&name.as_str()));
    unknown.sort();
    match unknown.first() {
        Some(name) => {
            let at = position(text, text.find(name.as_str()).unwrap_or_default());
            Err(format!("{at}: `{name}` is not known; the variables are {}", TASK_VARIABLES.join(", ")))
        }
        None => Ok(()),
    }
}

/// Whether a condition holds. What it reads must be there, unless it asks with `is defined` or `default`: what is missing would equal
/// nothing, and a slip would go unnoticed.
///
/// # Errors
/// One line with the position and the reason.
pub fn holds(text: &str, variables: Map<String, Json>) -> Result<bool, String> {
    check_condition(text)?;
    let worded = |error| worded(text, &error);
    let environment = environment().map_err(worded)?;
    let expression = environment.compile_expression(text).map_err(worded)?;
    let missing = Missing::default();
    let found = expression.eval(value(String::new(), Json::Object(variables), &missing));
    let missing = missing.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(path) = missing.filter(|path| !asks(text, path)) {
        let name = path.rsplit('.').next().unwrap_or_default();
        let at = position(text, text.find(name).unwrap_or_default());
        return Err(format!("{at}: `{path}` is undefined; ask with `is defined`, or give a `default(…)`"));
    }
    let found = found.map_err(worded)?;
    if found.kind() == ValueKind::Bool {
        return Ok(found.is_true());
    }
    Err(format!("line 1, column 1: it is {} and not true or false", found.kind()))
}

/// Whether a condition asks if things are there: by those words, or by `'KEY' in params`.
fn asks(text: &str, path: &str) -> bool {
    let root = path.split('.').next().unwrap_or_default();
    ASKS.iter().any(|word| text.contains(word)) || text.contains(&format!(" in {root}"))
}

/// The first thing that was looked up and is not there.
#[derive(Debug, Clone, Default)]
struct Missing(Arc<Mutex<Option<String>>>);

/// An object that notes what it does not have.
#[derive(Debug)]
struct Noting {
    path: String,
    members: Map<String, Json>,
    missing: Missing,
}

impl Object for Noting {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        if let Some(member) = self.members.get(name) {
            return Some(value(path, member.clone(), &self.missing));
        }
        // Names that the language itself has are looked up here first.
        if !self.path.is_empty() {
            self.missing.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(path);
        }
        None
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.members.keys().map(|name| Value::from(name.as_str())).collect())
    }
}

fn value(path: String, json: Json, missing: &Missing) -> Value {
    if let Json::Object(members) = json {
        return Value::from_object(Noting { path, members, missing: missing.clone() });
    }
    Value::from(Serde(&json))
}

/// An error with its position.
fn worded(text: &str, error: &Error) -> String {
    let at = position(text, error.range().map_or(0, |range| range.start));
    let kind = error.kind();
    let reason = if kind == ErrorKind::UndefinedError {
        "what is read there is undefined; ask with `is defined`, or give a `default(…)`".to_owned()
    } else if kind == ErrorKind::OutOfFuel {
        "it takes too many steps".to_owned()
    } else {
        plain(error)
    };
    format!("{at}: {reason}")
}

/// The line and the column of a byte, both from 1.
fn position(text: &str, byte: usize) -> String {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    format!("line {}, column {}", before.matches('\n').count() + 1, line.chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(text: &str) -> Result<bool, String> {
        let variables = json!({
            "params": {"role": "db", "size": 3, "on": true, "a/b": 1, "tags": ["x", "y"]},
            "outputs": {"probe-it": {"ok": true}, "quiet": {}},
            "node": {"name": "web-1"}, "facts": {"cpus": 4},
        });
        let Json::Object(variables) = variables else { unreachable!("it is an object") };
        holds(text, variables)
    }

    #[test]
    fn a_condition_is_an_expression_over_the_variables_of_the_task() {
        for text in [
            "params.role == 'db' and facts.cpus >= params.size",
            "outputs['probe-it'].ok",
            "not (node.name in ['web-2', 'web-3'])",
            "'x' in params.tags and params.tags | length == 2",
            "params['a/b'] == 1",
            "outputs.quiet.found is not defined",
            "outputs.quiet.found | default(true)",
            "'probe-it' in outputs and 'other' not in outputs",
            "params.on or params.missing",
            "\n  true\n",
        ] {
            assert_eq!(asked(text), Ok(true), "{text}");
        }
        assert_eq!(asked("params.role == 'web'"), Ok(false));
    }

    #[test]
    fn what_is_missing_or_neither_true_nor_false_is_an_error_with_its_position() {
        for (text, reason) in [
            ("params.rol == 'db'", "line 1, column 8: `params.rol` is undefined"),
            ("node.name == 'x' or\n outputs['prob'] != 1", "line 2, column 11: `outputs.prob` is undefined"),
            ("outputs.prob.ok", "`outputs.prob` is undefined"),
            ("params.role", "it is string and not true or false"),
            ("params.size + 'x' == 1", "line 1, column 1: invalid operation"),
            ("range(10000000) | list | length > 1", "line 1"),
        ] {
            let said = asked(text).unwrap_err();
            assert!(said.contains(reason), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_no_expression_or_reads_what_no_task_has_is_refused() {
        for (text, reason) in [
            ("params.role ==", "line 1, column 13: syntax error"),
            ("", "syntax error"),
            ("true\nand )", "line 2, column 5: syntax error"),
            ("{{ params.on }}", "line 1"),
            (
                "node.name == 'a' and param.role == 'db'",
                "line 1, column 22: `param` is not known; the variables are params,",
            ),
        ] {
            let said = check_condition(text).unwrap_err();
            assert!(said.contains(reason), "{text:?}: {said}");
        }
        assert!(check_condition(&"(".repeat(MAX_TAG_BYTES + 1)).unwrap_err().contains("longer than"));
        assert_eq!(check_condition("params.x in range(3)"), Ok(()));
    }
}
