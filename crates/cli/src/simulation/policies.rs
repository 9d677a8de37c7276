//! The policies to compare, read from flags and files into the API's shape. Owns how a policy is written on one line;
//! what a policy means is core's.

use std::path::Path;

use bellwether_api::v1::policy::Policy as Shape;
use bellwether_core::records::policy::Policy;
use serde_json::{Map, Value};

use crate::exit::Failure;
use crate::small_file::limited;
use crate::yaml_depth;

/// Most policies of one comparison: a plot of more cannot be read.
const MAX_POLICIES: usize = 12;

/// A policy with the name that reports show.
#[derive(Debug, Clone)]
pub(crate) struct NamedPolicy {
    pub(crate) name: String,
    pub(crate) policy: Policy,
}

/// Reads `batch=5% soak=60s`, with an optional name before a colon. An empty text is the default policy.
pub(crate) fn named(text: &str) -> Result<NamedPolicy, String> {
    let before_fields = text.split('=').next().unwrap_or_default();
    let (name, fields) = match before_fields.find(':') {
        Some(colon) => {
            (text.get(..colon).unwrap_or_default().trim(), text.get(colon + 1..).unwrap_or_default())
        }
        None => ("", text),
    };
    let mut table = Map::new();
    for field in fields.split_whitespace() {
        let Some((key, value)) = field.split_once('=') else {
            return Err(format!("{field:?} is not FIELD=VALUE; write it like batch=5%"));
        };
        let key = key.replace('-', "_");
        if table.insert(key.clone(), Value::String(value.to_owned())).is_some() {
            return Err(format!("{key} is given twice; write it once, like {key}={value}"));
        }
    }
    let name = match (name, fields.trim()) {
        ("", "") => "default",
        ("", fields) => fields,
        (name, _) => name,
    };
    Ok(NamedPolicy { name: name.to_owned(), policy: policy(table)? })
}

/// All policies that were given; the default policy when none was.
pub(crate) fn all(given: &[NamedPolicy], files: &[impl AsRef<Path>]) -> Result<Vec<NamedPolicy>, Failure> {
    let mut all = given.to_vec();
    for path in files {
        let path = path.as_ref();
        let found = std::fs::File::open(path).and_then(limited).map_err(|error| error.to_string());
        let read = found.and_then(|text| in_file(path, &text)).map_err(|reason| {
            Failure::usage(format!("use --policy-file {}: {reason}", path.display()))
                .hint("a policy in TOML is lines like: batch = \"5%\"; several are sections like: [careful]")
        });
        all.extend(read?);
    }
    if all.is_empty() {
        all.push(NamedPolicy { name: "default".to_owned(), policy: Policy::default() });
    }
    if all.len() > MAX_POLICIES {
        let what = format!("compare {} policies with --policy: {MAX_POLICIES} at most", all.len());
        return Err(Failure::usage(what).hint("compare a few, like: --policy batch=5% --policy batch=10%"));
    }
    let twice = all
        .iter()
        .enumerate()
        .find(|(place, one)| all.iter().take(*place).any(|earlier| earlier.name == one.name));
    match twice {
        Some((_, one)) => {
            Err(Failure::usage(format!("compare two policies called {:?} with --policy", one.name))
                .hint("name them, like: --policy first:'batch=5%' --policy second:'batch=10%'"))
        }
        None => Ok(all),
    }
}

/// The policies of a file: one, named after the file, or several by name.
fn in_file(path: &Path, text: &str) -> Result<Vec<NamedPolicy>, String> {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let table: Map<String, Value> = match end {
        "yaml" | "yml" => {
            yaml_depth::check(text, 0)?;
            serde_norway::from_str(text).map_err(|error| error.to_string())?
        }
        "json" => serde_json::from_str(text).map_err(|error| error.to_string())?,
        "toml" => toml::from_str(text).map_err(|error| error.message().to_owned())?,
        _ => return Err("the file name must end in .toml, .yaml or .json".to_owned()),
    };
    let several = !table.is_empty()
        && table
            .iter()
            .all(|(key, value)| value.is_object() && !Shape::field_names().contains(&key.as_str()));
    if !several {
        let name =
            path.file_stem().map_or_else(|| "policy".to_owned(), |name| name.to_string_lossy().into_owned());
        return Ok(vec![NamedPolicy { name, policy: policy(table)? }]);
    }
    let one = |(name, value): (String, Value)| {
        let Value::Object(fields) = value else { return Err(format!("{name} is not a policy")) };
        let policy = policy(fields).map_err(|reason| format!("{name}: {reason}"))?;
        Ok(NamedPolicy { name, policy })
    };
    table.into_iter().map(one).collect()
}

