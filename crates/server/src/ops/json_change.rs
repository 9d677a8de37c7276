//! Changes of a JSON document as standards describe them: JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7396). Applied
//! whole or not at all.

use bellwether_api::shape::ShapeError;
use bellwether_api::value::is_same;
use json_patch::{Patch, PatchOperation};
use serde_json::Value;

use super::expectation::member_pointer;

/// Most bytes that the operations of one change copy, in all: four times what the largest document has.
const MAX_COPIED: usize = 256 << 10;

/// Most items of lists that the operations of one change move, in all: those after one that is added or removed.
const MAX_MOVED: usize = 4_000_000;

/// A change of a JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonChange {
    /// Operations, one after the other; a `test` that fails stops the change.
    Patch(Patch),
    /// The members to replace; `null` removes a member.
    Merge(Value),
}

/// Why a change cannot be applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// A `test` failed: there is this value at the pointer.
    Differs {
        /// The JSON Pointer of the test.
        pointer: String,
        /// The value that is there.
        value: Option<Value>,
        /// The value that was expected.
        expected: Value,
    },
    /// An operation does not fit the document.
    Invalid(ShapeError),
}

impl JsonChange {
    /// The fields that it writes, as JSON pointers. Adding to a list and removing from it moves the items after it, and so writes the
    /// whole list.
    #[must_use]
    pub fn fields(&self) -> Vec<String> {
        match self {
            Self::Patch(Patch(operations)) => operations.iter().flat_map(written).collect(),
            Self::Merge(Value::Object(members)) => members.keys().map(|key| member_pointer(key)).collect(),
            Self::Merge(_) => vec![String::new()],
        }
    }

    /// The fields that it reads, as JSON pointers: what an answer says of them, or what is written with them, shows what they are.
    #[must_use]
    pub fn read_fields(&self) -> Vec<String> {
        match self {
            Self::Patch(Patch(operations)) => operations.iter().filter_map(read_by).collect(),
            Self::Merge(_) => Vec::new(),
        }
    }

    /// The document after the change.
    pub(super) fn applied_to(&self, document: &Value) -> Result<Value, Rejection> {
        let mut changed = document.clone();
        match self {
            Self::Patch(Patch(operations)) => {
                let mut work = PatchWork::default();
                for (index, operation) in operations.iter().enumerate() {
                    let applied = work.add(operation, &changed).and_then(|()| apply(operation, &mut changed));
                    applied.map_err(|rejection| rejection.within(index))?;
                }
            }
            Self::Merge(change) => json_patch::merge(&mut changed, change),
        }
        Ok(changed)
    }
}

/// The fields that an operation writes.
fn written(operation: &PatchOperation) -> Vec<String> {
    let moving = |pointer: &str| match pointer.rsplit_once('/') {
        Some((list, item)) if item == "-" || item.bytes().all(|digit| digit.is_ascii_digit()) => {
            list.to_owned()
        }
        Some(_) | None => pointer.to_owned(),
    };
    match operation {
        PatchOperation::Add(add) => vec![moving(add.path.as_str())],
        PatchOperation::Remove(remove) => vec![moving(remove.path.as_str())],
        PatchOperation::Replace(replace) => vec![replace.path.to_string()],
        PatchOperation::Move(from) => vec![moving(from.from.as_str()), moving(from.path.as_str())],
        PatchOperation::Copy(copy) => vec![moving(copy.path.as_str())],
        PatchOperation::Test(_) => Vec::new(),
    }
}

/// The field that an operation reads.
fn read_by(operation: &PatchOperation) -> Option<String> {
    match operation {
        PatchOperation::Test(test) => Some(test.path.to_string()),
        PatchOperation::Copy(copy) => Some(copy.from.to_string()),
        // What is moved is written where it was.
        PatchOperation::Add(_)
        | PatchOperation::Remove(_)
        | PatchOperation::Replace(_)
        | PatchOperation::Move(_) => None,
    }
}

/// What the operations of a change cost beyond reading them, so far.
#[derive(Debug, Default)]
struct PatchWork {
    copied: usize,
    moved: usize,
}

