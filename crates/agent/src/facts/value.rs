//! Values of facts: texts of the system in one line, and sizes.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// Facts by name.
pub(crate) type MachineFacts = BTreeMap<String, Value>;

/// The text of a file in one line, without spaces around it; `None` if it cannot be read or is empty.
pub(super) fn line(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    shown(&text)
}

/// A text as a fact: one line of at most as many bytes as facts allow; `None` if nothing is left.
pub(super) fn shown(text: &str) -> Option<String> {
    let mut text: String = text.trim().chars().filter(|character| !character.is_control()).collect();
    let most = bellwether_core::words::facts::MAX_FACT_TEXT_BYTES.min(text.len());
    let end = (0..=most).rev().find(|index| text.is_char_boundary(*index)).unwrap_or_default();
    text.truncate(end);
    Some(text).filter(|text| !text.is_empty())
}

/// A number of KiB in GiB, rounded to tenths.
pub(super) fn gib(kib: u64) -> Option<Value> {
    const KIB_IN_GIB: u64 = 1 << 20;
    let tenths = u32::try_from((kib.checked_mul(10)? + KIB_IN_GIB / 2) / KIB_IN_GIB).ok()?;
    Some(if tenths.is_multiple_of(10) {
        Value::from(tenths / 10)
    } else {
        Value::from(f64::from(tenths) / 10.0)
    })
}
