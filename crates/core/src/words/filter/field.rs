//! Fields that a filter may test: one table for each kind of listed thing.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use crate::words::role_params::ROLE_PARAMS;

/// What the values of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A text.
    Text,
    /// A text that is compared as a number where a number is asked for.
    Label,
    /// Any JSON value. A list matches if one of its items does.
    Any,
    /// A set of texts: it is equal to each of them.
    Names,
    /// Yes or no.
    Flag,
    /// A number.
    Number,
    /// A duration.
    Duration,
}

/// A field of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSpec {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub kind: FieldType,
    /// Whether a key follows its name: `label.KEY` or `label["KEY"]`.
    pub is_keyed: bool,
    /// Whether its values are words with `_`, such as `rolled_back`: it may be written with blanks, as it is shown to people.
    pub is_word: bool,
    /// Whether it is recorded data of the thing itself: what a standing filter may use.
    pub is_standing: bool,
    /// What it is, in Markdown, without a full stop.
    pub doc: &'static str,
    /// Where its value is in the listed thing as JSON: a JSON Pointer (RFC 6901); empty if it is found in another way.
    pub pointer: &'static str,
}

impl FieldSpec {
    /// A field that changes only when somebody changes it.
    #[must_use]
    pub const fn recorded(name: &'static str, kind: FieldType, doc: &'static str) -> Self {
        Self { name, kind, is_keyed: false, is_word: false, is_standing: true, doc, pointer: "" }
    }

    /// A field that changes by itself.
    #[must_use]
    pub const fn changing(name: &'static str, kind: FieldType, doc: &'static str) -> Self {
        Self { name, kind, is_keyed: false, is_word: false, is_standing: false, doc, pointer: "" }
    }

    /// The same field, whose value is there in the listed thing as JSON.
    #[must_use]
    pub const fn at(mut self, pointer: &'static str) -> Self {
        self.pointer = pointer;
        self
    }

    /// The same field, whose values are words.
    #[must_use]
    pub const fn word(mut self) -> Self {
        self.is_word = true;
        self
    }

    /// The same field with a key.
    #[must_use]
    pub const fn keyed(mut self) -> Self {
        self.is_keyed = true;
        self
    }
}

/// The fields of one kind of thing. If it has a keyed field `label`, a bare name that is no field is a label.
#[derive(Debug)]
pub struct FieldTable {
    /// What is listed, in the plural.
    pub plural: &'static str,
    /// Its fields.
    pub fields: &'static [FieldSpec],
    /// The fields that are shown of each in a slim list; none of them has a key.
    pub slim: &'static [&'static str],
}

impl FieldTable {
    /// The field of this name.
    pub(super) fn get(&self, name: &str) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|spec| spec.name == name)
    }

    /// The keyed field for which a bare name stands before an operator that is a symbol.
    pub(super) fn bare(&self) -> Option<&'static FieldSpec> {
        self.get("label")
    }

    /// The keyed field for which a bare name stands before an operator that is a word: a param where there are params.
    pub(super) fn bare_in_words(&self) -> Option<&'static FieldSpec> {
        self.get("param").or_else(|| self.bare())
    }
}

/// A field, with its key if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    spec: &'static FieldSpec,
    key: Arc<str>,
}

impl Field {
    pub(super) fn new(spec: &'static FieldSpec, key: &str) -> Self {
        Self { spec, key: key.into() }
    }

    /// Its name in the table.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.spec.name
    }

    /// Its key; empty if it has none.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Where its value is in the listed thing as JSON; empty if it is found in another way.
    #[must_use]
    pub const fn pointer(&self) -> &'static str {
        self.spec.pointer
    }

    /// What its values are.
    #[must_use]
    pub const fn kind(&self) -> FieldType {
        self.spec.kind
    }

    /// Whether its values are words with `_`.
    pub(super) const fn is_word(&self) -> bool {
        self.spec.is_word
    }

    /// Whether it is recorded data, which changes only when somebody changes it. Params that a cluster gives by roles are not.
    #[must_use]
    pub fn is_standing(&self) -> bool {
        self.spec.is_standing && !(self.spec.name == "param" && ROLE_PARAMS.contains(&&*self.key))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec.name)?;
        if self.spec.is_keyed { write!(f, "[{:?}]", &*self.key) } else { Ok(()) }
    }
}

/// What is allowed with a field of a type; fits after "it is ".
pub(super) fn allowed(kind: FieldType) -> String {
    match kind {
        FieldType::Text => "a text: compare it by = != in =~",
        FieldType::Label => "a label: compare it by = != in =~, or with a number by < <= > >=",
        FieldType::Any => "a JSON value",
        FieldType::Names => "a set of names: compare it by = != in =~",
        FieldType::Flag => "true or false: write it alone, or compare it by = !=",
        FieldType::Number => "a number: compare it by = != in < <= > >=",
        FieldType::Duration => "a duration: compare it with one, such as 10m, by < <= > >=",
    }
    .into()
}
