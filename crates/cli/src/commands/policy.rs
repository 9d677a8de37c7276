//! Policy flags as the API takes them: fields to set, and fields to unset.

use bellwether_api::v1::policy::Policy;
use serde_json::{Map, Value};

use crate::args::PolicyFlags;
use crate::exit::{Exit, Failure};

/// What policy flags change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PolicyChange {
    /// Fields with their new values.
    pub(super) set: Policy,
    /// Names of the fields that take their defaults again.
    pub(super) unset: Vec<String>,
}

impl PolicyChange {
    /// The flags that make this change, each after a blank, quoted for a shell.
    ///
    /// # Errors
    /// A fault of this program when the fields cannot be read.
    pub(super) fn flags(&self) -> Result<String, Failure> {
        let fields = serde_json::to_value(&self.set)
            .map_err(|error| Failure::ours(format!("write the policy flags: {error}")))?;
        let mut flags = String::new();
        for (field, value) in fields.as_object().into_iter().flatten() {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let texts: Vec<String> = match value {
                Value::Null => continue,
                Value::Array(items) if field == "stages" => {
                    vec![items.iter().map(text).collect::<Vec<_>>().join(",")]
                }
                Value::Array(items) => items.iter().map(text).collect(),
                one @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                    vec![text(one)]
                }
            };
            let flag = field.replace('_', "-");
            flags.extend(texts.iter().map(|text| format!(" --{flag} {}", quoted(text))));
        }
        if !self.unset.is_empty() {
            flags.push_str(&format!(" --unset {}", self.unset.join(",")));
        }
        Ok(flags)
    }

    /// Reads the flags; a flag with an empty value unsets its field.
    ///
    /// # Errors
    /// Wrong usage when a value has the wrong type.
    pub(super) fn read(flags: PolicyFlags) -> Result<Self, Failure> {
        let mut unset = flags.unset;
        let mut fields = Map::new();
        let texts = [
            ("batch", flags.batch),
            ("max_unavailable", flags.max_unavailable),
            ("success", flags.success),
            ("failures", flags.failures),
            ("unreachable", flags.unreachable),
            ("soak", flags.soak),
            ("deadline", flags.deadline),
            ("progress", flags.progress),
            ("domain", flags.domain),
            ("order", flags.order),
            ("store", flags.store),
            ("quorum", flags.quorum),
            ("on_failure", flags.on_failure),
            ("rollback", flags.rollback),
            ("supersede", flags.supersede),
            ("settle", flags.settle),
            ("fail_fast", flags.fail_fast),
            ("retries", flags.retries),
        ];
        for (name, text) in texts {
            let Some(text) = text else { continue };
            if text.is_empty() {
                unset.push(name.to_owned());
            } else {
                fields.insert(name.to_owned(), value(name, text)?);
            }
        }
        for (name, list) in [("stages", flags.stages), ("windows", flags.windows), ("needs", flags.needs)] {
            let Some(list) = list else { continue };
            if list.iter().all(String::is_empty) {
                unset.push(name.to_owned());
            } else {
                fields.insert(name.to_owned(), Value::from(list));
            }
        }
        if let Some(both) = unset.iter().find(|name| fields.contains_key(name.as_str())) {
            let flag = both.replace('_', "-");
            return Err(Failure::usage(format!("set and unset {both} at once: --{flag} and --unset {both}")));
        }
        let set = serde_json::from_value(Value::Object(fields));
        let set = set.map_err(|error| Failure::usage(format!("read the policy: {error}")))?;
        Ok(Self { set, unset })
    }

    /// Whether nothing is changed.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The value of a field: a truth or a number where the field is one, else text.
