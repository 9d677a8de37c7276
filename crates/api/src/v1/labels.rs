//! Labels: requests, answers and stored records.

use std::collections::BTreeMap;

use bellwether_core::words::label::{Label, Labels};

use crate::shape::{ShapeError, map_from};

/// Converts labels to their shape.
#[must_use]
pub fn labels_out(labels: &Labels) -> BTreeMap<String, String> {
    map_from(labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())))
}

/// Reads labels.
///
/// # Errors
/// [`ShapeError`] at `labels.KEY`.
pub fn labels_in(from: &BTreeMap<String, String>) -> Result<Labels, ShapeError> {
    let mut labels = Labels::default();
    for (key, value) in from {
        let at = |error| ShapeError::at(&format!("labels.{key}"), error);
        labels.set(Label::new(key, value).map_err(at)?).map_err(at)?;
    }
    Ok(labels)
}
