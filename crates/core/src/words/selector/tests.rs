use alloc::string::ToString;

use proptest::prelude::*;

use super::*;
use crate::words::label::Label;

fn labels(text: &str) -> Labels {
    let mut labels = Labels::default();
    for label in text.split_whitespace() {
        labels.set(label.parse::<Label>().unwrap()).unwrap();
    }
    labels
}

fn picks(selector: &str, name: &str, with: &str) -> bool {
    Selector::parse(selector).unwrap().picks(name, &labels(with))
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
}

#[test]
fn a_broken_selector_is_refused_with_its_place() {
    let cases = [
        ("", "invalid selector at position 0: it is empty; write 'all' for every node"),
        ("role=", "invalid selector at position 5: expected a value"),
        (
            "role=web zone=a",
            "invalid selector at position 9: expected 'and', 'or' or the end of the selector",
        ),
        ("(role=web", "invalid selector at position 9: expected ')'"),
        ("zone in a", "invalid selector at position 8: expected '(' after 'in'"),
        ("=web", "invalid selector at position 0: expected a label key, 'name', 'not', 'all' or '('"),
        (
            "role=web and",
            "invalid selector at position 12: expected a label key, 'name', 'not', 'all' or '('",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(Selector::parse(text).unwrap_err().to_string(), message, "{text:?}");
    }
}

#[test]
fn deep_and_long_selectors_are_refused_not_overflowed() {
    assert!(Selector::parse(&"(".repeat(4_000)).is_err());
    assert!(Selector::parse(&"not ".repeat(1_000)).is_err());
    assert!(Selector::parse(&"a".repeat(5_000)).is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_within_its_length(text in "[a-z=!(), notinand]{0,60}|\\PC{0,60}") {
        if let Err(error) = Selector::parse(&text) {
            prop_assert!(error.position <= text.len());
        }
    }
}