impl PatchWork {
    /// Counts what an operation is to do, and refuses it if that is too much. All others together add no more than the patch itself has, but each copy
    /// may double the document, and each item that comes into a list or leaves it moves all after it.
    fn add(&mut self, operation: &PatchOperation, document: &Value) -> Result<(), Rejection> {
        let (copied, pointers) = match operation {
            PatchOperation::Copy(copy) => (Some(copy.from.as_str()), vec![copy.path.as_str()]),
            PatchOperation::Add(add) => (None, vec![add.path.as_str()]),
            PatchOperation::Remove(remove) => (None, vec![remove.path.as_str()]),
            PatchOperation::Move(from) => (None, vec![from.from.as_str(), from.path.as_str()]),
            PatchOperation::Replace(_) | PatchOperation::Test(_) => (None, Vec::new()),
        };
        let size = copied.and_then(|from| document.pointer(from)).map_or(0, size);
        self.copied = self.copied.saturating_add(size);
        let moved = pointers.into_iter().map(|pointer| items_from(pointer, document)).sum();
        self.moved = self.moved.saturating_add(moved);
        let reason = if self.copied > MAX_COPIED {
            format!("copy more than {} KiB; send a value instead, or fewer operations", MAX_COPIED / 1_024)
        } else if self.moved > MAX_MOVED {
            format!("move more than {MAX_MOVED} items of lists; replace the list instead")
        } else {
            return Ok(());
        };
        let reason = format!("{}: with this one, the operations {reason}", operation.path());
        Err(Rejection::Invalid(ShapeError::at("the operation", reason)))
    }
}

/// Number of items of a list from the one at this pointer on.
fn items_from(pointer: &str, document: &Value) -> usize {
    let Some((list, item)) = pointer.rsplit_once('/') else { return 0 };
    let items = document.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
    items.saturating_sub(item.parse().unwrap_or(items))
}

/// Bytes of a value as JSON, roughly.
fn size(value: &Value) -> usize {
    let (mut bytes, mut rest) = (0_usize, vec![value]);
    while let Some(value) = rest.pop() {
        let own = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 1,
            Value::String(text) => text.len(),
            Value::Array(items) => {
                rest.extend(items);
                items.len()
            }
            Value::Object(members) => {
                rest.extend(members.values());
                members.keys().map(String::len).sum()
            }
        };
        bytes = bytes.saturating_add(own).saturating_add(2);
    }
    bytes
}

fn apply(operation: &PatchOperation, document: &mut Value) -> Result<(), Rejection> {
    // A test compares numbers by value, as its RFC has it.
    if let PatchOperation::Test(test) = operation {
        let found = document.pointer(test.path.as_str());
        if found.is_some_and(|found| is_same(found, &test.value)) {
            return Ok(());
        }
        let (pointer, value) = (test.path.to_string(), found.cloned());
        return Err(Rejection::Differs { pointer, value, expected: test.value.clone() });
    }
    json_patch::patch(document, std::slice::from_ref(operation)).map_err(|error| {
        let reason = format!("{}: {}", operation.path(), error.kind);
        Rejection::Invalid(ShapeError::at("the operation", reason))
    })
}

