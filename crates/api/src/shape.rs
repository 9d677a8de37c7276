//! Reading of shapes: the error that names the field, and conversions that all shapes use.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use bellwether_core::words::filter::FilterError;
use bellwether_core::words::selector::Selector;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A shape with a value that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct ShapeError {
    /// Path of the field, like `policy.batch`.
    pub place: String,
    /// What is wrong with the value.
    pub reason: String,
    /// Byte position in the value from 0, where it is a text with a grammar.
    pub position: Option<usize>,
}

impl ShapeError {
    /// An error at a field.
    pub fn at(place: &str, reason: impl fmt::Display) -> Self {
        Self { place: place.to_owned(), reason: plain(&reason.to_string()), position: None }
    }

    /// An error in a filter.
    #[must_use]
    pub fn misread(place: &str, error: &FilterError) -> Self {
        Self { position: Some(error.position), ..Self::at(place, error) }
    }

    /// The same error with the name of the enclosing field before its path.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        Self { place: format!("{outer}.{}", self.place), ..self }
    }
}

/// A parser's complaint in plain words: those of the standard library and of serde name types of the program.
fn plain(reason: &str) -> String {
    match reason {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            return "write a whole number".to_owned();
        }
        "number too large to fit in target type" => return "the number is too large".to_owned(),
        "number too small to fit in target type" => return "the number is too small".to_owned(),
        "provided string was not `true` or `false`" => return "write true or false".to_owned(),
        _ => {}
    }
    // The type stands last: a value that was sent stands before it, and may say anything.
    let plain = reason.rsplit_once(", expected ").and_then(|(before, rest)| {
        let (kind, position) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
        Some(format!("{before}, expected {}{position}", whole_number(kind)?))
    });
    plain.unwrap_or_else(|| reason.to_owned()).replace("unknown variant `", "unknown value `")
}

/// The values of an integer type of Rust, in words; `None` for another type.
#[must_use]
pub fn whole_number(kind: &str) -> Option<String> {
    let (least, most) = match kind {
        "u8" => (0, u64::from(u8::MAX)),
        "u16" => (0, u64::from(u16::MAX)),
        "u32" => (0, u64::from(u32::MAX)),
        "u64" | "usize" => (0, u64::MAX),
        "i32" => (i64::from(i32::MIN), u64::from(i32::MAX.unsigned_abs())),
        "i64" => (i64::MIN, i64::MAX.unsigned_abs()),
        _ => return None,
    };
    Some(format!("a whole number from {least} to {most}"))
}

/// Reads a shape from an object only: serde also takes a list of a struct's fields, so that `[]` would mean every default.
///
/// # Errors
/// Those of the shape, and anything but an object.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_map(ObjectVisitor(PhantomData))
}

/// As [`object`], of a field that may be null.
///
/// # Errors
/// As [`object`].
pub fn some_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    let read = Option::<Object<T>>::deserialize(from)?;
    Ok(read.map(|Object(shape)| shape))
}

struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        object(from).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Reads an amount or a share written as text, or a count written as a number.
///
/// # Errors
/// Anything but text or a whole number.
pub fn text_or_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<TextOrCount>::deserialize(from)?.map(|TextOrCount(text)| text))
}

struct TextOrCount(String);

impl<'de> Deserialize<'de> for TextOrCount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TextOrCountVisitor).map(Self)
    }
}

struct TextOrCountVisitor;

