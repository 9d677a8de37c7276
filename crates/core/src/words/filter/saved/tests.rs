use alloc::collections::BTreeMap;
use alloc::string::ToString;

use proptest::prelude::*;

use super::super::field::{Field, FieldSpec, FieldType};
use super::super::{FieldValue, FilterSubject};
use super::*;

static FIELDS: FieldTable = FieldTable {
    plural: "nodes",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, ""),
        FieldSpec::recorded("label", FieldType::Label, "").keyed(),
    ],
    slim: &["name"],
};

/// A node of this name with one label of each of these keys.
struct Node(&'static str, &'static [(&'static str, &'static str)]);

impl FilterSubject for Node {
    fn value(&self, field: &Field) -> Option<FieldValue<'_>> {
        match field.name() {
            "name" => Some(FieldValue::Text(self.0)),
            _ => self.1.iter().find(|(key, _)| *key == field.key()).map(|(_, value)| FieldValue::Text(value)),
        }
    }
}

static NODES: [Node; 4] = [
    Node("web-1", &[("a", "x"), ("b", "x")]),
    Node("web-2", &[("a", "x"), ("b", "y")]),
    Node("web-3", &[("a", "y"), ("b", "x")]),
    Node("web-4", &[]),
];

fn draft(text: &str) -> Result<FilterDraft, FilterError> {
    FilterDraft::parse(text, &FIELDS)
}

/// The filter with these saved ones.
fn resolve(text: &str, saved: &[(&str, &str)]) -> Result<Filter, FilterError> {
    resolve_as(None, text, saved)
}

fn resolve_as(own: Option<&str>, text: &str, saved: &[(&str, &str)]) -> Result<Filter, FilterError> {
    let saved: BTreeMap<&str, &str> = saved.iter().copied().collect();
    let own = own.map(|name| FilterName::parse(name).unwrap());
    draft(text)?.resolve(own.as_ref(), &|name| {
        saved.get(name.as_str()).copied().ok_or_else(|| format!("there is no saved filter {name}"))
    })
}

fn refused(text: &str, saved: &[(&str, &str)]) -> (usize, String) {
    let error = resolve(text, saved).unwrap_err();
    (error.position, error.reason)
}

fn names(filter: &Filter) -> Vec<&'static str> {
    NODES.iter().filter(|node| filter.matches(*node)).map(|node| node.0).collect()
}

