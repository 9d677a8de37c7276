//! What people ask to be done with the members of an ensemble, as it is shown.

use bellwether_api::v1::ensemble::requests::{RequestedAction, RequestedChange};

/// What was asked to be done, in one line.
pub(super) fn line(asked: &RequestedChange) -> String {
    let by = &asked.annotation.by;
    let reason = &asked.annotation.reason;
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let member = asked.member.map(|member| format!("member {member} ")).unwrap_or_default();
    let what = match asked.action {
        RequestedAction::Replace => "is to be replaced",
        RequestedAction::Restart => "its members are restarted one after the other",
        RequestedAction::Defragment => "its members are defragmented one after the other",
    };
    format!("{member}{what}, as {by} asked{because}")
}
