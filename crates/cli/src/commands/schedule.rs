//! `schedule`.

use bellwether_api::client::CallError;
use bellwether_api::paths::{self, fill};
use bellwether_api::problem::Code;
use bellwether_api::v1::page::Page;
use bellwether_api::v1::policy::OnFailure;
use bellwether_api::v1::schedule::{Concurrency, DueOutcome, Schedule, ScheduleSpec};
use bellwether_core::words::time::Span;

use super::policy::merged;
use super::{documents, lists, runs};
use crate::args::{ScheduleFlags, ScheduleVerb};
use crate::confirm::confirm;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::table;
use crate::show::time::date;

pub(super) async fn run(context: &Context, verb: ScheduleVerb) -> CommandResult {
    let (client, namespace) = (&context.client, context.namespace.as_str());
    match verb {
        ScheduleVerb::Create { of, workflow, filter, cron, change } => {
            let policy = runs::policy_of(change.policy.clone())?;
            let spec = ScheduleSpec { workflow, filter, cron, policy, ..ScheduleSpec::default() };
            let spec = changed(spec, change);
            let created = client.only_at(0).set_schedule(namespace, &of.name, &spec).await;
            report(context, &created.map_err(|error| pointing(error, &spec))?, "created").await?;
        }
        ScheduleVerb::Set { of, workflow, filter, cron, change, if_revision } => {
            let before = client.schedule(namespace, &of.name).await?;
            let spec = before.spec();
            let policy = merged(spec.policy, change.policy.clone())?;
            let spec = ScheduleSpec {
                workflow: workflow.unwrap_or(spec.workflow),
                filter: filter.unwrap_or(spec.filter),
                cron: cron.unwrap_or(spec.cron),
                policy,
                ..spec
            };
            write(context, &before, changed(spec, change), if_revision).await?;
        }
        ScheduleVerb::List(flags) => {
            let read = async |context: &Context| context.client.schedules(namespace).await;
            let path = fill(paths::SCHEDULES, &[namespace]);
            return lists::show(context, &flags, &path, read, async |page| list(context, &page).await).await;
        }
        ScheduleVerb::Get { of } => {
            let schedule = client.schedule(namespace, &of.name).await?;
            if !documents::yaml(context, "schedule", std::slice::from_ref(&schedule)).await? {
                context.show.data(&schedule, || vec![schedule.name.clone()], |_| sheet(&schedule))?;
            }
        }
        ScheduleVerb::Suspend { of, reason } => suspend(context, &of.name, true, reason).await?,
        ScheduleVerb::Resume { of, reason } => suspend(context, &of.name, false, reason).await?,
        ScheduleVerb::Delete { of, consent } => {
            confirm(&format!("delete schedule {}? its runs go on", of.name), consent)?;
            client.delete_schedule(namespace, &of.name).await?;
            context.show.changed(&format!("schedule {}: deleted; its runs go on", of.name));
        }
    }
    Ok(Exit::Yes)
}

async fn suspend(context: &Context, name: &str, suspended: bool, reason: String) -> Result<(), Failure> {
    let before = context.client.schedule(&context.namespace, name).await?;
    let spec = ScheduleSpec { suspended, reason, ..before.spec() };
    write(context, &before, spec, None).await
}

/// Writes what a schedule is to be, unless somebody changed it since it was read.
async fn write(
    context: &Context,
    before: &Schedule,
    spec: ScheduleSpec,
    if_revision: Option<u64>,
) -> Result<(), Failure> {
    let client = context.client.only_at(if_revision.unwrap_or(before.revision));
    let after = client.set_schedule(&context.namespace, &before.name, &spec).await;
    let after = after.map_err(|error| pointing(error, &spec))?;
    let what = if after.revision == before.revision { "unchanged" } else { "changed" };
    report(context, &after, what).await
}

