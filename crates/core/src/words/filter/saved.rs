//! Filters that name saved ones: a filter as it was read, and writing the saved filters out. Who finds them is the caller's affair.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::error::{FilterError, MAX_FILTER_BYTES};
use super::expression::{Expression, SavedTerm};
use super::field::FieldTable;
use super::{Filter, parse};
use crate::words::name::FilterName;

/// Most saved filters of which each names the next one: a person can still follow what such a filter means.
pub const MAX_SAVED_DEPTH: usize = 8;

/// The text of the saved filter of a name, or why there is none to use.
pub type FindSaved<'a, 't> = &'a dyn Fn(&FilterName) -> Result<&'t str, String>;

/// A filter that was read, in which `@NAME` stands for a saved filter. It matches nothing before those are written out.
#[derive(Debug, Clone)]
pub struct FilterDraft {
    text: String,
    table: &'static FieldTable,
    tree: Expression<SavedTerm>,
}

impl FilterDraft {
    /// Reads a filter over the fields of a table.
    ///
    /// # Errors
    /// [`FilterError`] with the position and what was expected there.
    pub fn parse(text: &str, table: &'static FieldTable) -> Result<Self, FilterError> {
        Ok(Self { text: text.into(), table, tree: parse::read(text, table)? })
    }

    /// The saved filters that it names, in the order of the text.
    #[must_use]
    pub fn saved(&self) -> Vec<&FilterName> {
        self.tree.saved().into_iter().map(|term| &term.name).collect()
    }

    /// The filter, if it names no saved filter. `why` says why it may not, and follows "and ".
    ///
    /// # Errors
    /// [`FilterError`] with the position of the first saved filter.
    pub fn without_saved(self, why: &str) -> Result<Filter, FilterError> {
        match self.tree.written_out() {
            Ok(tree) => Ok(Filter { text: self.text.trim().into(), tree }),
            Err(SavedTerm { name, position }) => {
                Err(FilterError { position, reason: format!("@{name} is a saved filter, and {why}") })
            }
        }
    }

    /// The filter with its saved filters written out: each stands for its text in parentheses. `own` is the name under which this
    /// filter itself is saved.
    ///
    /// # Errors
    /// [`FilterError`] with the position of the saved filter in this text, and those that lead from it to the one that is wrong:
    /// none of this name, one that names itself, more than [`MAX_SAVED_DEPTH`], or a filter beyond the limits of all filters.
    pub fn resolve(&self, own: Option<&FilterName>, find: FindSaved<'_, '_>) -> Result<Filter, FilterError> {
        if let Ok(tree) = self.tree.clone().written_out() {
            return Ok(Filter { text: self.text.trim().into(), tree });
        }
        let mut expansion = Expansion {
            table: self.table,
            find,
            chain: own.into_iter().cloned().collect(),
            own: usize::from(own.is_some()),
            first: 0,
            text: String::new(),
            written: Vec::new(),
        };
        expansion.write(self, true)?;
        Filter::parse(&expansion.text, self.table).map_err(|error| expansion.place(self, error))
    }
}

/// A filter that is being written out.
struct Expansion<'a, 't> {
    table: &'static FieldTable,
    find: FindSaved<'a, 't>,
    /// The saved filters whose text is being written, each named by the one before it.
    chain: Vec<FilterName>,
    /// How many of them are the filter that began it all.
    own: usize,
    /// Where the saved filter stands in the text that began it all.
    first: usize,
    text: String,
    /// The saved filters that are written out, each after those within it.
    written: Vec<Written>,
}

/// A saved filter that is written out.
struct Written {
    chain: Vec<FilterName>,
    /// Where its text begins and ends in the whole.
    start: usize,
    end: usize,
    /// Where it, or what leads to it, stands in the text that began it all.
    first: usize,
}

impl Expansion<'_, '_> {
    fn write(&mut self, draft: &FilterDraft, is_first: bool) -> Result<(), FilterError> {
        let mut end = 0;
        for term in draft.tree.saved() {
            self.text.push_str(draft.text.get(end..term.position).unwrap_or_default());
            if is_first {
                self.first = term.position;
            }
            let named = self.named(&term.name);
            named.map_err(|reason| FilterError { position: self.first, reason })?;
            end = term.position + term.len();
        }
        self.text.push_str(draft.text.get(end..).unwrap_or_default());
        Ok(())
    }

    /// Writes a saved filter, in parentheses.
    fn named(&mut self, name: &FilterName) -> Result<(), String> {
        let is_circle = self.chain.contains(name);
        self.chain.push(name.clone());
        if is_circle {
            return Err(format!("saved filters name each other in a circle: {}", chain(&self.chain)));
        }
        if self.chain.len() > MAX_SAVED_DEPTH {
            let chain = chain(&self.chain);
            return Err(format!("more than {MAX_SAVED_DEPTH} saved filters name each other: {chain}"));
        }
        let text = (self.find)(name).map_err(|reason| self.reason(&reason))?;
        let draft = FilterDraft::parse(text, self.table);
        let draft = draft.map_err(|error| self.reason(&format!("saved filter {name}: {error}")))?;
        let start = self.text.len();
        self.text.push('(');
        self.write(&draft, false).map_err(|error| error.reason)?;
        self.text.push(')');
        if self.text.len() > MAX_FILTER_BYTES {
            let reason = format!("with it written out, the filter is longer than {MAX_FILTER_BYTES} bytes");
            return Err(self.reason(&reason));
        }
        let end = self.text.len();
        self.written.push(Written { chain: self.chain.clone(), start, end, first: self.first });
        self.chain.pop();
        Ok(())
    }

    /// A reason with the saved filters that lead to its place; one alone says nothing that the place does not.
    fn reason(&self, reason: &str) -> String {
        match self.chain.get(self.own..) {
            Some(within @ [_, _, ..]) => format!("{}: {reason}", chain(within)),
            Some(_) | None => reason.into(),
        }
    }

    /// An error in the whole, at its place in the text that began it all.
    fn place(&self, draft: &FilterDraft, error: FilterError) -> FilterError {
        let FilterError { position, reason } = error;
        let reason = format!("with saved filters written out, {reason}");
        match self.written.iter().find(|written| (written.start..written.end).contains(&position)) {
            Some(within) => FilterError {
                position: within.first,
                reason: format!("{}: {reason}", chain(within.chain.get(self.own..).unwrap_or_default())),
            },
            None => {
                let first = draft.tree.saved().first().map(|term| term.position);
                FilterError { position: first.unwrap_or(position), reason }
            }
        }
    }
}

/// Saved filters, each of which names the next one.
fn chain(names: &[FilterName]) -> String {
    names.iter().map(|name| format!("@{name}")).collect::<Vec<_>>().join(" → ")
}

#[cfg(test)]
mod tests;
