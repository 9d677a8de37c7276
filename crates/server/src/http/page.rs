//! Pages of lists.

use bellwether_api::v1::page::Page;
use bellwether_core::words::counter::Revision;

/// A page of at most `limit` items. `items` has at least one more if there is a next page, which begins after the name of
/// the last item.
pub(super) fn page<T>(
    mut items: Vec<T>,
    limit: usize,
    revision: Revision,
    name: impl FnOnce(&T) -> String,
) -> Page<T> {
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(name);
    Page { items, next, revision: revision.get() }
}
