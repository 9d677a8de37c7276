use alloc::format;
use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::words::value::Number;

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn number(value: i64) -> Value {
    Value::Number(Number::integer(value))
}

fn object(members: &[(&str, Value)]) -> Value {
    Value::Object(members.iter().map(|(name, value)| (Arc::from(*name), value.clone())).collect())
}

fn facts(facts: &[(&str, Value)]) -> Result<Facts, FactsError> {
    Facts::new(facts.iter().map(|(name, value)| (Arc::from(*name), value.clone())).collect())
}

fn reason(facts_with: &[(&str, Value)]) -> &'static str {
    facts(facts_with).unwrap_err().reason
}

#[test]
fn members_of_listed_objects_are_found_by_their_path() {
    let disk = |name: &str, size| object(&[("name", text(name)), ("size_gib", number(size))]);
    let facts = facts(&[
        ("cpus", number(4)),
        ("disks", Value::List(vec![disk("sda", 100), disk("sdb", 200)])),
        ("a.b", number(1)),
        ("a", object(&[("b", number(2)), ("c.d", number(3))])),
    ])
    .unwrap();
    assert_eq!(facts.get("cpus"), Some(number(4)));
    assert_eq!(facts.get("disks.size_gib"), Some(Value::List(vec![number(100), number(200)])));
    assert_eq!(facts.get("a.b"), Some(number(1)));
    assert_eq!(facts.get("a.c.d"), Some(number(3)));
    for nothing in ["", ".", "disks.", "disks.model", "cpus.x", "b"] {
        assert_eq!(facts.get(nothing), None, "{nothing}");
    }
    assert_eq!(facts.texts("disks", "name"), ["sda", "sdb"]);
    assert!(facts.texts("cpus", "name").is_empty());
}

#[test]
fn what_exceeds_a_limit_is_refused() {
    assert_eq!(reason(&[("a b", number(1))]), "it is not a valid name");
    assert_eq!(reason(&[("a", text(&"x".repeat(257)))]), "a text in it is longer than 256 bytes");
    assert_eq!(reason(&[("a", text("x\u{1b}[2J"))]), "a text in it contains a control character");
    assert_eq!(reason(&[("a", object(&[("x\n", number(1))]))]), "a text in it contains a control character");
    assert_eq!(reason(&[("a", Value::List(vec![Value::Null; 257]))]), "it has more than 256 items");
    let deep = |levels: usize| (1..levels).fold(number(1), |inner, _| Value::List(vec![inner]));
    assert!(facts(&[("a", deep(MAX_FACT_DEPTH))]).is_ok());
    assert_eq!(reason(&[("a", deep(MAX_FACT_DEPTH + 1))]), "it is nested too deeply");
    let many = (0..65).map(|index| (Arc::from(format!("fact{index}")), Value::Null)).collect();
    assert_eq!(Facts::new(many).unwrap_err().reason, "there are more than 64 facts");
    let large = Value::List(vec![text(&"x".repeat(256)); 256]);
    assert_eq!(reason(&[("a", large)]), "all facts together are too large");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(number),
        "[a\\n]{0,300}".prop_map(|made| text(&made)),
        "[a-c.]{0,4}".prop_map(|made| text(&made)),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::List),
            prop::collection::btree_map("[a-c.]{0,3}".prop_map(|name| Arc::from(name.as_str())), inner, 0..4)
                .prop_map(Value::Object),
        ]
    })
}

fn depth(value: &Value) -> usize {
    1 + match value {
        Value::List(items) => items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => 0,
    }
}

proptest! {
    #[test]
    fn what_is_accepted_is_within_the_limits(
        given in prop::collection::btree_map("[a-c. ]{0,3}", value(), 0..5),
        path in "[a-c.]{0,6}",
    ) {
        let given: BTreeMap<Arc<str>, Value> =
            given.into_iter().map(|(name, value)| (Arc::from(name.as_str()), value)).collect();
        if let Ok(facts) = Facts::new(given) {
            for (name, value) in facts.iter() {
                prop_assert!(is_key(name) && depth(value) <= MAX_FACT_DEPTH);
                let shown = format!("{value:?}");
                prop_assert!(!shown.contains("\\n"), "{}", shown);
            }
            drop(facts.get(&path));
        }
    }
}
