//! Finding saved filters by name, as far as a caller may read them, and what names what.

use std::collections::BTreeSet;

use bellwether_api::list::{list_name, saved_tables};
use bellwether_core::access::{AccessRequest, AccessScope, Identity, NameScope, ObjectKind, reading};
use bellwether_core::records::filter::SavedFilter;
use bellwether_core::words::filter::field::FieldTable;
use bellwether_core::words::filter::saved::FilterDraft;
use bellwether_core::words::filter::{Filter, FilterError};
use bellwether_core::words::name::{FilterName, ListName, Namespace};
use bellwether_core::words::near::nearest;
use bellwether_core::world::fleet::Fleet;

/// Whether a caller may read the saved filter of a name.
pub type MayRead<'a> = &'a (dyn Fn(&FilterName) -> bool + Sync);

/// The saved filters of a namespace that a caller may read. One that the caller may not read is not there.
#[derive(Clone, Copy)]
pub struct SavedFilters<'a> {
    /// The namespace; `None` if nothing is in it.
    pub fleet: Option<&'a Fleet>,
    /// Whether the caller may read the saved filter of a name.
    pub may_read: MayRead<'a>,
}

impl<'a> SavedFilters<'a> {
    /// A filter over the fields of a table with the saved filters that it names written out. `own` is the name under which it is
    /// saved itself.
    ///
    /// # Errors
    /// [`FilterError`] with the position of the saved filter that cannot be used, and why.
    pub fn resolve(
        &self,
        draft: &FilterDraft,
        table: &'static FieldTable,
        own: Option<&FilterName>,
    ) -> Result<Filter, FilterError> {
        draft.resolve(own, &|name| self.text(name, &list_name(table)))
    }

    /// The text of a saved filter, if it is of this list.
    fn text(&self, name: &FilterName, list: &str) -> Result<&'a str, String> {
        match self.fleet.and_then(|fleet| fleet.filters.get(name)).filter(|_| (self.may_read)(name)) {
            Some(kept) if kept.value.of.as_str() == list => Ok(&kept.value.text),
            Some(kept) => {
                Err(format!("saved filter {name} is of {}, and this one is of {list}", kept.value.of))
            }
            None => {
                let filters = self.fleet.into_iter().flat_map(|fleet| fleet.filters.values());
                let known = filters.map(|kept| &*kept.value).filter(|filter| filter.of.as_str() == list);
                let known = known.filter(|filter| (self.may_read)(&filter.name));
                let near = nearest(name.as_str(), known.map(|filter| filter.name.as_str()));
                let next = near.map_or_else(
                    || "bellwether filter list shows those there are".to_owned(),
                    |near| format!("did you mean {near}?"),
                );
                Err(format!("there is no saved filter {name}; {next}"))
            }
        }
    }
}

/// Whether a caller may read the saved filter of a name.
pub fn readable<'a>(who: &'a Identity, namespace: &'a Namespace) -> impl Fn(&FilterName) -> bool + use<'a> {
    move |name| {
        let request = reading(ObjectKind::Filter, AccessScope::Namespace(namespace.as_str()));
        let request = AccessRequest { name: NameScope::Named(name.as_str()), ..request };
        who.rights().is_some_and(|rights| rights.allows(&request))
    }
}

/// The table of a list that saved filters can be of; with the lists there are if there is none of this name.
pub(super) fn table(list: &str) -> Result<&'static FieldTable, String> {
    saved_tables().find(|table| list_name(table) == list).ok_or_else(|| {
        let names: Vec<String> = saved_tables().map(list_name).collect();
        let near = nearest(list, names.iter().map(String::as_str));
        let meant = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
        format!("{list:?} is not a list of a namespace; {meant}known: {}", names.join(", "))
    })
}

/// A saved filter as it was read; `None` if this release does not understand it.
pub(super) fn draft(filter: &SavedFilter) -> Option<(FilterDraft, &'static FieldTable)> {
    let table = table(filter.of.as_str()).ok()?;
    Some((FilterDraft::parse(&filter.text, table).ok()?, table))
}

/// The saved filters that these name, those within them included.
pub(super) fn within(fleet: &Fleet, names: Vec<&FilterName>) -> BTreeSet<FilterName> {
    let mut found: BTreeSet<FilterName> = BTreeSet::new();
    let mut next: Vec<FilterName> = names.into_iter().cloned().collect();
    while let Some(name) = next.pop() {
        if let Some((draft, _)) = fleet.filters.get(&name).and_then(|kept| draft(&kept.value)) {
            next.extend(draft.saved().into_iter().filter(|name| !found.contains(*name)).cloned());
        }
        found.insert(name);
    }
    found
}

/// The saved filters that name this one.
pub(super) fn users<'a>(fleet: &'a Fleet, name: &FilterName) -> Vec<&'a SavedFilter> {
    let written = format!("@{name}");
    let all = fleet.filters.values().map(|kept| &*kept.value);
    let may = all.filter(|filter| filter.text.contains(&written));
    may.filter(|filter| draft(filter).is_some_and(|(draft, _)| draft.saved().contains(&name))).collect()
}

/// The saved filters that name this one, or one that does.
pub(super) fn all_users<'a>(fleet: &'a Fleet, name: &FilterName) -> Vec<&'a SavedFilter> {
    let mut found = users(fleet, name);
    let mut seen = 0;
    while let Some(user) = found.get(seen) {
        let further = users(fleet, &user.name);
        found.extend(further.into_iter().filter(|new| new.name != *name).collect::<Vec<_>>());
        let mut names = BTreeSet::new();
        found.retain(|user| names.insert(&user.name));
        seen += 1;
    }
    found
}

/// The list of a table as a word.
pub(super) fn list(table: &FieldTable) -> ListName {
    ListName::parse(&list_name(table)).expect("names of lists are DNS labels, which a test holds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_a_namespace_has_a_name_and_a_table_of_its_own() {
        let names: BTreeSet<String> = saved_tables().map(|table| list(table).to_string()).collect();
        assert_eq!(names.len(), saved_tables().count());
        for name in &names {
            assert_eq!(list_name(table(name).unwrap()), *name);
        }
        assert!(names.contains("nodes") && names.contains("silent-nodes") && !names.contains("tokens"));
        let error = table("node").unwrap_err();
        assert!(
            error.starts_with("\"node\" is not a list of a namespace; did you mean nodes? known: nodes, "),
            "{error}"
        );
    }
}
