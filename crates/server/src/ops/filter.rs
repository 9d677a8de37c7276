//! Saved filters: setting and deleting. One that is named by another is valid with it, and there as long as it is named.

mod find;

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::shape::{ShapeError, description};
use bellwether_api::v1::filter::FilterSpec;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::filter::SavedFilter;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::versioned::Versioned;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::{FilterRevision, Revision};
use bellwether_core::words::filter::saved::FilterDraft;
use bellwether_core::words::name::{Actor, FilterName, Namespace};
use bellwether_core::world::fleet::Fleet;

pub use self::find::{MayRead, SavedFilters, readable};
use self::find::{all_users, draft, list, table, users, within};
use super::at_revision::at_revision;
use super::{OpError, event};
use crate::transactor::Transactor;

/// Longest description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 1_024;

/// Most saved filters that one names, those within them included: all of them are compared in one transaction.
const MAX_NAMED: usize = 64;

/// A saved filter, for a change.
#[derive(Clone, Copy)]
pub struct FilterScope<'a> {
    /// Its namespace.
    pub namespace: &'a Namespace,
    /// The saved filter.
    pub name: &'a FilterName,
    /// Who requested the change; events name them.
    pub actor: &'a Actor,
    /// Whether they may read the saved filter of a name.
    pub may_read: MayRead<'a>,
    /// The revision that it must have, 0 if it must not exist; `None` for any.
    pub only_at: Option<u64>,
}

/// Saves a filter, or changes a saved one; answers it, and whether it is new. The same again changes nothing.
///
/// # Errors
/// [`OpError::Invalid`] with the place in the filter; [`OpError::Moved`] when it is not at the revision that was named;
/// [`OpError::Refused`] when another saved filter names it and would not be valid any more.
pub async fn set(
    transactor: &Transactor,
    scope: FilterScope<'_>,
    spec: &FilterSpec,
) -> Result<(SavedFilter, bool), OpError> {
    let FilterScope { namespace, name, actor, may_read, only_at } = scope;
    description(&spec.description, MAX_DESCRIPTION_BYTES)?;
    let table = table(&spec.of).map_err(|reason| ShapeError::at("of", reason))?;
    let misread = |error| OpError::from(ShapeError::misread("filter", &error));
    let read = FilterDraft::parse(&spec.filter, table).map_err(misread)?;
    transactor
        .compare(namespace, actor, &Key::Filter(name.clone()).into(), |_, fleet, now| {
            let before = fleet.filters.get(name).map(|kept| &*kept.value);
            at_revision(
                "filter",
                name.as_str(),
                before.map(|before| (before.revision.get(), &before.annotation.by)),
                only_at,
            )?;
            let filters = SavedFilters { fleet: Some(fleet), may_read };
            filters.resolve(&read, table, Some(name)).map_err(misread)?;
            let within = within(fleet, read.saved());
            if within.len() > MAX_NAMED {
                let reason = format!(
                    "names {} saved filters, those within them included; at most {MAX_NAMED} are allowed",
                    within.len()
                );
                return Err(ShapeError::at("filter", reason).into());
            }
            let (of, text) = (list(table), spec.filter.trim().to_owned());
            let description = spec.description.clone();
            let same = before.filter(|it| (&it.of, &it.text, &it.description) == (&of, &text, &description));
            if let Some(same) = same {
                return Ok((None, (same.clone(), false)));
            }
            let revision = before.map_or(FilterRevision::ZERO, |before| before.revision).next_in(fleet.epoch);
            let annotation = Annotation::of(actor.clone(), now);
            let after = SavedFilter { name: name.clone(), revision, of, text, description, annotation };
            users_stay_valid(fleet, &after, may_read)?;
            let mut event = event("filter.changed", format!("filter/{name}"), after.description.clone());
            event.before = before.map(|before| before.text.clone());
            event.after = Some(after.text.clone());
            let mut writes = vec![Write::put(Record::Filter(after.clone()))];
            // What it names is written again, so that it cannot be deleted at the same moment.
            let named: BTreeSet<&FilterName> = read.saved().into_iter().collect();
            let named = named.into_iter().filter_map(|name| fleet.filters.get(name));
            writes.extend(named.map(|kept| Write::put(Record::Filter((*kept.value).clone()))));
            let changeset = Changeset { writes, events: vec![event] };
            let guarded = changeset.guarded_by(within.into_iter().map(Key::Filter));
            Ok((Some(guarded), (after, before.is_none())))
        })
        .await
}

/// Deletes a saved filter.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] while another saved filter names it.
pub async fn delete(transactor: &Transactor, scope: FilterScope<'_>) -> Result<(), OpError> {
    let FilterScope { namespace, name, actor, may_read, only_at } = scope;
    transactor
        .compare(namespace, actor, &Key::Filter(name.clone()).into(), |_, fleet, _| {
            let before = fleet.filters.get(name).map(|kept| &*kept.value);
            at_revision(
                "filter",
                name.as_str(),
                before.map(|before| (before.revision.get(), &before.annotation.by)),
                only_at,
            )?;
            let before = before.ok_or_else(|| OpError::NotFound(format!("filter {name}")))?;
            let users = users(fleet, name);
            if let Some(first) = users.first() {
                let user = users.iter().find(|user| may_read(&user.name));
                let reason =
                    format!("delete filter {name}: {} names it", shown(user.unwrap_or(first), may_read));
                let hint =
                    user.map(|user| format!("change that one first: bellwether filter get {}", user.name));
                return Err(OpError::Refused { reason, hint });
            }
            let mut event = event("filter.deleted", format!("filter/{name}"), before.description.clone());
            event.before = Some(before.text.clone());
            let writes = vec![Write::delete(Key::Filter(name.clone()))];
            Ok((Some(Changeset { writes, events: vec![event] }), ()))
        })
        .await
}

/// Refuses a change after which a saved filter that names this one could not be used any more.
fn users_stay_valid(fleet: &Fleet, after: &SavedFilter, may_read: MayRead<'_>) -> Result<(), OpError> {
    let mut changed = fleet.clone();
    changed.filters.insert_mut(
        after.name.clone(),
        Versioned { value: Arc::new(after.clone()), revision: Revision::ZERO },
    );
    let resolves = |fleet: &Fleet, user: &SavedFilter| {
        let Some((draft, table)) = draft(user) else { return Ok(()) };
        let filters = SavedFilters { fleet: Some(fleet), may_read: &|_| true };
        filters.resolve(&draft, table, Some(&user.name)).map(|_| ())
    };
    for user in all_users(fleet, &after.name) {
        if let (Ok(()), Err(error)) = (resolves(fleet, user), resolves(&changed, user)) {
            let what = format!("change filter {}: {} names it", after.name, shown(user, may_read));
            let is_known = may_read(&user.name);
            let why = if is_known { format!(": {}", error.reason) } else { String::new() };
            let hint = is_known.then(|| format!("bellwether filter get {}", user.name));
            return Err(OpError::Refused {
                reason: format!("{what}, and would not be valid any more{why}"),
                hint,
            });
        }
    }
    Ok(())
}

/// A saved filter in a sentence, for a caller who may not know it.
fn shown(filter: &SavedFilter, may_read: MayRead<'_>) -> String {
    if may_read(&filter.name) {
        format!("filter {}", filter.name)
    } else {
        "a filter that you may not read".to_owned()
    }
}
