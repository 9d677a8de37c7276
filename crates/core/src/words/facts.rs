//! Facts of a node, such as its processors and disks: JSON values under names, limited in number, size and depth.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::label::is_key;
use super::value::Value;

/// Most facts of a node: agents report fewer than twenty, and later builds may report more.
pub const MAX_FACTS: usize = 64;

/// Most items of one list, and members of one object: more than the disks of the largest machines.
pub const MAX_FACT_ITEMS: usize = 256;

/// Longest text in a fact, in bytes. Models of disks have at most 40.
pub const MAX_FACT_TEXT_BYTES: usize = 256;

/// Deepest nesting of a fact: a list of objects, whose members are texts, has three levels.
pub const MAX_FACT_DEPTH: usize = 4;

/// Size of all facts of a node: the bytes of names and texts, and 8 for each value. Enough for 256 disks.
pub const MAX_FACTS_BYTES: usize = 65_536;

/// Size of a value without its text.
const VALUE_BYTES: usize = 8;

/// Facts of a node by name. Cheap to copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts(Arc<BTreeMap<Arc<str>, Value>>);

/// Why values are not valid facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fact {name:?}: {reason}")]
pub struct FactsError {
    /// Name of the fact; cut to a readable length.
    pub name: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Facts {
    /// Facts within all limits.
    ///
    /// # Errors
    /// [`FactsError`] names the first fact that exceeds a limit, or has a name that is not valid.
    pub fn new(facts: BTreeMap<Arc<str>, Value>) -> Result<Self, FactsError> {
        let mut room = MAX_FACTS_BYTES;
        for (index, (name, value)) in facts.iter().enumerate() {
            let wrong = |reason| FactsError { name: name.chars().take(64).collect(), reason };
            if index >= MAX_FACTS {
                return Err(wrong("there are more than 64 facts"));
            }
            if !is_key(name) {
                return Err(wrong("it is not a valid name"));
            }
            let size = size(value, MAX_FACT_DEPTH).map_err(wrong)?;
            room = room
                .checked_sub(name.len() + size)
                .ok_or_else(|| wrong("all facts together are too large"))?;
        }
        Ok(Self(Arc::new(facts)))
    }

    /// The fact of a name, or a member of facts that are objects: `disks.size_gib` are the sizes of all disks, as a list.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Value> {
        member(&self.0, path)
    }

    /// All facts in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values of one member of each object in a list, such as the names of the disks.
    #[must_use]
    pub fn texts(&self, list: &str, of: &str) -> Vec<String> {
        let Some(Value::List(items)) = self.0.get(list) else { return Vec::new() };
        let texts = items.iter().filter_map(|item| match below(item, of)? {
            Value::Text(text) => Some(text.to_string()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_) => None,
        });
        texts.collect()
    }
}

/// The member of an object: by its whole name, or below the first part of the name that is a member.
fn member(object: &BTreeMap<Arc<str>, Value>, path: &str) -> Option<Value> {
    if let Some(value) = object.get(path) {
        return Some(value.clone());
    }
    let mut splits = path.match_indices('.');
    splits.find_map(|(at, _)| below(object.get(path.get(..at)?)?, path.get(at + 1..)?))
}

fn below(value: &Value, path: &str) -> Option<Value> {
    match value {
        Value::Object(members) => member(members, path),
        Value::List(items) => {
            let found: Vec<Value> = items.iter().filter_map(|item| below(item, path)).collect();
            (!found.is_empty()).then_some(Value::List(found))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => None,
    }
}

fn size(value: &Value, depth: usize) -> Result<usize, &'static str> {
    let Some(depth) = depth.checked_sub(1) else { return Err("it is nested too deeply") };
    let mut bytes = VALUE_BYTES;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::Text(text) => bytes += checked_text(text)?,
        Value::List(items) => {
            check_items(items.len())?;
            for item in items {
                bytes += size(item, depth)?;
            }
        }
        Value::Object(members) => {
            check_items(members.len())?;
            for (name, item) in members {
                bytes += checked_text(name)? + size(item, depth)?;
            }
        }
    }
    Ok(bytes)
}

fn checked_text(text: &str) -> Result<usize, &'static str> {
    if text.len() > MAX_FACT_TEXT_BYTES {
        return Err("a text in it is longer than 256 bytes");
    }
    if text.chars().any(char::is_control) {
        return Err("a text in it contains a control character");
    }
    Ok(text.len())
}

const fn check_items(items: usize) -> Result<(), &'static str> {
    if items > MAX_FACT_ITEMS { Err("it has more than 256 items") } else { Ok(()) }
}

#[cfg(test)]
mod tests;