/// The policy with these fields.
fn policy(fields: Map<String, Value>) -> Result<Policy, String> {
    let known = Shape::field_names();
    let mut table = Map::new();
    for (key, value) in fields {
        if !known.contains(&key.as_str()) {
            return Err(unknown(&key, known));
        }
        table.insert(key.clone(), fitting(&key, value)?);
    }
    let shape: Shape = serde_json::from_value(Value::Object(table)).map_err(|error| error.to_string())?;
    Policy::try_from(&shape).map_err(|error| format!("{}: {}", error.place, error.reason))
}

/// The value in the form that its field takes: as it is, as the number, boolean or list that it spells, or as text.
fn fitting(key: &str, value: Value) -> Result<Value, String> {
    let mut forms = vec![value.clone()];
    match &value {
        Value::String(text) => {
            forms.extend(serde_json::from_str(text));
            forms.push(text.split(',').map(|part| Value::String(part.to_owned())).collect());
        }
        Value::Number(number) => forms.push(Value::String(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {}
    }
    let fits = |form: &Value| {
        let alone = Map::from_iter([(key.to_owned(), form.clone())]);
        serde_json::from_value::<Shape>(Value::Object(alone)).map(drop)
    };
    let refused = fits(&value).err();
    match (forms.into_iter().find(|form| fits(form).is_ok()), refused) {
        (Some(form), _) => Ok(form),
        (None, refused) => {
            let reason = refused.map(|error| error.to_string()).unwrap_or_default();
            Err(format!("{key}: {}", reason.split(" at line").next().unwrap_or_default()))
        }
    }
}

fn unknown(key: &str, known: &[&str]) -> String {
    match crate::near::nearest(key, known.iter().copied()) {
        Some(field) => format!("{key:?} is not a policy field; did you mean {field}?"),
        None => format!("{key:?} is not a policy field; use one of {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        named(text).unwrap_err()
    }

    #[test]
    fn a_policy_on_one_line_has_fields_and_maybe_a_name() {
        let careful = named("careful: batch=1% soak=10m retries=2 fail-fast=false").unwrap();
        assert_eq!(careful.name, "careful");
        assert_eq!((careful.policy.retries, careful.policy.fail_fast), (2, false));
        assert_eq!(careful.policy.batch, "1%".parse().unwrap());
        assert_eq!(named("batch=3").unwrap().name, "batch=3");
        let nothing = named("").unwrap();
        assert_eq!((nothing.name.as_str(), &nothing.policy), ("default", &Policy::default()));
    }

    #[test]
    fn what_is_no_policy_is_refused_with_what_is_right() {
        assert_eq!(refused("batsh=5%"), "\"batsh\" is not a policy field; did you mean batch?");
        assert!(refused("colour=5%").starts_with("\"colour\" is not a policy field; use one of batch, "));
        assert_eq!(refused("careful"), "\"careful\" is not FIELD=VALUE; write it like batch=5%");
        assert_eq!(refused("batch=5% batch=6%"), "batch is given twice; write it once, like batch=6%");
        assert!(refused("success=100% failures=1").starts_with("failures: "));
        assert!(refused("soak=60s deadline=60s").contains("is not longer than the soak"));
        assert!(refused("batch=five").contains("write a count like 3 or a share like 5%"));
        assert!(refused("retries=many").starts_with("retries: "));
        assert!(refused("on_failure=explode").contains("`rollback`, `pause`, `continue`"));
    }

    #[test]
    fn files_hold_one_policy_or_several() {
        let read = |name: &str, text: &str| in_file(Path::new(name), text);
        let one = read("quick.toml", "batch = \"25%\"\nretries = 1\n").unwrap();
        assert_eq!((one.len(), one[0].name.as_str(), one[0].policy.retries), (1, "quick", 1));
        let two =
            read("both.yaml", "careful:\n  batch: 1%\nquick:\n  batch: 5\n  fail_fast: false\n").unwrap();
        assert_eq!(two.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["careful", "quick"]);
        assert_eq!(two[1].policy.batch, "5".parse().unwrap());
        assert!(read("x.ini", "").unwrap_err().contains(".toml"));
        assert!(read("x.toml", "[careful]\nbatsh = 1\n").unwrap_err().starts_with("careful: \"batsh\""));
    }
}
