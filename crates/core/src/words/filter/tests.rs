use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;

use proptest::prelude::*;

use super::field::{FieldSpec, FieldType};
use super::*;
use crate::words::value::{Number, Value};

/// Fields of every type.
static FIELDS: FieldTable = FieldTable {
    plural: "nodes",
    fields: &[
        FieldSpec::recorded("name", FieldType::Text, ""),
        FieldSpec::recorded("label", FieldType::Label, "").keyed(),
        FieldSpec::recorded("param", FieldType::Any, "").keyed(),
        FieldSpec::recorded("fact", FieldType::Any, "").keyed(),
        FieldSpec::recorded("profile", FieldType::Names, ""),
        FieldSpec::changing("service", FieldType::Names, ""),
        FieldSpec::changing("status", FieldType::Text, "").keyed(),
        FieldSpec::changing("version", FieldType::Text, "").keyed(),
        FieldSpec::changing("state", FieldType::Text, "").word(),
        FieldSpec::changing("cordoned", FieldType::Flag, ""),
        FieldSpec::changing("drained", FieldType::Flag, ""),
        FieldSpec::changing("paused", FieldType::Flag, ""),
        FieldSpec::changing("count", FieldType::Number, ""),
        FieldSpec::changing("age", FieldType::Duration, ""),
    ],
    slim: &["name"],
};

/// Fields without labels.
static PLAIN: FieldTable = FieldTable {
    plural: "events",
    fields: &[
        FieldSpec::recorded("kind", FieldType::Text, ""),
        FieldSpec::recorded("actor", FieldType::Text, ""),
    ],
    slim: &["kind"],
};

fn parse(text: &str) -> Result<Filter, FilterError> {
    Filter::parse(text, &FIELDS)
}

/// The values of a node by the text of their fields.
struct Node(BTreeMap<String, Value>);

