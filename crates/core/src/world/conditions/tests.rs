use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::words::filter::conditions::CONDITIONS;

/// A filter over conditions, with the names that the subjects below have, and one that none has.
fn filters() -> impl Strategy<Value = String> {
    let name = prop_oneof![Just("condition"), Just("cluster"), Just("node"), Just("probe")];
    let value =
        prop_oneof![Just("no_primary"), Just("store_down"), Just(NODE_UNREACHABLE), Just("a"), Just("b")];
    let test = (name, value, 0..4_u8).prop_map(|(name, value, form)| match form {
        0 => format!("{name} = {value}"),
        1 => format!("{name} != {value}"),
        2 => String::from(name),
        _ => format!("{name} in ({value}, c)"),
    });
    test.prop_recursive(3, 12, 3, |inner| {
        let parts = proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            inner.prop_map(|inner| format!("not ({inner})")),
            parts.clone().prop_map(|parts| format!("({})", parts.join(" and "))),
            parts.prop_map(|parts| format!("({})", parts.join(" or "))),
        ]
    })
}

proptest! {
    #[test]
    fn a_condition_that_a_filter_matches_is_among_those_that_it_may_match(text in filters()) {
        let filter = Filter::parse(&text, &CONDITIONS).unwrap();
        let names: Vec<_> = matching(&filter).collect();
        for (name, subject) in [
            ("no_primary", "cluster/a/b"),
            ("no_primary", "cluster/b/a"),
            ("store_down", "store/a/a"),
            ("store_down", "store/b/b"),
            (NODE_UNREACHABLE, "node/a"),
            (NODE_UNREACHABLE, "node/b"),
        ] {
            let subject: ConditionSubject = subject.parse().unwrap();
            for cluster in [None, Some("a".parse().unwrap()), Some("b".parse().unwrap())] {
                let is_of = !matches!(&subject, ConditionSubject::Cluster(own, _) if cluster.as_ref() != Some(own));
                let condition =
                    TrueCondition { name, subject: &subject, cluster: cluster.as_ref(), since: Timestamp::EPOCH };
                let may = names.contains(&name);
                prop_assert!(!is_of || may || !filter.matches(&condition), "{text} matches {condition:?}");
            }
        }
    }
}

#[test]
fn what_no_condition_can_be_is_found() {
    let names = |text: &str| matching(&Filter::parse(text, &CONDITIONS).unwrap()).collect::<Vec<_>>();
    assert_eq!(names("condition = node_unreachable and probe = a"), Vec::<&str>::new());
    assert_eq!(names("node and not probe"), [NODE_UNREACHABLE]);
    assert_eq!(names("condition in (no_primary, store_down) and not node = a"), ["store_down", "no_primary"]);
}
