//! Whether a machine is set up: everything that its entities begin with is there. What is missing at first may be on its way.

use alloc::string::String;

use super::account::StateReason;
use crate::records::status::StatusState;
use crate::words::time::Span;

/// How long something may be missing before the machine has failed to be set up: installs from a slow mirror fit, as into the
/// time that a part may take.
pub const PATIENCE: Span = Span::from_secs(300);

/// How it stands when the first thing that is missing is this, if any is, and has been for so long.
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
