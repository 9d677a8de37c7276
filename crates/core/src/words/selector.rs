//! Selectors: filters that stand, such as those of entities, freezes and pauses. They test only what is recorded of a node, and
//! nothing that changes by the passing of time or by what the node does.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use super::filter::field::Field;
use super::filter::nodes::NODES;
use super::filter::saved::FilterDraft;
use super::filter::{FieldValue, Filter, FilterError, FilterSubject};
use super::label::Labels;
use super::node_data::NodeData;

/// A filter that matches nodes for as long as it is kept: `role=web and zone in (a,b) and not name=web-17`, or `all`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Filter);

/// What is recorded of a node or target.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a Labels,
    /// Its facts, own params and profiles.
    pub data: &'a NodeData,
}

impl FilterSubject for Recorded<'_> {
    fn value(&self, field: &Field) -> Option<FieldValue<'_>> {
        match field.name() {
            "name" => Some(FieldValue::Text(self.name)),
            "label" => self.labels.get(field.key()).map(FieldValue::Text),
            _ => self.data.value(field).map(FieldValue::Value),
        }
    }
}

impl Selector {
    /// The selector that matches every node; it must be written out, an empty text is not valid.
    #[must_use]
    pub fn all() -> Self {
        Self(Filter::all())
    }

    /// Reads a selector.
    ///
    /// # Errors
    /// [`FilterError`] with the position: the text is not a valid filter, names a saved one, or tests a field that changes by itself.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let filter = FilterDraft::parse(text, &NODES)?;
        let filter = filter.without_saved("a selector is kept with its object: write the filter out")?;
        let refused = filter.unsteady_field().map(|(field, position)| FilterError {
            position,
            reason: format!(
                "{field} changes by itself, and this filter is kept: use name, labels, facts, params and profiles; \
                 for a label of this name write label.{}",
                field.name()
            ),
        });
        refused.map_or(Ok(Self(filter)), Err)
    }

    /// The text from which it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it tests facts, which a machine reports of itself.
    #[must_use]
    pub fn tests_facts(&self) -> bool {
        self.0.tests("fact")
    }

    /// Whether it matches a node with this name, these labels and this data.
    #[must_use]
    pub fn picks(&self, name: &str, labels: &Labels, data: &NodeData) -> bool {
        self.0.matches(&Recorded { name, labels, data })
    }

    /// The first label or fact that it tests and none of these nodes has; `None` without nodes.
    #[must_use]
    pub fn unknown_field<'a, I>(&self, nodes: impl Fn() -> I) -> Option<&Field>
    where
        I: Iterator<Item = (&'a Labels, &'a NodeData)>,
    {
        unknown_field(&self.0, nodes)
    }

    /// The names of which a node must have one to match; `None` if nodes of other names may match.
    #[must_use]
    pub fn names(&self) -> Option<Vec<&str>> {
        self.0.required_values("name", "")
    }
}

/// The first label or fact that a filter of nodes tests and none of these nodes has; `None` without nodes.
#[must_use]
pub fn unknown_field<'f, 'a, I>(filter: &'f Filter, nodes: impl Fn() -> I) -> Option<&'f Field>
where
    I: Iterator<Item = (&'a Labels, &'a NodeData)>,
{
    nodes().next()?;
    let is_unknown = |field: &Field| {
        let mut all = nodes().map(|(labels, data)| Recorded { name: "", labels, data });
        matches!(field.name(), "label" | "fact") && all.all(|node| node.value(field).is_none())
    };
    filter.field(&is_unknown)
}

impl core::str::FromStr for Selector {
    type Err = FilterError;
    fn from_str(text: &str) -> Result<Self, FilterError> {
        Self::parse(text)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;
    use crate::words::label::Label;
    use crate::words::node_data::NO_DATA;

    fn labels(text: &str) -> Labels {
        let mut labels = Labels::default();
        for label in text.split_whitespace() {
            labels.set(label.parse::<Label>().unwrap()).unwrap();
        }
        labels
    }

    fn picks(selector: &str, name: &str, with: &str) -> bool {
        Selector::parse(selector).unwrap().picks(name, &labels(with), &NO_DATA)
    }

    #[test]
    fn a_selector_reads_like_a_sentence() {
        assert!(picks("role=web and zone in (a,b) and not name=web-9", "web-1", "role=web zone=a"));
        assert!(!picks("role=web and zone in (a,b) and not name=web-9", "web-9", "role=web zone=a"));
        assert!(picks("role=db or role=web and zone=a", "x", "role=db zone=z"));
        assert!(!picks("(role=db or role=web) and zone=a", "x", "role=db zone=z"));
        assert!(picks("all", "anything", ""));
        assert!(picks("gpu", "x", "gpu="));
        assert!(!picks("gpu", "x", ""));
        assert!(picks("zone not in (a, b)", "x", "zone=c"));
        assert!(picks("zone != a", "x", ""));
        assert!(picks("  not gpu  ", "x", ""));
        assert!(picks("role=web,zone!=a", "x", "role=web zone=b"));
        assert!(!picks("role=web,zone!=a", "x", "role=web zone=a"));
    }

    #[test]
    fn what_changes_by_itself_is_refused_with_its_place() {
        let refused = |text: &str| Selector::parse(text).unwrap_err().to_string();
        assert_eq!(
            refused("role=web and not cordoned"),
            "invalid filter at position 17: cordoned changes by itself, and this filter is kept: use name, labels, facts, params \
             and profiles; for a label of this name write label.cordoned"
        );
        assert!(
            refused("all and age > 1h").starts_with("invalid filter at position 8: age changes by itself")
        );
        assert!(picks("label.age > 3", "x", "age=4"));
        assert_eq!(
            refused("zone=a and not @old"),
            "invalid filter at position 15: @old is a saved filter, and a selector is kept with its object: write the filter out"
        );
    }

    #[test]
    fn names_that_it_requires_are_known() {
        let names = |text: &str| Selector::parse(text).unwrap().names().map(|names| names.join(","));
        assert_eq!(names("name=a").as_deref(), Some("a"));
        assert_eq!(names("role=web and name in (a,b)").as_deref(), Some("a,b"));
        assert_eq!(names("name=a or name=b and zone=c").as_deref(), Some("a,b"));
        assert_eq!(names("name=a or zone=c"), None);
        assert_eq!(names("not name=a"), None);
        assert_eq!(names("name != a"), None);
        assert_eq!(names("all"), None);
    }

    proptest! {
        #[test]
        fn a_node_that_matches_has_one_of_the_required_names(
            terms in prop::collection::vec(("(not )?", "name=[xy]|name in \\([xy]\\)|b=[xy]|all", "( and | or |,)"), 1..5),
            name in "[xyz]",
            label in "[xy]",
        ) {
            let mut text = alloc::string::String::new();
            for (index, (not, term, join)) in terms.iter().enumerate() {
                if index > 0 {
                    text.push_str(join);
                }
                text.push_str(not);
                text.push_str(term);
            }
            let selector = Selector::parse(&text).unwrap();
            let labels = labels(&format!("b={label}"));
            if let Some(names) = selector.names() && selector.picks(&name, &labels, &NO_DATA) {
                prop_assert!(names.contains(&name.as_str()), "{}", text);
            }
        }
    }
}
