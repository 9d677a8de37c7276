//! Values that a change expects, and the refusal of one that is another.

use bellwether_api::problem::ConflictingValue;
use bellwether_api::shape::ShapeError;
use bellwether_api::value::is_same;
use serde_json::Value;

use super::OpError;

/// Longest value in a message, in characters.
const MAX_SHOWN: usize = 80;

/// A value that is not as expected.
pub(super) struct Mismatch {
    /// Where it is, as a JSON Pointer.
    pub(super) pointer: String,
    /// What is there; `None` if there is nothing.
    pub(super) found: Option<Value>,
    /// What was expected; `None` for nothing.
    pub(super) expected: Option<Value>,
}

/// Why a change is refused.
pub(super) enum ChangeError {
    /// A value is not as expected.
    Differs(Mismatch),
    /// Another reason.
    Other(OpError),
}

impl From<Mismatch> for ChangeError {
    fn from(mismatch: Mismatch) -> Self {
        Self::Differs(mismatch)
    }
}

impl From<OpError> for ChangeError {
    fn from(error: OpError) -> Self {
        Self::Other(error)
    }
}

impl From<ShapeError> for ChangeError {
    fn from(error: ShapeError) -> Self {
        Self::Other(error.into())
    }
}

/// Refuses a value that is not the expected one; `None` expects nothing there.
pub(super) fn compare(
    pointer: &str,
    found: Option<&Value>,
    expected: Option<&Value>,
) -> Result<(), Mismatch> {
    let is_expected = match (found, expected) {
        (Some(found), Some(expected)) => is_same(found, expected),
        (found, expected) => found.is_none() && expected.is_none(),
    };
    let mismatch =
        || Mismatch { pointer: pointer.to_owned(), found: found.cloned(), expected: expected.cloned() };
    if is_expected { Ok(()) } else { Err(mismatch()) }
}

/// The JSON Pointer of a member.
pub(crate) fn member_pointer(member: &str) -> String {
    format!("/{}", member.replace('~', "~0").replace('/', "~1"))
}

impl Mismatch {
    /// The refusal of what was to be done with an object at this revision; `what` fits after "cannot ".
    pub(super) fn refusing(self, what: &str, revision: u64, hint: String) -> OpError {
        let Self { pointer, found, expected } = self;
        let shown = |value: &Option<Value>| match value {
            None => "absent".to_owned(),
            Some(value) => short(&value.to_string()),
        };
        let reason = format!(
            "{what}: {pointer} is {}, not {} (revision {revision}); nothing was changed",
            shown(&found),
            shown(&expected)
        );
        OpError::Differs { reason, conflict: ConflictingValue { pointer, value: found, revision }, hint }
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
