//! Provisioning: whether everything that a machine's entities require beforehand is present. Missing items
//! may still be being installed.

use alloc::string::String;

use super::account::StateReason;
use crate::records::status::StatusState;
use crate::words::time::Span;

/// How long a requirement may be missing before provisioning has failed: long enough for installs from a slow
/// mirror, like the time limit of a part.
pub const PATIENCE: Span = Span::from_secs(300);

/// State of provisioning; `missing` is the first missing requirement, and `waited` how long it has been
/// missing.
#[must_use]
pub fn standing(missing: Option<String>, waited: Span) -> StateReason {
    let (state, reason) = match missing {
        None => (StatusState::Success, String::new()),
        Some(missing) if waited < PATIENCE => (StatusState::Pending, missing),
        Some(missing) => (StatusState::Failed, missing),
    };
    StateReason { state, reason, attempt: 0, run: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_waited_for_and_then_a_failure() {
        let state = |missing: Option<&str>, waited| {
            let standing = standing(missing.map(String::from), Span::from_secs(waited));
            (standing.state, standing.reason)
        };
        assert_eq!(state(Some("no puppet"), 0), (StatusState::Pending, "no puppet".into()));
        assert_eq!(state(Some("no puppet"), 299), (StatusState::Pending, "no puppet".into()));
        assert_eq!(state(Some("no puppet"), 300), (StatusState::Failed, "no puppet".into()));
        assert_eq!(state(None, 900), (StatusState::Success, String::new()));
    }
}
