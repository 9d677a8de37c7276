//! Changes of an object at a revision that the caller names, and the refusal when it is at another one.

use bellwether_core::words::name::Actor;

use super::OpError;

/// Refuses a change of an object, `cluster` and `db` say, that is not at this revision: 0 if it must not exist, `None` for any.
///
/// # Errors
/// [`OpError::Moved`] with its revision and who wrote it.
pub(super) fn at_revision(
    kind: &str,
    name: &str,
    before: Option<(u64, &Actor)>,
    only_at: Option<u64>,
) -> Result<(), OpError> {
    let present = before.map_or(0, |(revision, _)| revision);
    let Some(wanted) = only_at.filter(|wanted| *wanted != present) else { return Ok(()) };
    let found = match before {
        None => format!("there is no such {kind}"),
        Some((_, by)) => format!("it is at revision {present}, by {by}"),
    };
    let what = match wanted {
        0 => format!("create {kind} {name}"),
        wanted => format!("change {kind} {name} at revision {wanted}"),
    };
    let reason = format!("{what}: {found}; nothing was changed");
    Err(OpError::Moved { reason, hint: format!("bellwether {kind} get {name}") })
}
