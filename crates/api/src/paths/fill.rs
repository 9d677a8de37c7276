//! Routes with values in the places of their parameters.

use super::percent::encode;

/// A route with its parameters replaced by `values` in order. Values are percent-encoded.
#[must_use]
pub fn fill(route: &str, values: &[&str]) -> String {
    let mut values = values.iter();
    let parts = route.split('/').map(|part| {
        if !part.starts_with('{') {
            return part.to_owned();
        }
        let value = values.next().copied().unwrap_or_default();
        if part.starts_with("{*") {
            value.split('/').map(encode).collect::<Vec<_>>().join("/")
        } else {
            encode(value)
        }
    });
    parts.collect::<Vec<_>>().join("/")
}
