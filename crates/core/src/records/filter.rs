//! Saved filters: texts that filters of a list name as `@NAME`. Written only by operations.

use alloc::string::String;

use crate::records::annotation::Annotation;
use crate::words::counter::FilterRevision;
use crate::words::name::{FilterName, ListName};

/// A saved filter of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedFilter {
    /// Its name.
    pub name: FilterName,
    /// Number of its last change, from 1.
    pub revision: FilterRevision,
    /// The list that it is of.
    pub of: ListName,
    /// The filter as a text, which may name other saved filters; it was valid when it was saved.
    pub text: String,
    /// What it is for; may be empty.
    pub description: String,
    /// Who changed it last, and when.
    pub annotation: Annotation,
}
