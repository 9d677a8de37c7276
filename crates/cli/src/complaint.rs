//! What a deserializer says of a value of another type, in the words of people who write files, not of Rust.

use bellwether_api::shape::whole_number;

/// Most characters that are shown of a value: longer ones are named by their type alone.
const SHOWN: usize = 40;

/// A complaint about a value of another type, like `invalid type: integer `5`, expected a string at line 3 column 10`, as
/// `it is the number 5, and not a string at line 3 column 10`. Any other complaint stays as it is.
pub(crate) fn plain(complaint: &str) -> String {
    let begin = ["invalid type: ", "invalid value: "].into_iter().find_map(|begin| {
        let at = complaint.find(begin)?;
        Some((complaint.get(..at)?, complaint.get(at + begin.len()..)?))
    });
    let Some((before, rest)) = begin else { return complaint.to_owned() };
    let Some((found, rest)) = rest.split_at_checked(end_of_value(rest)) else { return complaint.to_owned() };
    let Some(rest) = rest.strip_prefix(", expected ") else { return complaint.to_owned() };
    let (expected, place) =
        rest.split_at_checked(rest.rfind(" at line ").unwrap_or(rest.len())).unwrap_or((rest, ""));
    format!("{before}it is {}, and not {}{place}", value(found), wanted(expected))
}

/// Where the description of a value ends that begins this text. A string in it is quoted, and may contain anything.
fn end_of_value(text: &str) -> usize {
    let after_quote = |start: usize| {
        let mut escaped = false;
        let end = text.get(start..)?.char_indices().find(|(_, char)| {
            let ends = *char == '"' && !escaped;
            escaped = *char == '\\' && !escaped;
            ends
        })?;
        Some(start + end.0 + 1)
    };
    let quoted = text.strip_prefix("string \"").and_then(|_| after_quote("string \"".len()));
    quoted.or_else(|| text.find(", expected ")).unwrap_or(text.len())
}

/// A value that was found.
fn value(found: &str) -> String {
    let short = |text: &str| text.chars().count() <= SHOWN;
    let (kind, text) = found.split_once(' ').unwrap_or((found, ""));
    let number = found.split('`').nth(1).unwrap_or_default();
    match kind {
        "string" if short(text) => format!("the string {text}"),
        "string" => "a string".to_owned(),
        "integer" if short(number) => format!("the number {number}"),
        "floating" if short(number) => format!("the number {number}"),
        "integer" | "floating" => "a number".to_owned(),
        "boolean" => number.to_owned(),
        "unit" | "null" | "Option" => "empty".to_owned(),
        "sequence" => "a list".to_owned(),
        "map" => "a mapping".to_owned(),
        _ => found.to_owned(),
    }
}

/// What a value was to be.
fn wanted(expected: &str) -> String {
    match expected.split_once(' ').unwrap_or((expected, "")) {
        ("struct", name) => format!("a mapping with the fields of {}", spoken(name)),
        ("enum", name) => format!("a word for {}", spoken(name)),
        ("a", "map") | ("an", "object") => "a mapping".to_owned(),
        ("a", "sequence") => "a list".to_owned(),
        ("a", "boolean") => "true or false".to_owned(),
        ("f32" | "f64", "") => "a number".to_owned(),
        (kind, _) => whole_number(kind).unwrap_or_else(|| expected.to_owned()),
    }
}

/// The name of a type as words with an article: `a task step` of `TaskStep`, `an entity` of `EntityDocument`.
fn spoken(name: &str) -> String {
    let name = name.strip_suffix("Document").filter(|kind| !kind.is_empty()).unwrap_or(name);
    let mut words = String::new();
    for char in name.chars() {
        if char.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(char.to_lowercase());
    }
    let article = if words.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_type_is_told_without_words_of_rust() {
        let long = format!("invalid type: string \"{}, expected\", expected struct Script", "x".repeat(100));
        let cases = [
            (
                format!("steps[0].script: {long} at line 5 column 11"),
                "steps[0].script: it is a string, and not a mapping with the fields of a script at line 5 column 11",
            ),
            (
                "capacity: invalid type: string \"a \\\"b\\\", expected u8\", expected u32".to_owned(),
                "capacity: it is the string \"a \\\"b\\\", expected u8\", and not a whole number from 0 to 4294967295",
            ),
            (
                "invalid value: integer `-1`, expected u32 at line 3 column 2".to_owned(),
                "it is the number -1, and not a whole number from 0 to 4294967295 at line 3 column 2",
            ),
            (
                "a: invalid type: floating point `1.5`, expected i64".to_owned(),
                "a: it is the number 1.5, and not a whole number from -9223372036854775808 to 9223372036854775807",
            ),
            ("invalid type: map, expected a sequence".to_owned(), "it is a mapping, and not a list"),
            (
                "invalid type: sequence, expected struct EntityDocument".to_owned(),
                "it is a list, and not a mapping with the fields of an entity",
            ),
            (
                "invalid type: unit value, expected struct TaskStep".to_owned(),
                "it is empty, and not a mapping with the fields of a task step",
            ),
            ("invalid type: boolean `true`, expected a string".to_owned(), "it is true, and not a string"),
            ("missing field `name`".to_owned(), "missing field `name`"),
            ("invalid type: string \"a".to_owned(), "invalid type: string \"a"),
        ];
        for (said, expected) in cases {
            assert_eq!(plain(&said), expected);
        }
    }
}