#[test]
fn a_saved_filter_stands_for_its_text_in_parentheses() {
    let saved = [("old", "a=x or b=x"), ("deep", "not @old"), ("every", "all")];
    for (text, expected, found) in [
        ("@old", "(a=x or b=x)", &["web-1", "web-2", "web-3"][..]),
        (" @old and b=y ", "(a=x or b=x) and b=y", &["web-2"]),
        ("not @old", "not (a=x or b=x)", &["web-4"]),
        ("b=y,@old", "b=y,(a=x or b=x)", &["web-2"]),
        ("b=y @old", "b=y (a=x or b=x)", &["web-2"]),
        ("(@old)and(@deep)", "((a=x or b=x))and((not (a=x or b=x)))", &[]),
        ("And(@old, Not(@deep))", "And((a=x or b=x), Not((not (a=x or b=x))))", &["web-1", "web-2", "web-3"]),
        ("name = '@old' or @deep", "name = '@old' or (not (a=x or b=x))", &["web-4"]),
        ("name =~ @old or @every", "name =~ @old or (all)", &["web-1", "web-2", "web-3", "web-4"]),
    ] {
        let filter = resolve(text, &saved).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(filter.as_str(), expected, "{text}");
        assert_eq!(names(&filter), found, "{text}");
    }
    let both = draft("@b or not (a=x and @a)").unwrap();
    assert_eq!(both.saved().into_iter().map(FilterName::as_str).collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn what_is_no_name_of_a_saved_filter_is_refused_with_its_place() {
    for (text, position, says) in [
        ("@", 1, "expected the name of a saved filter"),
        ("a=x and @ old", 10, "expected the name of a saved filter"),
        ("@Old", 1, "is not a valid filter name"),
        ("@old = 3", 5, "expected 'and', 'or' or the end"),
        ("a=kim@example", 5, "a value with '@' is quoted"),
        ("a@old", 1, "a value with '@' is quoted"),
        ("exists(@old)", 7, "expected a field"),
        ("any @old", 4, "expected a field"),
        ("a in (@old)", 6, "expected a value"),
    ] {
        let error = draft(text).unwrap_err();
        assert!(error.position == position && error.reason.contains(says), "{text}: {error}");
    }
}

#[test]
fn what_cannot_be_written_out_is_refused_with_what_leads_to_it() {
    assert_eq!(refused("a=x and @b", &[]), (8, "there is no saved filter b".into()));
    let saved = [("a", "b=x or @b"), ("b", "@c"), ("d", "@e"), ("e", "@d"), ("f", "a <")];
    assert_eq!(refused("not @a", &saved), (4, "@a → @b → @c: there is no saved filter c".into()));
    let circle = "saved filters name each other in a circle: @d → @e → @d";
    assert_eq!(refused("a=x @d", &saved), (4, circle.into()));
    let own = resolve_as(Some("d"), "a=x and @e", &saved).unwrap_err();
    assert_eq!((own.position, &*own.reason), (8, circle));
    let own = resolve_as(Some("f"), "@f", &saved).unwrap_err();
    assert_eq!(own.reason, "saved filters name each other in a circle: @f → @f");
    assert_eq!(
        refused("@f", &saved),
        (0, "saved filter f: invalid filter at position 3: expected a value".to_string())
    );
    let own = resolve_as(Some("new"), "@ghost or @a", &saved).unwrap_err();
    assert_eq!(own.reason, "there is no saved filter ghost");
    let own = resolve_as(Some("new"), "@a", &saved).unwrap_err();
    assert_eq!(own.reason, "@a → @b → @c: there is no saved filter c");
    let sentence = draft("a=x and @b").unwrap().without_saved("none is allowed").unwrap_err().to_string();
    assert_eq!(sentence, "invalid filter at position 8: @b is a saved filter, and none is allowed");
}

#[test]
fn at_most_eight_saved_filters_name_each_other() {
    let saved: Vec<(String, String)> =
        (1..10).map(|number| (format!("f{number}"), format!("@f{}", number + 1))).collect();
    let mut saved: Vec<(&str, &str)> =
        saved.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    saved.push(("f10", "a=x"));
    assert_eq!(names(&resolve("@f3", &saved).unwrap()), ["web-1", "web-2"]);
    let chain = (2..=10).map(|number| format!("@f{number}")).collect::<Vec<_>>().join(" → ");
    let says = format!("more than 8 saved filters name each other: {chain}");
    assert_eq!(refused("a=y or @f2", &saved), (7, says));
    assert!(resolve_as(Some("f3"), "@f4", &saved).is_ok());
    assert!(resolve_as(Some("f2"), "@f3", &saved).is_err());
}

#[test]
fn what_is_written_out_has_the_limits_of_all_filters() {
    let long = format!("a in ({}x)", "x,".repeat(1_000));
    let saved = [("long", &*long), ("twice", "@long and @long"), ("thrice", "@twice or @long")];
    assert!(resolve("@twice", &saved).is_ok());
    let (position, reason) = refused("a=x or @thrice", &saved);
    let says = "@thrice → @long: with it written out, the filter is longer than 4096 bytes";
    assert_eq!((position, &*reason), (7, says));
    let padded = format!("{} or @long", long.replace("a in", "b in"));
    let padded = format!("@long or {padded}{}", " ".repeat(40));
    assert_eq!(refused(&padded, &saved).0, padded.find(" @long").unwrap() + 1);
    let deep = format!("{}a=x{}", "(".repeat(20), ")".repeat(20));
    let saved = [("deep", &*deep), ("deeper", "not not not @deep")];
    assert!(resolve("@deeper", &saved).is_ok());
    let outer = format!("b=x or {}@deeper{}", "(".repeat(8), ")".repeat(8));
    let (position, reason) = refused(&outer, &saved);
    let says = "@deeper → @deep: with saved filters written out, it is nested deeper than 32";
    assert_eq!((position, &*reason), (15, says));
    let many = [("many", &*"@none ".repeat(600)), ("none", "@less @less"), ("less", "a=x a=x")];
    assert!(refused("@many @many", &many).1.ends_with("longer than 4096 bytes"));
}

/// Filters that name saved filters.
fn texts() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[ab]=[xy]",
        "@[pq]",
        Just("all".to_string()),
        "name != \"@p\"",
        "[ab] not in \\([xy], z\\)"
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let join = prop_oneof![Just(" and "), Just(" or "), Just(", "), Just(" ")];
        prop_oneof![
            inner.clone().prop_map(|inner| format!("not ({inner})")),
            (inner.clone(), join, inner.clone()).prop_map(|(one, join, other)| format!("{one}{join}{other}")),
            (inner.clone(), inner).prop_map(|(one, other)| format!("Or({one}, Not({other}))")),
        ]
    })
}

proptest! {
    /// The law of saved filters: a filter that names them means the same as with their texts in their places.
    #[test]
    fn what_is_written_out_is_what_a_person_would_write(text in texts(), p in "[ab]=[xy]( or [ab]=[xy])?", q in "not @p|@p and a=x|b") {
        let filter = resolve(&text, &[("p", &p), ("q", &q)]).unwrap();
        let inner = q.replace("@p", &format!("({p})"));
        let by_hand = text.replace("\"@p\"", "\"quoted\"").replace("@q", &format!("({inner})")).replace("@p", &format!("({p})"));
        let by_hand = by_hand.replace("\"quoted\"", "\"@p\"");
        prop_assert_eq!(filter.as_str(), &by_hand);
        prop_assert_eq!(names(&filter), names(&Filter::parse(&by_hand, &FIELDS).unwrap()));
        prop_assert_eq!(Filter::parse(filter.as_str(), &FIELDS).unwrap().to_string(), by_hand);
    }

    #[test]
    fn no_text_with_saved_filters_is_too_much(text in "[ab=@()!, ]{0,40}", p in "[ab=@pq() ]{0,20}", q in "[ab=@pq() ]{0,20}") {
        match resolve(&text, &[("a", &p), ("b", &q), ("p", &q), ("q", "a=x")]) {
            Ok(filter) => prop_assert_eq!(Filter::parse(filter.as_str(), &FIELDS).unwrap(), filter),
            Err(error) => prop_assert!(error.position <= text.len() && text.is_char_boundary(error.position)),
        }
    }
}
