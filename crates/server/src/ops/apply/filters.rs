//! The order of saved filters in an apply: those that others name come before them.

use bellwether_api::v1::apply::Document;
use bellwether_core::words::filter::saved::MAX_SAVED_DEPTH;

use super::object::Object;

/// How many filters of the same documents an object leads to, one naming the next; none if it is no filter. What is too deep is
/// refused when it is set.
pub(super) fn depth(object: &Object, all: &[Object]) -> usize {
    let is_filter = |object: &Object| matches!(object.document, Document::Filter(_));
    let mut reached: Vec<&Object> = is_filter(object).then_some(object).into_iter().collect();
    let mut depth = 0;
    if reached.is_empty() {
        return depth;
    }
    while depth <= MAX_SAVED_DEPTH {
        let next = all.iter().filter(|other| reached.iter().any(|object| names(object, other)));
        reached = next.collect();
        if reached.is_empty() {
            break;
        }
        depth += 1;
    }
    depth
}

/// Whether the text of a filter seems to name another one. A name within a quoted text changes nothing but the order.
fn names(object: &Object, other: &Object) -> bool {
    let (Document::Filter(filter), Document::Filter(other)) = (&object.document, &other.document) else {
        return false;
    };
    filter.filter.split('@').skip(1).any(|rest| {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        rest.split(|c| !is_of_name(c)).next() == Some(&*other.name)
    })
}