impl Rejection {
    fn within(self, index: usize) -> Self {
        match self {
            Self::Invalid(error) => Self::Invalid(error.within(&format!("[{index}]"))),
            differs @ Self::Differs { .. } => differs,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(patch: Value) -> JsonChange {
        JsonChange::Patch(serde_json::from_value(patch).unwrap())
    }

    fn patched(document: &Value, patch: Value) -> Result<Value, Rejection> {
        read(patch).applied_to(document)
    }

    #[test]
    fn each_operation_works_and_a_failed_test_names_what_is_there() {
        let before = json!({"a": 1, "b": {"c": [1, 2]}, "x/y": null});
        let all = json!([
            {"op": "test", "path": "/a", "value": 1.0},
            {"op": "test", "path": "/x~1y", "value": null},
            {"op": "add", "path": "/b/c/-", "value": 3},
            {"op": "replace", "path": "/a", "value": {"d": true}},
            {"op": "copy", "from": "/b/c", "path": "/e"},
            {"op": "move", "from": "/b", "path": "/f"},
            {"op": "remove", "path": "/x~1y"},
        ]);
        let after = json!({"a": {"d": true}, "e": [1, 2, 3], "f": {"c": [1, 2, 3]}});
        assert_eq!(patched(&before, all), Ok(after));
        let test = |path: &str, value: Value| {
            patched(&before, json!([{"op": "test", "path": path, "value": value}]))
        };
        let differs = |pointer: &str, value, expected| {
            Err(Rejection::Differs { pointer: pointer.to_owned(), value, expected })
        };
        assert_eq!(test("/b/c/1", json!("2")), differs("/b/c/1", Some(json!(2)), json!("2")));
        assert_eq!(test("/none", json!(null)), differs("/none", None, json!(null)));
        assert_eq!(test("/x~1y", json!(0)), differs("/x~1y", Some(json!(null)), json!(0)));
    }

    #[test]
    fn an_operation_that_does_not_fit_is_named_by_its_position() {
        let patch = json!([{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/b"}]);
        let Err(Rejection::Invalid(error)) = patched(&json!({}), patch) else { panic!("it is refused") };
        assert!(error.to_string().starts_with("[1]") && error.to_string().contains("/b"), "{error}");
    }

    #[test]
    fn copies_of_copies_are_refused_before_they_are_made() {
        let before = json!({"a": "0123456789"});
        let doubling = |count: usize| {
            let copy = |index: usize| json!({"op": "copy", "from": "", "path": format!("/x{index}")});
            patched(&before, Value::Array((0..count).map(copy).collect()))
        };
        assert!(doubling(8).is_ok());
        let Err(Rejection::Invalid(error)) = doubling(4_000) else { panic!("it is refused") };
        assert!(error.to_string().contains("copy more than 256 KiB"), "{error}");
        assert!(error.to_string().starts_with("[1"), "after some: {error}");
        // One within the other, which doubles nothing.
        let nested = vec![json!({"op": "copy", "from": "", "path": "/a"}); 4_000];
        assert!(matches!(patched(&before, Value::Array(nested)), Err(Rejection::Invalid(_))));
        let same = vec![json!({"op": "copy", "from": "/a", "path": "/b"}); 1_000];
        assert_eq!(patched(&before, Value::Array(same)), Ok(json!({"a": "0123456789", "b": "0123456789"})));
    }

    #[test]
    fn operations_that_move_a_long_list_again_and_again_are_refused() {
        let whole = json!({"op": "add", "path": "/a", "value": vec![0; 300_000]});
        let patch = |operations: &[Value]| {
            let all = [whole.clone()].into_iter().chain(operations.iter().cycle().take(11_500).cloned());
            patched(&json!({}), Value::Array(all.collect()))
        };
        let at = |op: &str, index: &str| json!({"op": op, "path": format!("/a/{index}"), "value": 0});
        let swap = json!({"op": "move", "from": "/a/0", "path": "/a/1"});
        let copy = json!({"op": "copy", "from": "/a/1", "path": "/a/0"});
        for heavy in [at("add", "0"), at("remove", "0"), swap, copy] {
            let Err(Rejection::Invalid(error)) = patch(&[heavy]) else { panic!("it is refused") };
            let error = error.to_string();
            assert!(error.starts_with("[") && error.contains("move more than 4000000 items"), "{error}");
        }
        // At its end, nothing is moved.
        assert!(patch(&[at("add", "-"), at("replace", "0")]).is_ok());
    }

    #[test]
    fn a_merge_replaces_members_and_removes_those_that_are_null() {
        let merge = JsonChange::Merge(json!({"a": null, "b": {"c": 2}}));
        assert_eq!(merge.applied_to(&json!({"a": 1, "b": {"d": 1}})), Ok(json!({"b": {"c": 2, "d": 1}})));
    }
}