impl Visitor<'_> for TextOrCountVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a count, or a share like \"5%\"")
    }

    fn visit_u64<E>(self, count: u64) -> Result<String, E> {
        Ok(count.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<String, E> {
        u64::try_from(count).map(|count| count.to_string()).map_err(|_| E::custom("a count is not negative"))
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

/// Collects pairs into a map; of two pairs with the same key, the later one wins.
///
/// It inserts the pairs one by one. `collect` sorts them first, and a stable sort compiled for each of the
/// many map types made up a quarter of this crate's code.
pub fn map_from<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(pairs);
    map
}

/// Collects pairs into a map, as [`map_from`].
///
/// # Errors
/// The first error among the pairs.
pub fn try_map_from<K: Ord, V, E>(
    pairs: impl IntoIterator<Item = Result<(K, V), E>>,
) -> Result<BTreeMap<K, V>, E> {
    let mut map = BTreeMap::new();
    for pair in pairs {
        let (key, value) = pair?;
        map.insert(key, value);
    }
    Ok(map)
}

/// Parses a field with its type's own parser.
///
/// # Errors
/// [`ShapeError`] at `place`, with the parser's reason.
pub fn read<T>(place: &str, text: &str) -> Result<T, ShapeError>
where
    T: std::str::FromStr,
    T::Err: fmt::Display,
{
    text.parse().map_err(|error| ShapeError::at(place, error))
}

/// Parses a selector.
///
/// # Errors
/// [`ShapeError`] at `place`, with the position.
pub fn selector(place: &str, text: &str) -> Result<Selector, ShapeError> {
    Selector::parse(text).map_err(|error| ShapeError::misread(place, &error))
}

/// Parses a field that may be absent.
///
/// # Errors
/// As [`read`].
pub fn read_some<T>(place: &str, text: Option<&str>) -> Result<Option<T>, ShapeError>
where
    T: std::str::FromStr,
    T::Err: fmt::Display,
{
    text.map(|text| read(place, text)).transpose()
}

/// Checks the reason for an operation and trims it; it may be empty.
///
/// # Errors
/// [`ShapeError`] at `reason`.
pub fn reason(reason: &str) -> Result<String, ShapeError> {
    one_line("reason", reason, 512)
}

/// A text of one line, without control characters and without blanks around it; it may be empty. `longest` is in bytes.
///
/// # Errors
/// [`ShapeError`] at `place`.
pub fn one_line(place: &str, text: &str, longest: usize) -> Result<String, ShapeError> {
    if let Some(control) = text.chars().find(|c| c.is_control()) {
        let reason =
            format!("must be one line of text; it has the control character {control:?}: leave it out");
        return Err(ShapeError::at(place, reason));
    }
    if text.len() > longest {
        return Err(ShapeError::at(place, format!("must be one line of at most {longest} bytes")));
    }
    Ok(text.trim().to_owned())
}

/// Checks a description: one line of at most `longest` bytes, as it was written.
///
/// # Errors
/// [`ShapeError`] at `description`.
pub fn description(text: &str, longest: usize) -> Result<(), ShapeError> {
    let refused = |reason: String| Err(ShapeError::at("description", reason));
    if text.len() > longest {
        return refused(format!("{} bytes; at most {longest} are allowed", text.len()));
    }
    match text.chars().find(|c| c.is_control()) {
        None => Ok(()),
        Some(c) => {
            refused(format!("must be one line of text; it has the control character {c:?}: leave it out"))
        }
    }
}

/// Whether a number is left out because it is zero.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_range_is_answered_with_the_range() {
        let said = |error: serde_json::Error| ShapeError::at("port", error).to_string();
        let port = serde_json::from_value::<u16>(serde_json::json!(70_000)).unwrap_err();
        assert_eq!(
            said(port),
            "port: invalid value: integer `70000`, expected a whole number from 0 to 65535"
        );
        let negative = serde_json::from_value::<u64>(serde_json::json!(-1)).unwrap_err();
        assert!(said(negative).ends_with("expected a whole number from 0 to 18446744073709551615"));
        let placed = serde_json::from_str::<u8>("300").unwrap_err();
        assert!(said(placed).ends_with("expected a whole number from 0 to 255 at line 1 column 3"));
        let text = serde_json::from_value::<i32>(serde_json::json!("a, expected u8")).unwrap_err();
        assert!(said(text).ends_with(" u8\", expected a whole number from -2147483648 to 2147483647"));
    }

    #[test]
    fn a_description_is_one_line_without_control_characters() {
        assert_eq!(description(" what it is: ü ", 20), Ok(()));
        assert_eq!(
            description("xxx", 2).unwrap_err().to_string(),
            "description: 3 bytes; at most 2 are allowed"
        );
        for bad in ["a\nb", "a\u{1b}[31m", "\u{9b}1m"] {
            let refused = description(bad, 20).unwrap_err().to_string();
            assert!(refused.starts_with("description: must be one line of text"), "{refused}");
        }
    }
}
