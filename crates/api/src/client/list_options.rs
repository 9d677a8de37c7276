//! What to return of lists.

use crate::paths::encode;

/// What to return of lists, instead of everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListOptions {
    /// Filter that the items match.
    pub filter: Option<String>,
    /// Field by which they are sorted, with `-` before it in reverse.
    pub sort: Option<String>,
    /// Largest number of items.
    pub limit: Option<u64>,
    /// Fields to return of each item, separated by commas.
    pub fields: Option<String>,
}

impl ListOptions {
    /// The query of a page of at most `limit` items.
    pub(super) fn query(&self, limit: Option<u64>, after: Option<&str>) -> Vec<String> {
        let limit = limit.map(|limit| limit.to_string());
        let parameters = [
            ("filter", self.filter.as_deref()),
            ("sort", self.sort.as_deref()),
            ("fields", self.fields.as_deref()),
            ("limit", limit.as_deref()),
            ("after", after),
        ];
        let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.map(|(name, value)| format!("{name}={}", encode(value))).collect()
    }
}
