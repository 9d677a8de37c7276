//! A person has the primary of an ensemble hand over, names the next one whatever is lost, or lets failovers take place again.

use bellwether_api::shape::{ShapeError, reason};
use bellwether_api::v1::ensemble::FailoverEnsemble;
use bellwether_core::decide::ensembles::accepted;
use bellwether_core::decide::ensembles::health::{MemberHealth, health};
use bellwether_core::records::ensemble::{Ensemble, EnsembleMode};
use bellwether_core::records::ensemble_members::{EnsembleMembers, MemberPhase};
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::{Key, Record};
use bellwether_core::records::member::{MemberState, Replication};
use bellwether_core::records::primary::{PrimaryRecord, Promotion};
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::world::fleet::Fleet;

use super::{EnsembleScope, at, found};
use crate::ops::{OpError, cause, event};
use crate::transactor::Transactor;

/// Records what a person wants of the primary.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Invalid`] naming the field; [`OpError::Moved`] when it is not at the revision that was named;
/// [`OpError::Refused`] where there is no primary, or the member cannot be it.
pub async fn fail_over(
    transactor: &Transactor,
    scope: EnsembleScope<'_>,
    request: &FailoverEnsemble,
) -> Result<Ensemble, OpError> {
    let EnsembleScope { namespace, name, actor, .. } = scope;
    let reason = reason(&request.reason)?;
    let key = Key::EnsembleMembers(name.clone()).into();
    transactor
        .compare(namespace, actor, &key, |_, fleet, _| {
            at(fleet, scope)?;
            let ensemble = found(fleet, name)?;
            let members = fleet.ensemble_members.get(name).map(|kept| &*kept.value);
            let (before, primary) = led(ensemble, members)?;
            let mut members = before.clone();
            let is_alone = request.to.is_none() && !request.accept_data_loss && !request.acknowledge;
            let said_of = match (request.acknowledge, request.to, request.accept_data_loss) {
                _ if request.withdraw && !is_alone => return Err(excluded("withdraw")),
                _ if request.withdraw => withdraw(&mut members)?,
                (true, None, false) => acknowledge(&mut members.lead),
                (true, _, _) => return Err(excluded("acknowledge")),
                (false, Some(to), true) => force(fleet, &mut members, MemberNumber::new(to))?,
                (false, None, true) => return Err(excluded("accept_data_loss")),
                (false, to, false) => {
                    hand_over(fleet, (ensemble, &mut members, primary), to.map(MemberNumber::new))?
                }
            };
            if members == *before {
                return Ok((None, ensemble.clone()));
            }
            let draft = EventDraft {
                before: Some(primary.to_string()),
                after: members.lead.handover.or(members.lead.primary).map(|number| number.to_string()),
                ..event(kind(request), format!("ensemble/{name}"), told(&said_of, &reason))
            };
            let is_changed = members.lead.primary != before.lead.primary;
            let changed = is_changed.then(|| EventDraft {
                before: Some(primary.to_string()),
                after: members.lead.primary.map(|number| number.to_string()),
                ..event("ensemble.primary_changed", format!("ensemble/{name}"), said_of.clone())
            });
            let writes = vec![Write::put(Record::EnsembleMembers(members))];
            let events = [Some(draft), changed].into_iter().flatten().collect();
            let changeset = Changeset { writes, events };
            Ok((Some(changeset.guarded_by(Some(Key::Ensemble(name.clone())))), ensemble.clone()))
        })
        .await
}

fn told(said: &str, reason: &str) -> String {
    let reason = cause(reason);
    if reason.is_empty() { said.to_owned() } else { format!("{said}: {reason}") }
}

const fn kind(request: &FailoverEnsemble) -> &'static str {
    if request.withdraw { "ensemble.failover_withdrawn" } else { "ensemble.failover_requested" }
}

fn excluded(field: &str) -> OpError {
    let reason = match field {
        "acknowledge" => "excludes to and accept_data_loss",
        "withdraw" => "excludes to, accept_data_loss and acknowledge",
        _ => "needs to: name the member that becomes the primary",
    };
    ShapeError::at(field, reason).into()
}

/// The members of an ensemble that has a primary, and that.
fn led<'a>(
    ensemble: &Ensemble,
    members: Option<&'a EnsembleMembers>,
) -> Result<(&'a EnsembleMembers, MemberNumber), OpError> {
    let name = &ensemble.name;
    let refuse = |why: String, hint: &str| OpError::Refused {
        reason: format!("fail over ensemble {name}: {why}"),
        hint: Some(hint.to_owned()),
    };
    if ensemble.service.as_str() != "redis" {
        let why = match ensemble.service.has_voters() {
            true => format!("members of {} elect their leader themselves", ensemble.service.title()),
            false => "its members have no primary".to_owned(),
        };
        return Err(refuse(why, "of an ensemble of Redis, the primary can be changed"));
    }
    if ensemble.mode == EnsembleMode::Unmanaged {
        let why = "its mode is unmanaged: its members are left as they are".to_owned();
        return Err(refuse(why, "manage it before: bellwether ensemble set ENSEMBLE --mode managed"));
    }
    let led = members.and_then(|members| Some((members, members.lead.primary?)));
    led.ok_or_else(|| {
        let hint = format!("see what it waits for: bellwether why ensemble/{name}");
        refuse("it has no primary yet".to_owned(), &hint)
    })
}

