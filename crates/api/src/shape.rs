//! What it takes to read a shape: the error that names the place, and the small conversions every shape uses.

use std::collections::BTreeMap;
use std::fmt;

/// A shape that does not say something allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {place}: {reason}")]
pub struct ShapeError {
    /// Path of the field, like `policy.batch`.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ShapeError {
    /// An error at a place.
    pub fn at(place: &str, reason: impl fmt::Display) -> Self {
        Self { place: place.to_owned(), reason: reason.to_string() }
    }

    /// The same error, one level further out.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        Self { place: format!("{outer}.{}", self.place), reason: self.reason }
    }
}

/// Collects pairs into a map; of two pairs with one key the later wins.
///
/// It inserts pair by pair, as deserialising does. `collect` sorts first, and a stable sort compiled for each of the many types
/// of map was a quarter of this crate's code.
pub fn map_from<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(pairs);
    map
}

/// Collects pairs into a map, as [`map_from`].
///
/// # Errors
/// The first pair's that is an error.
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

/// Reads a field with a word's own parser.
///
/// # Errors
/// [`ShapeError`] at `place`, with the parser's own reason.
pub fn read<T>(place: &str, text: &str) -> Result<T, ShapeError>
where
    T: std::str::FromStr,
    T::Err: fmt::Display,
{
    text.parse().map_err(|error| ShapeError::at(place, error))
}

/// Reads a field that may be absent.
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

/// A person's reason, checked and without blanks around it; it may be empty.
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
    if text.len() > longest || text.chars().any(char::is_control) {
        return Err(ShapeError::at(place, format!("write one line of at most {longest} bytes")));
    }
    Ok(text.trim().to_owned())
}