impl FilterSubject for Node {
    fn value(&self, field: &Field) -> Option<FieldValue<'_>> {
        let value = self.0.get(&field.to_string())?;
        let text = match value {
            Value::Text(text) => Some(FieldValue::Text(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_) => None,
        };
        text.or_else(|| Some(FieldValue::Value(value.clone())))
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn number(value: i64) -> Value {
    Value::Number(Number::integer(value))
}

fn node() -> Node {
    let names = |names: &[&str]| Value::List(names.iter().map(|name| text(name)).collect());
    let all = [
        ("name", text("web-1")),
        ("label[\"role\"]", text("web")),
        ("label[\"memory_gib\"]", text("128")),
        ("label[\"gpu\"]", text("")),
        ("param[\"cluster/leader\"]", Value::Bool(true)),
        ("param[\"cluster/manager\"]", Value::Bool(false)),
        ("param[\"size\"]", Value::Number(Number::float(4.5).unwrap())),
        ("param[\"nothing\"]", Value::Null),
        ("fact[\"cpus\"]", number(16)),
        ("profile", names(&["k3s", "base"])),
        ("service", names(&["mysql"])),
        ("status[\"puppet\"]", text("failed")),
        ("version[\"app\"]", text("v3")),
        ("cordoned", Value::Bool(false)),
        ("paused", Value::Bool(true)),
        ("state", text("rolled_back")),
        ("count", number(3)),
        ("age", number(700_000)),
    ];
    Node(all.into_iter().map(|(field, value)| (field.to_string(), value)).collect())
}

#[test]
fn filters_match_what_they_say() {
    let node = node();
    let yes = [
        "all",
        "role=web and version.app!=v4 and not cordoned",
        "role in (db, web)",
        "state = \"rolled back\" state = rolled_back",
        "state in ('rolled back', failed) and state != 'in progress'",
        "zone not in (a,b)",
        "memory_gib >= 64",
        "memory_gib < 1e3 memory_gib > 127.5",
        "name =~ \"^web-\"",
        "name !~ '^db'",
        "param[\"cluster/leader\"] = true",
        "param.cluster/leader = true",
        "param.size > 4 and param.size = 4.50",
        "param.nothing = null and exists(param.nothing)",
        "fact.cpus = 16 and fact.cpus = 16.0",
        "profile = k3s profile=base",
        "not profile = k8s",
        "any service = mysql",
        "service",
        "status.puppet = failed",
        "age > 10m and age <= 700s",
        "count = 3 and count > 2.5 and count in (1, 3) and count != 4",
        "role=web,zone!=a, not cordoned",
        "exists(label.gpu) and gpu = \"\"",
        "paused and paused = true",
        "(role=db or role=web) and not (cordoned or drained)",
        "cluster/manager Eq false cluster/leader Eq true",
        "And(Or(role Eq db, name Eq web-1), Not(fact.cpus Lt 4))",
        "fact.cpus Between (8, 16) param.size Except (5, 6)",
        "fact.cpus In (8, 16) param.size Nin (1, 2) name Re ^web",
        "profile Eq k3s name Ne x fact.cpus Gte 16 fact.cpus Lte 16 fact.cpus Gt 15",
    ];
    for filter in yes {
        let read = parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
        assert!(read.matches(&node), "{filter}");
        assert!(!parse(&format!("not ({filter})")).unwrap().matches(&node), "{filter}");
    }
    let no = [
        "param.cluster/leader = \"true\"",
        "fact.cpus = \"16\"",
        "memory_gib = 128.0",
        "role > 1",
        "fact.os = linux",
        "fact.missing < 3",
        "cordoned",
        "drained",
        "drained = false",
    ];
    for filter in no {
        assert!(!parse(filter).unwrap().matches(&node), "{filter}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (filter, position, says) in [
        ("", 0, "it is empty; write 'all'"),
        ("role=", 5, "expected a value"),
        ("role=web and", 12, "expected a field"),
        ("role=web or or", 12, "expected a field"),
        ("(role=web", 9, "expected ')'"),
        ("role in web", 8, "expected '('"),
        ("role in (web db)", 13, "expected ',' or ')'"),
        ("name < 3", 5, "name is a text: compare it by = != in =~"),
        ("role > web", 7, "expected a number"),
        ("count = many", 8, "count is a number"),
        ("count =~ 3", 6, "count is a number: compare it"),
        (
            "not cordend",
            4,
            "cordend is not a field; did you mean cordoned? For the label write label.cordend",
        ),
        ("facts[\"cpus\"] > 3", 0, "nodes have no field facts; did you mean fact?"),
        ("age", 0, "age is a duration"),
        ("age = 10m", 4, "age is a duration: compare it with one, such as 10m"),
        ("age > soon", 6, "age is a duration, such as 10m"),
        ("cordoned = maybe", 11, "cordoned is true or false"),
        ("cordoned in (true)", 9, "cordoned is true or false"),
        ("profile > a", 8, "profile is a set of names"),
        ("param = 1", 0, "param needs a key"),
        ("label[\"a b\"]", 0, "is not a valid key of label"),
        ("name =~ \"(\"", 8, "not a valid regular expression"),
        ("name = \"web", 7, "the quoted text has no end"),
        ("role=web)", 8, "expected 'and', 'or' or the end"),
        ("=web", 0, "expected a field"),
        ("fact.cpus Between (1)", 20, "expected ','"),
    ] {
        let error = parse(filter).unwrap_err();
        assert!(error.position == position && error.reason.contains(says), "{filter}: {error}");
    }
    let error = Filter::parse("kind=x and acter=kim", &PLAIN).unwrap_err();
    assert_eq!((error.position, &*error.reason), (11, "events have no field acter; did you mean actor?"));
    let error = Filter::parse("label.x=1", &PLAIN).unwrap_err();
    assert_eq!(error.reason, "events have no field label.x; fields: kind, actor");
    let deep = format!("{}role=web{}", "(".repeat(40), ")".repeat(40));
    assert!(parse(&deep).unwrap_err().reason.contains("nested deeper than 32"));
    assert!(parse(&"a".repeat(5_000)).unwrap_err().reason.contains("longer than 4096"));
    let large = format!("name =~ \"{}\"", "(a{200}){200}");
    assert!(parse(&large).unwrap_err().reason.contains("regular expression"));
}

#[test]
fn a_field_that_changes_by_itself_is_named() {
    for standing in ["all", "role=web", "param.a = 1 or profile = b", "fact.cpus > 3", "name = x"] {
        assert_eq!(parse(standing).unwrap().unsteady_field(), None, "{standing}");
    }
    let once = parse("role=web and (zone=a or not age > 10m) and cordoned").unwrap();
    let found = once.unsteady_field().map(|(field, position)| (field.name(), position));
    assert_eq!(found, Some(("age", 28)));
}

proptest! {
    #[test]
    fn no_text_is_too_much_for_the_parser(text in "[a-c=!<>~()\\[\\]\"', .]{0,60}") {
        if let Ok(filter) = parse(text.trim_start()) {
            let again = parse(filter.as_str()).unwrap();
            prop_assert_eq!(again, filter);
        }
    }

    #[test]
    fn errors_lie_within_the_text(text in "\\PC{0,40}") {
        if let Err(error) = parse(&text) {
            prop_assert!(error.position <= text.len());
            prop_assert!(text.is_char_boundary(error.position));
        }
    }
}

#[test]
fn blanks_around_a_filter_do_not_make_it_another_one() {
    let plain = parse("role=web and not zone=b").unwrap();
    assert_eq!(parse("  role=web and not zone=b "), Ok(plain.clone()));
    assert_ne!(parse("role=web and not zone=c"), Ok(plain));
}

#[test]
fn quoted_texts_of_any_script_end_where_they_end() {
    let filter = parse("name = '蚠 é' and not (label.role = \"ü\")").unwrap();
    let node = |name: &str, role: &str| {
        Node(BTreeMap::from([("name".into(), text(name)), ("label[\"role\"]".into(), text(role))]))
    };
    assert!(filter.matches(&node("蚠 é", "web")));
    assert!(!filter.matches(&node("蚠 é", "ü")) && !filter.matches(&node("蚠", "web")));
    // An input that fuzzing found.
    drop(parse("nserviceAz='=蚠'"));
    for after in ["'", " and"] {
        assert!(parse(&format!("name = '蚠é'{after}")).is_err(), "{after}");
    }
}

#[test]
fn so_many_regular_expressions_are_enough_and_more_are_refused() {
    let text = |count: usize| alloc::vec!["name =~ \"^web-\""; count].join(" or ");
    assert!(parse(&text(MAX_FILTER_PATTERNS)).unwrap().has_patterns());
    let refused = parse(&text(MAX_FILTER_PATTERNS + 1)).unwrap_err();
    assert!(refused.reason.contains("more than 16 regular expressions"), "{refused:?}");
    assert!(!parse("name = web-1").unwrap().has_patterns());
}