fn acknowledge(lead: &mut PrimaryRecord) -> String {
    lead.failed_over = None;
    "the last failover is acknowledged: the next one may take place at once".to_owned()
}

/// The primary is not to hand over any more. Until the member that takes over knows of it, the primary was not told.
fn withdraw(members: &mut EnsembleMembers) -> Result<String, OpError> {
    let Some(to) = members.lead.handover else {
        return Ok("no handover was asked for".to_owned());
    };
    if members.lead.is_handover_known {
        let name = &members.ensemble;
        return Err(OpError::Refused {
            reason: format!("withdraw the handover of ensemble {name}: member {to} is taking over already"),
            hint: Some(format!("see how far it is: bellwether why ensemble/{name}")),
        });
    }
    members.lead.handover = None;
    Ok(format!("the primary is not to hand over to member {to} any more"))
}

/// What a member that is heard of, and works by its own word, says of its replication.
fn said<'a>(fleet: &'a Fleet, members: &EnsembleMembers, number: MemberNumber) -> Option<&'a Replication> {
    members.members.get(&number).filter(|member| member.phase == MemberPhase::Serving)?;
    let MemberHealth::Reported(report) = health(fleet, members, number) else { return None };
    report.replication.as_ref().filter(|_| report.state == MemberState::Working)
}

/// The primary hands over to the member that was named, or to the first that may take over.
fn hand_over(
    fleet: &Fleet,
    (ensemble, members, primary): (&Ensemble, &mut EnsembleMembers, MemberNumber),
    to: Option<MemberNumber>,
) -> Result<String, OpError> {
    let name = &ensemble.name;
    let may = |number: MemberNumber| {
        let has_data = members.lead.had_data.contains(&number);
        number != primary && has_data && said(fleet, members, number).is_some_and(|said| said.streams)
    };
    if !said(fleet, members, primary).is_some_and(|said| said.is_primary) {
        return Err(OpError::Refused {
            reason: format!(
                "fail over ensemble {name}: its primary, member {primary}, does not work or is not heard of, and cannot hand over"
            ),
            hint: Some(match members.lead.failed_over {
                Some(_) => format!(
                    "another member took over not long ago, and none does again until that is acknowledged: bellwether ensemble failover {name} \
                     --acknowledge; no writes are lost by that"
                ),
                None => format!(
                    "see what it waits for: bellwether why ensemble/{name}; to make a member the primary whatever it lacks: --to MEMBER \
                     --accept-data-loss"
                ),
            }),
        });
    }
    let to = match to {
        Some(to) if to == primary => {
            return Err(ShapeError::at("to", format!("{to}; this member is the primary already")).into());
        }
        Some(to) if may(to) => to,
        Some(to) => {
            let reason = format!(
                "{to}; no member of ensemble {name} with this number works and gets the data of the primary: bellwether ensemble get {name}"
            );
            return Err(ShapeError::at("to", reason).into());
        }
        None => {
            members.members.keys().copied().find(|number| may(*number)).ok_or_else(|| OpError::Refused {
                reason: format!(
                    "fail over ensemble {name}: no other member works and gets the data of the primary"
                ),
                hint: Some(format!("see what it waits for: bellwether why ensemble/{name}")),
            })?
        }
    };
    if let Some(other) = members.lead.handover.filter(|other| *other != to) {
        return Err(OpError::Refused {
            reason: format!(
                "fail over ensemble {name}: its primary is to hand over to member {other} already"
            ),
            hint: Some(format!("withdraw that before: bellwether ensemble failover {name} --withdraw")),
        });
    }
    members.lead.handover = Some(to);
    Ok(format!("member {primary} is to hand over to member {to}"))
}

/// A member becomes the primary, whatever is lost by it.
fn force(fleet: &Fleet, members: &mut EnsembleMembers, to: MemberNumber) -> Result<String, OpError> {
    if said(fleet, members, to).is_none() && !accepted::may_be_recorded(fleet, members, to) {
        let reason = format!(
            "{to}; no member of ensemble {} with this number works: bellwether ensemble get {}",
            members.ensemble, members.ensemble
        );
        return Err(ShapeError::at("to", reason).into());
    }
    let lead = &mut members.lead;
    lead.promotion = Some(Promotion { history: None, is_failover: false, named_in: Some(fleet.epoch) });
    (lead.primary, lead.handover, lead.failed_over) = (Some(to), None, None);
    lead.follows.remove(&to);
    Ok(format!("member {to} becomes the primary, also if writes are lost by it"))
}
