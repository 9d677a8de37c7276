//! Mistyped words, and the nearest known one.

pub(crate) use bellwether_core::words::near::nearest;

use crate::complaint::plain;

/// A deserializer's error about an unknown field or variant, with the nearest known one instead of the whole list; one about a value
/// of another type without words of Rust.
pub(crate) fn improved(complaint: &str) -> String {
    let Some((what, rest)) = complaint.split_once(", expected ") else { return complaint.to_owned() };
    let unknown = ["unknown field `", "unknown variant `", "unknown value `"].into_iter().find_map(|start| {
        let (_, word) = what.rsplit_once(start)?;
        word.strip_suffix('`')
    });
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let Some(near) = unknown.and_then(|word| nearest(word, known.iter().copied())) else {
        return plain(complaint);
    };
    let place = rest.rfind(" at line ").and_then(|at| rest.get(at..)).unwrap_or_default();
    format!("{what}{place}; did you mean {near}?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_the_nearest_word_and_keeps_its_place() {
        let said = "policy: unknown field `batsh`, expected one of `batch`, `soak` at line 5 column 3";
        assert_eq!(improved(said), "policy: unknown field `batsh` at line 5 column 3; did you mean batch?");
        let far = "unknown field `colour`, expected `batch` or `soak`";
        assert_eq!(improved(far), far);
        assert_eq!(improved("missing field `name`"), "missing field `name`");
    }
}
