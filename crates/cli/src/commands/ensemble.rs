//! `ensemble`.

mod agreement;
mod certify;
mod delete;
mod failover;
mod foreign;
mod osds;
mod requests;
mod restore;
mod resume;
mod rolling;
mod service;
mod sheet;
mod snapshots;

use bellwether_api::paths::{self, fill};
use bellwether_api::v1::ensemble::adoption::RemoveForeignMember;
use bellwether_api::v1::ensemble::requests::{ReplaceMember, ResumeEnsemble, RollMembers};
use bellwether_api::v1::ensemble::restore::RestoreSpec;
use bellwether_api::v1::ensemble::snapshots::TakeSnapshot;
use bellwether_api::v1::ensemble::{
    Ensemble, EnsembleSize, EnsembleSpec, FailoverEnsemble, PlanEnsemble, ScaleEnsemble,
};
use bellwether_api::v1::page::Page;

use self::agreement::agree;
pub(super) use self::agreement::losses;
use self::certify::certify;
use self::failover::failover;
use self::resume::resume;
pub(super) use self::sheet::sheet;
use self::sheet::{planned, upcoming};
use super::{documents, lists};
use crate::args::{Consent, EnsembleFlags, EnsembleVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;

pub(super) async fn run(context: &Context, verb: EnsembleVerb) -> CommandResult {
    match verb {
        EnsembleVerb::Create { of, service, from_snapshot, snapshot_node, change } => {
            let restore = restore::source(context, from_snapshot, snapshot_node).await?;
            create(context, &of.name, (&service, restore), change).await?;
        }
        EnsembleVerb::Set { of, change, if_revision, consent } => {
            set(context, &of.name, (change, if_revision), consent).await?;
        }
        EnsembleVerb::List(flags) => {
            let namespace = context.namespace.as_str();
            let read = async |context: &Context| context.client.ensembles(namespace).await;
            let path = fill(paths::ENSEMBLES, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| list(context, &page).await).await;
        }
        EnsembleVerb::Get { of } => get(context, &of.name).await?,
        EnsembleVerb::Plan { of, size } => plan(context, &of.name, size).await?,
        EnsembleVerb::Scale { of, size, reason, consent } => {
            scale(context, &of.name, ScaleEnsemble { size, reason }, consent).await?;
        }
        EnsembleVerb::Failover { of, to, accept_data_loss, acknowledge, withdraw, reason, consent } => {
            let request = FailoverEnsemble { to, accept_data_loss, acknowledge, withdraw, reason };
            failover(context, &of.name, &request, consent).await?;
        }
        EnsembleVerb::Replace { of, member, withdraw, reason, consent } => {
            replace(context, &of.name, ReplaceMember { member, withdraw, reason }, consent).await?;
        }
        EnsembleVerb::Restart { of, withdraw, reason, consent } => {
            rolling::restart(context, &of.name, RollMembers { withdraw, reason }, consent).await?;
        }
        EnsembleVerb::Defragment { of, withdraw, reason, consent } => {
            rolling::defragment(context, &of.name, RollMembers { withdraw, reason }, consent).await?;
        }
        EnsembleVerb::Resume { of, accept_data_loss, reason, consent } => {
            resume(context, &of.name, &ResumeEnsemble { accept_data_loss, reason }, consent).await?;
        }
        EnsembleVerb::ReplaceOsd { of, osd, device, withdraw: _, reason, consent } => {
            osds::replace(context, (&of.name, osd), (device, reason), consent).await?;
        }
        EnsembleVerb::RemoveOsd { of, osd, withdraw, reason, consent } => {
            osds::remove(context, (&of.name, osd), (withdraw, reason), consent).await?;
        }
        EnsembleVerb::RemoveForeignMember { of, id, withdraw, reason, consent } => {
            foreign::remove(context, &of.name, RemoveForeignMember { id, withdraw, reason }, consent).await?;
        }
        EnsembleVerb::Snapshot { of, wait, reason } => {
            snapshots::take(context, &of.name, TakeSnapshot { reason }, wait).await?;
        }
        EnsembleVerb::Snapshots { of } => snapshots::show(context, &of.name).await?,
        EnsembleVerb::Certify { of, out, valid_for } => certify(context, &of.name, &out, valid_for).await?,
        EnsembleVerb::Delete { of, wait, timeout, consent } => {
            delete::delete(context, &of.name, wait.then_some(timeout), consent).await?;
        }
    }
    Ok(Exit::Yes)
}

async fn get(context: &Context, name: &str) -> Result<(), Failure> {
    let ensemble = context.client.ensemble(context.namespace.as_str(), name).await?;
    if !documents::yaml(context, "ensemble", std::slice::from_ref(&ensemble)).await? {
        context.show.data(&ensemble, || vec![ensemble.name.clone()], |_| sheet(&ensemble))?;
    }
    Ok(())
}

async fn create(
    context: &Context,
    name: &str,
    (service, restore): (&str, Option<RestoreSpec>),
    change: EnsembleFlags,
) -> Result<(), Failure> {
    let service = service::named(service);
    let spec = changed(EnsembleSpec { service, restore, ..EnsembleSpec::default() }, change)?;
    let created = context.client.only_at(0).set_ensemble(context.namespace.as_str(), name, &spec).await;
    report(context, &created.map_err(|error| Failure::pointing(error, Some(&spec.filter)))?, "created")
}

/// Changes an ensemble, after the question whether the members may go that would.
async fn set(
    context: &Context,
    name: &str,
    (change, if_revision): (EnsembleFlags, Option<u64>),
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let before = client.ensemble(namespace, name).await?;
    let spec = changed(before.spec(), change)?;
    let asked = PlanEnsemble { spec: Some(spec.clone()), ..PlanEnsemble::default() };
    let plan = client.plan_ensemble(namespace, name, &asked).await;
    let plan = plan.map_err(|error| Failure::pointing(error, Some(&spec.filter)))?;
    agree((&before, &plan), &format!("change ensemble {name}"), consent)?;
    let at = client.only_at(if_revision.unwrap_or(before.revision));
    let after = at.set_ensemble(namespace, name, &spec).await;
    let after = after.map_err(|error| Failure::pointing(error, Some(&spec.filter)))?;
    report(context, &after, changed_or_not(&before, &after))
}

/// Shows what would happen to the members, and what may not be meant.
async fn plan(context: &Context, name: &str, size: Option<EnsembleSize>) -> Result<(), Failure> {
    let asked = PlanEnsemble { size, ..PlanEnsemble::default() };
    let plan = context.client.plan_ensemble(context.namespace.as_str(), name, &asked).await?;
    context.show.data(&plan, || vec![plan.name.clone()], |_| planned(&plan).join("\n"))?;
    plan.warning.iter().for_each(|warning| context.show.note(warning));
    Ok(())
}

/// Changes the number of members, after the question whether those may go that would.
async fn scale(
    context: &Context,
    name: &str,
    request: ScaleEnsemble,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let before = client.ensemble(namespace, name).await?;
    let asked = PlanEnsemble { size: Some(request.size), ..PlanEnsemble::default() };
    let plan = client.plan_ensemble(namespace, name, &asked).await?;
    agree((&before, &plan), &format!("scale ensemble {name} to {}", request.size), consent)?;
    // What was agreed to is what is there.
    let after = client.only_at(before.revision).scale_ensemble(namespace, name, &request).await?;
    report(context, &after, changed_or_not(&before, &after))
}

/// Asks for another member in the place of one, after the question whether what comes of it is meant; or withdraws that.
async fn replace(
    context: &Context,
    name: &str,
    request: ReplaceMember,
    consent: Consent,
) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let member = request.member;
    if !request.withdraw {
        let asked = PlanEnsemble { replace: Some(member), ..PlanEnsemble::default() };
        let plan = client.plan_ensemble(namespace, name, &asked).await?;
        let lines: Vec<String> = plan.status.iter().flat_map(upcoming).collect();
        confirm(&format!("{}\nreplace member {member} of ensemble {name}?", lines.join("\n")), consent)?;
    }
    let after = client.replace_member(namespace, name, &request).await?;
    let what = if request.withdraw { "is not replaced" } else { "is to be replaced" };
    context.show.changed(&format!("ensemble {name}: member {member} {what}"));
    for line in after.status.iter().flat_map(upcoming) {
        context.show.note(&line);
    }
    context.show.data(&after, || vec![after.name.clone()], |_| planned(&after).join("\n"))
}