///
/// # Errors
/// Wrong usage, naming the flag.
fn value(name: &str, text: String) -> Result<Value, Failure> {
    let wrong = |wanted: &str| {
        let flag = name.replace('_', "-");
        Failure::stated(Exit::Usage, format!("--{flag}: {text:?} is not {wanted}"))
    };
    match name {
        "fail_fast" | "quorum" => text.parse().map(Value::Bool).map_err(|_| wrong("true or false")),
        "retries" => text.parse().map(|count: u32| Value::from(count)).map_err(|_| wrong("a whole number")),
        "on_failure" if !["rollback", "pause", "continue"].contains(&text.as_str()) => {
            Err(wrong("rollback, pause or continue"))
        }
        "supersede" if !["replace", "finish", "refuse"].contains(&text.as_str()) => {
            Err(wrong("replace, finish or refuse"))
        }
        _ => Ok(Value::String(text)),
    }
}

/// A word as a shell reads it back.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%.,:/_-@=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A policy with what the flags set, and without what they unset.
pub(super) fn merged(policy: Policy, flags: PolicyFlags) -> Result<Policy, Failure> {
    let unreadable = |error: serde_json::Error| Failure::ours(format!("read the policy: {error}"));
    let change = PolicyChange::read(flags)?;
    let mut fields = serde_json::to_value(&policy).map_err(unreadable)?;
    let set = serde_json::to_value(&change.set).map_err(unreadable)?;
    if let (Some(fields), Some(set)) = (fields.as_object_mut(), set.as_object()) {
        fields.extend(
            set.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), value.clone())),
        );
    }
    let policy: Policy = serde_json::from_value(fields).map_err(unreadable)?;
    policy.without(&change.unset).map_err(|error| Failure::usage(format!("change the policy: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn an_empty_value_and_unset_both_unset_a_field() {
        let flags = PolicyFlags {
            batch: some("20%"),
            soak: some(""),
            windows: Some(vec![String::new()]),
            retries: some("2"),
            unset: vec!["needs".to_owned()],
            ..PolicyFlags::default()
        };
        let change = PolicyChange::read(flags).unwrap();
        let old = Policy {
            soak: some("1m"),
            windows: Some(vec!["Mon 10:00-12:00".to_owned()]),
            needs: Some(vec!["db".to_owned()]),
            domain: some("zone"),
            ..Policy::default()
        };
        let new = old.without(&change.unset).unwrap().overlaid(change.set);
        let expected =
            Policy { batch: some("20%"), retries: Some(2), domain: some("zone"), ..Policy::default() };
        assert_eq!(new, expected);
    }

    #[test]
    fn a_field_is_not_set_and_unset_at_once() {
        let flags =
            PolicyFlags { batch: some("2"), unset: vec!["batch".to_owned()], ..PolicyFlags::default() };
        let refused = PolicyChange::read(flags).unwrap_err().message;
        assert_eq!(refused, "cannot set and unset batch at once: --batch and --unset batch");
    }

    #[test]
    fn the_flags_of_a_change_make_it_again() {
        let windows = "Mon..Fri 22:00-04:00 Europe/Berlin";
        let flags = PolicyFlags {
            batch: some("1"),
            max_unavailable: some("10%"),
            stages: Some(vec!["1".to_owned(), "25% approve".to_owned()]),
            windows: Some(vec![windows.to_owned()]),
            unset: vec!["needs".to_owned()],
            ..PolicyFlags::default()
        };
        let typed = PolicyChange::read(flags).unwrap().flags().unwrap();
        for part in [
            " --batch 1",
            " --max-unavailable 10%",
            " --stages '1,25% approve'",
            &format!(" --windows '{windows}'"),
            " --unset needs",
        ] {
            assert!(typed.contains(part), "{part} is not in {typed}");
        }
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn a_wrong_type_and_an_unknown_field_are_refused() {
        let flags = PolicyFlags { retries: some("many"), ..PolicyFlags::default() };
        assert!(PolicyChange::read(flags).unwrap_err().message.contains("many"));
        let refused = Policy::default().without(&["windos".to_owned()]).unwrap_err();
        assert!(refused.reason.contains("did you mean windows?"), "{refused}");
    }
}