fn changed(spec: ScheduleSpec, change: ScheduleFlags) -> ScheduleSpec {
    let ScheduleFlags { time_zone, starting_deadline, concurrency, reason, policy: _ } = change;
    ScheduleSpec {
        time_zone: time_zone.or(spec.time_zone),
        starting_deadline: starting_deadline.map(|span| span.to_string()).or(spec.starting_deadline),
        concurrency: concurrency.or(spec.concurrency),
        reason,
        ..spec
    }
}

fn pointing(error: CallError, spec: &ScheduleSpec) -> Failure {
    Failure::pointing(error, Some(&spec.filter))
}

async fn report(context: &Context, schedule: &Schedule, what: &str) -> Result<(), Failure> {
    let next = match (schedule.suspended, schedule.next_ms) {
        (true, _) => "suspended".to_owned(),
        (false, Some(next)) => format!("due next {}", date(next)),
        (false, None) => "never due again".to_owned(),
    };
    context.show.changed(&format!("schedule {}: {what}, {next}", schedule.name));
    let workflow = context.client.workflow(&context.namespace, &schedule.workflow).await;
    match workflow {
        Err(CallError::Problem(problem)) if problem.code == Code::NotFound => {
            context.show.note(&format!("no run starts until there is workflow {}", schedule.workflow));
        }
        Ok(workflow)
            if workflow.spec.rollback.is_none()
                && schedule.policy.on_failure == Some(OnFailure::Rollback) =>
        {
            let what = format!("no run starts: workflow {} names no other one that undoes it", workflow.name);
            context.show.note(&what);
        }
        Ok(_) | Err(_) => {}
    }
    context.show.data(schedule, || vec![schedule.name.clone()], |_| String::new())
}

async fn list(context: &Context, page: &Page<Schedule>) -> Result<(), Failure> {
    if documents::yaml(context, "schedule", &page.items).await? {
        return Ok(());
    }
    let names = || page.items.iter().map(|schedule| schedule.name.clone()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|schedule| {
            let Schedule { name, workflow, cron, time_zone, .. } = schedule;
            let when = format!("{cron} {time_zone}");
            vec![name.clone(), workflow.clone(), when, due_next(schedule), outcome(schedule)]
        });
        if page.items.is_empty() {
            return "no schedules; create one with: bellwether schedule create SCHEDULE WORKFLOW -l FILTER --cron CRON"
                .to_owned();
        }
        table(&["name", "workflow", "cron", "next", "last"], rows)
    })
}

/// A schedule with all its fields, one a line.
pub(super) fn sheet(schedule: &Schedule) -> String {
    let concurrency = match schedule.concurrency {
        Concurrency::Forbid => "forbid: a due time is skipped while the last run is in progress",
        Concurrency::Allow => "allow: a run is started also while the last one is in progress",
    };
    let reason = if schedule.reason.is_empty() { String::new() } else { format!(": {}", schedule.reason) };
    [
        format!("name               {}", schedule.name),
        format!("workflow           {}", schedule.workflow),
        format!("filter             {}", schedule.filter),
        format!("cron               {}", schedule.cron),
        format!("time zone          {}", schedule.time_zone),
        format!("starting deadline  {}", Span::from_millis(schedule.starting_deadline_ms)),
        format!("concurrency        {concurrency}"),
        format!("next               {}", due_next(schedule)),
        format!("last               {}", outcome(schedule)),
        format!("last run           {}", schedule.last_run.as_deref().unwrap_or("-")),
        format!("revision           {}", schedule.revision),
        format!("changed            by {}, {}{reason}", schedule.by, date(schedule.at_ms)),
    ]
    .join("\n")
}

fn due_next(schedule: &Schedule) -> String {
    match schedule.next_ms {
        Some(next) => date(next),
        None if schedule.suspended => "suspended".to_owned(),
        None => "never".to_owned(),
    }
}

/// What became of the last due time: `started backup-12, due …`, `skipped: run backup-12 is in progress, due …`.
fn outcome(schedule: &Schedule) -> String {
    let Some(DueOutcome { due_ms, result, text }) = &schedule.last else { return "-".to_owned() };
    let between = if result == "started" { " " } else { ": " };
    format!("{result}{between}{text}, due {}", date(*due_ms))
}
