//! `ensemble`.

mod certify;
mod requests;
mod restart;
mod snapshots;

use bellwether_api::paths::{self, fill};
use bellwether_api::v1::ensemble::requests::{ReplaceMember, RestartMembers};
use bellwether_api::v1::ensemble::service::{EtcdSpec, ServiceAgentSpec};
use bellwether_api::v1::ensemble::snapshots::TakeSnapshot;
use bellwether_api::v1::ensemble::status::{EnsembleAction, EnsembleStatus};
use bellwether_api::v1::ensemble::{Ensemble, EnsembleSpec, PlanEnsemble, ScaleEnsemble};
use bellwether_api::v1::page::Page;
use bellwether_core::words::plural::{Plural, plural};
use bellwether_core::words::time::Span;

use self::certify::certify;
use super::{documents, lists};
use crate::args::{Consent, EnsembleFlags, EnsembleVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

pub(super) async fn run(context: &Context, verb: EnsembleVerb) -> CommandResult {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    match verb {
        EnsembleVerb::Create { of, change } => {
            let service = ServiceAgentSpec { etcd: Some(EtcdSpec::default()) };
            let spec = changed(EnsembleSpec { service, ..EnsembleSpec::default() }, change);
            let created = client.only_at(0).set_ensemble(namespace, &of.name, &spec).await;
            report(
                context,
                &created.map_err(|error| Failure::pointing(error, Some(&spec.filter)))?,
                "created",
            )?;
        }
        EnsembleVerb::Set { of, change, if_revision, consent } => {
            let before = client.ensemble(namespace, &of.name).await?;
            let spec = changed(before.spec(), change);
            let asked = PlanEnsemble { spec: Some(spec.clone()), ..PlanEnsemble::default() };
            let plan = client.plan_ensemble(namespace, &of.name, &asked).await;
            let plan = plan.map_err(|error| Failure::pointing(error, Some(&spec.filter)))?;
            agree_to_leaving(&plan, &format!("change ensemble {}", of.name), consent)?;
            let at = client.only_at(if_revision.unwrap_or(before.revision));
            let after = at.set_ensemble(namespace, &of.name, &spec).await;
            let after = after.map_err(|error| Failure::pointing(error, Some(&spec.filter)))?;
            report(context, &after, changed_or_not(&before, &after))?;
        }
        EnsembleVerb::List(flags) => {
            let read = async |context: &Context| context.client.ensembles(namespace).await;
            let path = fill(paths::ENSEMBLES, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| list(context, &page).await).await;
        }
        EnsembleVerb::Get { of } => {
            let ensemble = client.ensemble(namespace, &of.name).await?;
            if !documents::yaml(context, "ensemble", std::slice::from_ref(&ensemble)).await? {
                context.show.data(&ensemble, || vec![ensemble.name.clone()], |_| sheet(&ensemble))?;
            }
        }
        EnsembleVerb::Plan { of, size } => {
            let asked = PlanEnsemble { size, ..PlanEnsemble::default() };
            let plan = client.plan_ensemble(namespace, &of.name, &asked).await?;
            context.show.data(&plan, || vec![plan.name.clone()], |_| planned(&plan).join("\n"))?;
        }
        EnsembleVerb::Scale { of, size, reason, consent } => {
            scale(context, &of.name, ScaleEnsemble { size, reason }, consent).await?;
        }
        EnsembleVerb::Replace { of, member, withdraw, reason, consent } => {
            replace(context, &of.name, ReplaceMember { member, withdraw, reason }, consent).await?;
        }
        EnsembleVerb::Restart { of, withdraw, reason, consent } => {
            restart::restart(context, &of.name, RestartMembers { withdraw, reason }, consent).await?;
        }
        EnsembleVerb::Snapshot { of, wait, reason } => {
            snapshots::take(context, &of.name, TakeSnapshot { reason }, wait).await?;
        }
        EnsembleVerb::Snapshots { of } => snapshots::show(context, &of.name).await?,
        EnsembleVerb::Certify { of, out, valid_for } => certify(context, &of.name, &out, valid_for).await?,
        EnsembleVerb::Delete { of, consent } => delete(context, &of.name, consent).await?,
    }
    Ok(Exit::Yes)
}

/// Deletes an ensemble, after the question whether its members may stop.
async fn delete(context: &Context, name: &str, consent: Consent) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    let before = client.ensemble(namespace, name).await?;
    let members = before.status.map_or(0, |status| status.members.len());
    let question = match members {
        0 => format!("delete ensemble {name}?"),
        members => format!("delete ensemble {name} and stop its {}?", plural(members, "member")),
    };
    confirm(&question, consent)?;
    client.delete_ensemble(namespace, name).await?;
    context.show.changed(&format!("ensemble {name}: deleted"));
    if members > 0 {
        context.show.note(&format!(
            "their data are set aside on their nodes; until all have left: bellwether why ensemble/{name}"
        ));
    }
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
    agree_to_leaving(&plan, &format!("scale ensemble {name} to {}", request.size), consent)?;
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

/// Asks whether the members may go that would.
fn agree_to_leaving(plan: &Ensemble, what: &str, consent: Consent) -> Result<(), Failure> {
    let steps = plan.status.iter().flat_map(|status| &status.steps);
    let leaving: Vec<&str> =
        steps.filter(|step| step.action == EnsembleAction::Remove).map(|step| step.text.as_str()).collect();
    if leaving.is_empty() {
        return Ok(());
    }
    confirm(&format!("{}\n{what}?", leaving.join("\n")), consent)
}

const fn changed_or_not(before: &Ensemble, after: &Ensemble) -> &'static str {
    if after.revision == before.revision { "unchanged" } else { "changed" }
}

