//! The removal of members that are not of an ensemble from the store that it adopted.

use bellwether_api::shape::reason;
use bellwether_api::v1::ensemble::adoption::RemoveForeignMember;
use bellwether_core::decide::ensembles::requests::foreign_refusal;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::ensemble::Ensemble;
use bellwether_core::records::ensemble_adoption::{Adoption, ForeignMember, named};
use bellwether_core::records::ensemble_members::EnsembleMembers;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::verdict::{Changeset, Write};

use super::ensemble::EnsembleScope;
use super::{OpError, cause, event};
use crate::transactor::Transactor;

/// Asks that a member of the store that is not of the ensemble is removed, or withdraws that. The same again changes nothing.
///
/// # Errors
/// [`OpError::NotFound`] for an ensemble or a member that does not exist; [`OpError::Invalid`] naming the field; [`OpError::Refused`] when fewer
/// would work than a quorum needs, or nobody else has the data.
pub async fn remove(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    request: &RemoveForeignMember,
) -> Result<Ensemble, OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let (id, reason) = (request.id.trim().to_ascii_lowercase(), reason(&request.reason)?);
    let key = Key::EnsembleMembers(name.clone()).into();
    transactor
        .compare(namespace, actor, &key, |_, fleet, now| {
            let kept = fleet.ensembles.get(name);
            let ensemble = kept.ok_or_else(|| OpError::NotFound(format!("ensemble {name}")))?;
            let members = fleet.ensemble_members.get(name).map(|kept| &*kept.value);
            let known = members.and_then(|members| Some((members, members.adoption.as_ref()?)));
            let known =
                known.and_then(|(members, adoption)| Some((members, adoption, adoption.foreign.get(&id)?)));
            let missing = || OpError::NotFound(format!("foreign member {id} of ensemble {name}"));
            let (before, adoption, member) = known.ok_or_else(missing)?;
            if adoption.removals.contains_key(&id) != request.withdraw {
                return Ok((None, (*ensemble.value).clone()));
            }
            let refusal = foreign_refusal(fleet, &ensemble.value, before, (&id, now));
            if let Some(refusal) = refusal.filter(|_| !request.withdraw) {
                return Err(OpError::Refused {
                    reason: format!("remove foreign member {id} of ensemble {name}: it {refusal}"),
                    hint: Some(format!("see its members: bellwether why ensemble/{name}")),
                });
            }
            let annotation = Annotation { by: actor.clone(), reason: reason.clone(), at: now };
            let changeset =
                requested(before, (&id, member), (!request.withdraw).then_some(annotation), &reason);
            // Whether it is managed was read.
            let changeset = changeset.guarded_by(Some(Key::Ensemble(name.clone())));
            Ok((Some(changeset), (*ensemble.value).clone()))
        })
        .await
}

/// What is written for a removal to be asked for, or not any more.
fn requested(
    before: &EnsembleMembers,
    (id, member): (&str, &ForeignMember),
    asked: Option<Annotation>,
    reason: &str,
) -> Changeset {
    let kind = match asked {
        Some(_) => "ensemble.foreign_member_removal_requested",
        None => "ensemble.foreign_member_removal_withdrawn",
    };
    let mut said = event(kind, format!("ensemble/{}", before.ensemble), cause(reason));
    said.after = Some(named(id, member));
    let mut members = before.clone();
    if let Some(Adoption { removals, .. }) = &mut members.adoption {
        match asked {
            Some(asked) => removals.insert(id.to_owned(), asked),
            None => removals.remove(id),
        };
    }
    Changeset { writes: vec![Write::put(Record::EnsembleMembers(members))], events: vec![said] }
}
