//! The facts of a node, for people.

use bellwether_api::v1::node::NodeView;
use serde_json::Value;

use crate::show::time::date;

/// The facts, one a line and a line for each disk; and that a rescan is not done yet.
pub(super) fn lines(view: &NodeView) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in view.facts.iter().flat_map(|facts| &facts.facts) {
        match value {
            Value::Array(items) if items.iter().any(Value::is_object) => {
                lines.extend(items.iter().map(|item| format!("fact      {name}: {}", text(item))));
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => lines.push(format!("fact      {name}={}", text(value))),
        }
    }
    let (done, at) =
        view.facts.as_ref().map_or((0, None), |facts| (facts.rescan, Some(facts.received_at_ms)));
    if view.node.rescan > done {
        let since = at.map_or_else(String::new, |at| format!("; the facts are of {}", date(at)));
        lines.push(format!("rescan    requested, and not done yet{since}"));
    }
    lines
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}={}", text(value)));
            members.collect::<Vec<_>>().join(" ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
