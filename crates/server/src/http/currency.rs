//! What each answer says of how current it is: the age of the world that it was made from, and that no
//! change is accepted.

use axum::response::Response;
use bellwether_api::paths::{AGE_MS, ANSWERED_BY, STORE_TROUBLE, UNRECORDED_MS};
use bellwether_core::words::time::Span;
use bellwether_store::Condition;
use http::HeaderValue;
use http::header::HeaderName;

use super::state::AppState;

/// Most bytes of a reason in a header: reasons name all endpoints, and a header is to stay small.
const MAX_REASON: usize = 400;

/// The answer with the headers, if there is anything to say.
pub(super) fn mark(app: &AppState, mut response: Response) -> Response {
    let stale = app.cluster.freshness.stale_for();
    let trouble = trouble(app);
    if stale.is_none() && trouble.is_none() {
        return response;
    }
    let mut add = |name: &'static str, value: HeaderValue| {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    };
    if let Ok(name) = HeaderValue::try_from(app.identity.name.as_str()) {
        add(ANSWERED_BY, name);
    }
    if let Some(age) = stale {
        add(AGE_MS, age.as_millis().into());
    }
    if let Some(trouble) = trouble.and_then(|trouble| HeaderValue::try_from(printable(&trouble)).ok()) {
        add(STORE_TROUBLE, trouble);
    }
    if let Some(since) = unrecorded(app) {
        add(UNRECORDED_MS, since.as_millis().into());
    }
    response
}

/// Why no change is accepted: what the store does not take, or the audit log does not; none if both do.
pub(super) fn trouble(app: &AppState) -> Option<String> {
    let health = app.records.store.health();
    let of_store = of_store(&health.borrow().condition);
    of_store.or_else(|| app.audit.trouble())
}

/// The time since the store takes no changes, so that no presence of a node is recorded; none if it does.
pub(super) fn unrecorded(app: &AppState) -> Option<Span> {
    let since = match app.records.store.health().borrow().condition {
        Condition::Writable => return None,
        Condition::ReadOnly { since, .. }
        | Condition::Unreachable { since, .. }
        | Condition::Failed { since, .. } => since,
    };
    Some(Span::from_millis(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)))
}

/// Why the store takes no changes; none if it does.
fn of_store(condition: &Condition) -> Option<String> {
    match condition {
        Condition::Writable => None,
        Condition::ReadOnly { reason, .. } => Some(format!("the store is read-only: {reason}")),
        Condition::Unreachable { reason, .. } => Some(format!("the store is unreachable: {reason}")),
        Condition::Failed { reason, .. } => Some(format!("the store failed: {reason}")),
    }
}

/// A text as the value of a header.
fn printable(text: &str) -> String {
    let shown = |letter: char| if matches!(letter, ' '..='~') { letter } else { ' ' };
    text.chars().map(shown).take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_value_of_a_header_whatever_it_holds() {
        let text = printable(&format!("etcd at \u{fc}ber\r\nx: y{}", "z".repeat(MAX_REASON)));
        assert!(text.starts_with("etcd at  ber  x: yz"), "{text}");
        assert_eq!(HeaderValue::try_from(text).unwrap().len(), MAX_REASON);
    }
}