const fn changed_or_not(before: &Ensemble, after: &Ensemble) -> &'static str {
    if after.revision == before.revision { "unchanged" } else { "changed" }
}

fn changed(spec: EnsembleSpec, change: EnsembleFlags) -> Result<EnsembleSpec, Failure> {
    Ok(EnsembleSpec {
        service: service::with_flags(spec.service, &change)?,
        size: change.size.or(spec.size),
        filter: change.filter.unwrap_or(spec.filter),
        spread: change.spread.or(spec.spread.filter(|_| !change.no_spread)),
        failover_after: change.failover_after.map(|span| span.to_string()).or(spec.failover_after),
        join_within: change.join_within.map(|span| span.to_string()).or(spec.join_within),
        mode: change.mode.or(spec.mode),
        snapshots: snapshots::changed(spec.snapshots, change.snapshot_every, change.snapshots_kept),
        restore: spec.restore,
        adopt: foreign::adopted(change.adopt).or(spec.adopt),
        reason: change.reason,
    })
}

fn report(context: &Context, ensemble: &Ensemble, what: &str) -> Result<(), Failure> {
    context.show.changed(&format!("ensemble {}: {what}, revision {}", ensemble.name, ensemble.revision));
    for line in ensemble.status.iter().flat_map(upcoming) {
        context.show.note(&line);
    }
    if let Some(warning) = &ensemble.warning {
        context.show.note(warning);
    }
    context.show.data(ensemble, || vec![ensemble.name.clone()], |_| String::new())
}

async fn list(context: &Context, page: &Page<Ensemble>) -> Result<(), Failure> {
    if documents::yaml(context, "ensemble", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|ensemble| ensemble.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|ensemble| {
            let Ensemble { name, service, size, filter, mode, status, .. } = ensemble;
            let votes = status.as_ref().map(sheet::working_of);
            let is_held = status.as_ref().is_some_and(|status| status.is_held);
            let mode = if is_held { format!("{mode}, held after a restore") } else { mode.to_string() };
            vec![
                name.clone(),
                service.kind().unwrap_or("-").to_owned(),
                size.to_string(),
                votes.unwrap_or_else(|| "-".to_owned()),
                mode,
                filter.clone(),
            ]
        });
        if page.items.is_empty() {
            return "no ensembles; create one with: bellwether ensemble create ENSEMBLE --filter FILTER"
                .to_owned();
        }
        table(&["name", "service", "size", "working", "mode", "filter"], rows)
    })
}
