//! Complete reports: which targets are gone because a controller did not list them.

use std::collections::BTreeSet;

use bellwether_api::shape::{ShapeError, read};
use bellwether_api::v1::external::TargetReports;
use bellwether_core::rollout::external;
use bellwether_core::words::name::TargetName;

use super::super::OpError;
use super::super::scope::EntityScope;
use crate::transactor::Transactor;

/// Fewest targets that a report would remove, though they were reported a moment ago, for it to be refused as a mistake.
const MANY: usize = 100;

/// The names that a complete report is about.
#[derive(Debug)]
pub(super) struct CompletePage {
    groups: BTreeSet<String>,
    after: Option<TargetName>,
    through: Option<TargetName>,
}

impl CompletePage {
    fn contains(&self, name: &TargetName) -> bool {
        self.groups.contains(external::group(name))
            && self.after.as_ref().is_none_or(|after| name > after)
            && self.through.as_ref().is_none_or(|through| name <= through)
    }
}

/// The page that a report is complete for; `None` if it is not complete.
///
/// # Errors
/// [`ShapeError`] naming the field, or the target outside of the page.
pub(super) fn page(
    reports: &TargetReports,
    groups: &BTreeSet<String>,
    names: &[&TargetName],
) -> Result<Option<CompletePage>, ShapeError> {
    let bound = |place: &str, name: Option<&String>| match name {
        Some(_) if !reports.complete => Err(ShapeError::at(place, "needs \"complete\": true")),
        Some(name) => whole(place, reports.group.as_deref(), name).map(Some),
        None => Ok(None),
    };
    let (after, through) =
        (bound("after", reports.after.as_ref())?, bound("through", reports.through.as_ref())?);
    if !reports.complete {
        return Ok(None);
    }
    let page = CompletePage { groups: groups.clone(), after, through };
    match names.iter().find(|name| !page.contains(name)) {
        Some(outside) => {
            Err(ShapeError::at("targets", format!("{outside} is not between `after` and `through`")))
        }
        None => Ok(Some(page)),
    }
}

/// The known targets of the groups, within the page, that are not among the reported.
///
/// # Errors
/// [`OpError::Refused`] when many of them were reported a moment ago: then the report is a part of several, most likely.
pub(super) fn gone(
    transactor: &Transactor,
    scope: EntityScope<'_>,
    page: &CompletePage,
    reported: &[TargetName],
) -> Result<Vec<TargetName>, OpError> {
    let world = transactor.world();
    let Some(fleet) = world.fleets.get(scope.namespace) else { return Ok(Vec::new()) };
    let listed: BTreeSet<&TargetName> = reported.iter().collect();
    let known = fleet.externals_of(scope.entity);
    let missing = known.filter(|(name, _)| page.contains(name) && !listed.contains(name));
    let missing: Vec<_> = missing.collect();
    let present = missing.iter().filter(|(_, known)| !known.value.silent).count();
    if present >= MANY.max(reported.len()) {
        let reason = format!(
            "accept a complete report of {} targets: it would remove {present} others that are being reported",
            reported.len()
        );
        let hint = "send all targets in one report, or in pages with \"after\" and \"through\"; to remove these targets, \
                    name them in \"removed\"";
        return Err(OpError::Refused { reason, hint: Some(hint.to_owned()) });
    }
    Ok(missing.into_iter().map(|(name, _)| name.clone()).collect())
}

/// The whole name of a target, with its group.
///
/// # Errors
/// [`ShapeError`] at `place`.
pub(super) fn whole(place: &str, group: Option<&str>, name: &str) -> Result<TargetName, ShapeError> {
    match group {
        Some(group) if name.split_once('/').is_some_and(|(first, _)| first == group) => {
            let reason = format!(
                "{name} repeats the group: give the name without \"{group}/\", or leave out the field group"
            );
            Err(ShapeError::at(place, reason))
        }
        Some(group) => read(place, &format!("{group}/{name}")),
        None => read(place, name),
    }
}
