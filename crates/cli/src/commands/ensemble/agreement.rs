//! What is asked about before an ensemble is changed: members that leave, and writes that stop.

use bellwether_api::v1::ensemble::Ensemble;
use bellwether_api::v1::ensemble::status::EnsembleAction;
use bellwether_core::words::plural::plural;

use super::service;
use crate::args::Consent;
use crate::confirm::confirm;
use crate::exit::Failure;

/// Asks whether the members may go that would, and whether something else is meant that comes of a change.
pub(super) fn agree(
    (before, plan): (&Ensemble, &Ensemble),
    what: &str,
    consent: Consent,
) -> Result<(), Failure> {
    let lines = losses(before, plan);
    if lines.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = lines.into_iter().chain(plan.warning.clone()).collect();
    confirm(&format!("{}\n{what}?", lines.join("\n")), consent)
}

/// What an ensemble loses by a change, line by line: from what it is, and what would come of it.
pub(in crate::commands) fn losses(before: &Ensemble, plan: &Ensemble) -> Vec<String> {
    // Those that leave anyway do not leave because of the change.
    let removed = |of: &Ensemble| -> Vec<(u64, String)> {
        let steps = of.status.iter().flat_map(|status| &status.steps);
        let removals = steps.filter(|step| step.action == EnsembleAction::Remove);
        removals.map(|step| (step.member, step.text.clone())).collect()
    };
    let due = removed(before);
    let is_due = |member: u64| due.iter().any(|(of, _)| *of == member);
    let leaving = removed(plan).into_iter().filter(|(member, _)| !is_due(*member));
    let leaving: Vec<String> = leaving.map(|(_, text)| text).collect();
    // What cannot be changed now, such as while a leader is elected, is in no step, and comes all the same.
    let statuses = before.status.as_ref().zip(plan.status.as_ref());
    let later = statuses.and_then(|(now, then)| fewer((now.members.len(), now.wanted), then.wanted));
    let later = later.filter(|_| leaving.is_empty());
    leaving.into_iter().chain(later).chain(service::stops_writes(before, &plan.service)).collect()
}

/// That there are to be fewer than the members that there are; `None` if as many were wanted before, or fewer.
fn fewer((members, before): (usize, u64), after: u64) -> Option<String> {
    let count = usize::try_from(after).ok()?;
    (after < before && members > count).then(|| {
        let wanted = plural(count, "member");
        format!(
            "there are to be {wanted} instead of {before}: the others leave once the store can be changed"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_fewer_members_is_asked_also_while_none_of_them_can_leave() {
        let said = fewer((3, 3), 1).unwrap();
        assert!(said.starts_with("there are to be 1 member instead of 3: the others leave"), "{said}");
        assert_eq!(fewer((3, 3), 3), None);
        assert_eq!(fewer((3, 3), 5), None);
        assert_eq!(fewer((0, 3), 1), None, "none is there that would leave");
        // One has taken the place of another that is yet to leave: nobody asked for that just now.
        assert_eq!(fewer((4, 3), 3), None);
    }
}
