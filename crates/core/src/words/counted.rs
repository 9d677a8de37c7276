//! The text form of a counted name: `db`, `2 of db`.

/// Reads `db`, or `2 of db`, as count and name; `None` when the count is not a number.
#[must_use]
pub fn counted(text: &str) -> Option<(u32, &str)> {
    let (count, name) = text.split_once(" of ").unwrap_or(("1", text));
    Some((count.trim().parse().ok()?, name.trim()))
}