fn changed(spec: EnsembleSpec, change: EnsembleFlags) -> EnsembleSpec {
    let EnsembleFlags {
        filter,
        size,
        spread,
        client_port,
        peer_port,
        tls,
        failover_after,
        join_within,
        mode,
        snapshot_every,
        snapshots_kept,
        reason,
    } = change;
    let etcd = spec.service.etcd.unwrap_or_default();
    let etcd = EtcdSpec {
        client_port: client_port.or(etcd.client_port),
        peer_port: peer_port.or(etcd.peer_port),
        tls: tls.or(etcd.tls),
    };
    EnsembleSpec {
        service: ServiceAgentSpec { etcd: Some(etcd) },
        size: size.or(spec.size),
        filter: filter.unwrap_or(spec.filter),
        spread: spread.or(spec.spread),
        failover_after: failover_after.map(|span| span.to_string()).or(spec.failover_after),
        join_within: join_within.map(|span| span.to_string()).or(spec.join_within),
        mode: mode.or(spec.mode),
        snapshots: snapshots::changed(spec.snapshots, snapshot_every, snapshots_kept),
        reason,
    }
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
            let votes = status.as_ref().map(|status| format!("{} of {}", status.working, status.wanted));
            vec![
                name.clone(),
                agent(service).to_owned(),
                size.to_string(),
                votes.unwrap_or_else(|| "-".to_owned()),
                mode.as_str().to_owned(),
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

const fn agent(service: &ServiceAgentSpec) -> &'static str {
    if service.etcd.is_some() { "etcd" } else { "-" }
}

/// An ensemble with all its fields, one a line, then its members, and what happens to them.
pub(super) fn sheet(ensemble: &Ensemble) -> String {
    let Ensemble { service, by, reason, .. } = ensemble;
    let ports = service.etcd.iter().flat_map(|etcd| [etcd.client_port, etcd.peer_port]).flatten();
    let ports: Vec<String> = ports.map(|port| port.to_string()).collect();
    let is_secured = service.etcd.iter().any(|etcd| etcd.tls.unwrap_or(true));
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let mut lines = vec![
        format!("name            {}", ensemble.name),
        format!("service         {} on ports {}", agent(service), ports.join(" and ")),
        format!("tls             {}", if is_secured { "yes" } else { "no" }),
        format!("size            {}", ensemble.size),
        format!("filter          {}", ensemble.filter),
        format!("spread          {}", ensemble.spread.as_deref().unwrap_or("-")),
        format!("failover after  {}", Span::from_millis(ensemble.failover_after_ms)),
        format!("join within     {}", Span::from_millis(ensemble.join_within_ms)),
        format!("mode            {}", ensemble.mode),
        format!("snapshots       {}", snapshots::policy(ensemble.snapshots.as_ref())),
        format!("revision        {}", ensemble.revision),
        format!("changed         by {by}, {}{reason}", date(ensemble.at_ms)),
    ];
    lines.push(String::new());
    lines.extend(planned(ensemble));
    lines.join("\n")
}

/// The members of an ensemble, and what happens to them.
fn planned(ensemble: &Ensemble) -> Vec<String> {
    let Some(status) = &ensemble.status else { return vec!["nothing is known of its members".to_owned()] };
    let rows = status.members.iter().map(|member| {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            member.number.to_string(),
            member.node.clone(),
            member.state.to_string(),
            member.health.to_string(),
            date(member.since_ms),
            or_dash(&member.store_id),
            or_dash(&member.peer_url),
        ]
    });
    let members = match status.members.is_empty() {
        true => "it has no members".to_owned(),
        false => table(&["member", "node", "state", "health", "since", "id", "peer"], rows),
    };
    let mut lines = vec![
        format!("{} of {} members vote{}", status.voting, status.wanted, working(status)),
        String::new(),
        members,
    ];
    lines.extend(status.members.iter().filter_map(|member| member.message.clone()));
    let mut upcoming = upcoming(status);
    upcoming.splice(..0, status.requests.iter().map(requests::line));
    if !upcoming.is_empty() {
        lines.push(String::new());
        lines.extend(upcoming);
    }
    lines.extend(
        status.refusals.iter().map(|of| format!("node {} cannot get a member: {}", of.node, of.reason)),
    );
    let shown = status.refusals.len() as u64;
    if status.refused > shown {
        lines.push(format!("{} more cannot get one", Plural(status.refused - shown, "node")));
    }
    lines
}

/// How many of the members that vote work, if not all of them do.
fn working(status: &EnsembleStatus) -> String {
    match status.working {
        working if working == status.voting => String::new(),
        0 => ", none works".to_owned(),
        1 => ", 1 works".to_owned(),
        working => format!(", {working} work"),
    }
}

/// What happens to the members of an ensemble next, line by line.
fn upcoming(status: &EnsembleStatus) -> Vec<String> {
    let word = |index: usize| if index == 0 { "next" } else { "then" };
    let steps =
        status.steps.iter().enumerate().map(|(index, step)| format!("{}: {}", word(index), step.text));
    steps.chain(status.waiting.iter().map(|waiting| format!("it waits: {waiting}"))).collect()
}
