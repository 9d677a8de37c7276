//! Names and digests in a cell of a table.

/// Names, or a dash if there are none.
pub(crate) fn listed(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}

/// The start of a digest, enough to tell two apart.
pub(crate) fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}
