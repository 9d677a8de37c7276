//! `audit`: the audit log of a server.

use std::time::Duration;

use bellwether_api::v1::audit::{AuditEntry, AuditOutcome};

use crate::args::{AuditVerb, Output};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::data::{json_line, readable, yaml};
use crate::show::time::date;
use crate::show::{try_print, try_print_data, visible};

/// Most entries that one request returns.
const MOST: u32 = 1_000;

/// Longest wait of one long poll.
const WAIT: Duration = Duration::from_secs(30);

pub(super) async fn run(context: &Context, verb: AuditVerb) -> CommandResult {
    let AuditVerb::List { filter, after, limit, watch } = verb;
    let filter = filter.as_deref();
    let pointing = |error| Failure::pointing(error, filter);
    let page = context.client.audit(filter, after, limit, Duration::ZERO).await.map_err(pointing)?;
    let mut last = page.items.last().map_or(after.unwrap_or_default(), |entry| entry.id);
    show(context, &page.items)?;
    if !watch {
        return Ok(Exit::Yes);
    }
    // Each server numbers the entries of its own log.
    let client = context.client.of_server_in_use();
    loop {
        let page = client.audit(filter, Some(last), MOST, WAIT).await.map_err(pointing)?;
        last = page.items.last().map_or(last, |entry| entry.id);
        show(context, &page.items)?;
    }
}

fn show(context: &Context, entries: &[AuditEntry]) -> Result<(), Failure> {
    for entry in entries {
        let text = match context.show.output {
            Output::Json => {
                readable(entry).map_err(|error| error.to_string()).and_then(|value| json_line(&value))
            }
            Output::Yaml => yaml(entry).map(|text| format!("---\n{text}")),
            Output::Name => {
                try_print(&entry.id.to_string())?;
                continue;
            }
            Output::Table | Output::Wide => {
                try_print(&visible::line(&line(entry)))?;
                continue;
            }
        };
        try_print_data(&text.map_err(|error| Failure::ours(format!("print an entry: {error}")))?)?;
    }
    Ok(())
}

/// An entry on a line: when, who from where, what, and what became of it.
fn line(entry: &AuditEntry) -> String {
    let address = entry.address.as_ref().map(|address| format!(" from {address}")).unwrap_or_default();
    let right = entry.right.as_ref().map(|right| format!(" ({right})")).unwrap_or_default();
    let end = match (entry.outcome, entry.status, &entry.reason) {
        (AuditOutcome::Denied, _, reason) => format!("denied: {}", reason.as_deref().unwrap_or("no reason")),
        (AuditOutcome::Allowed, Some(status), _) => format!("status {status}"),
        (AuditOutcome::Allowed, None, _) => "no answer recorded".to_owned(),
    };
    let omitted = entry.omitted.map(|count| format!("; {count} denied before it are not recorded"));
    format!(
        "{} {} {}{address}: {} {}{right}: {end}{}",
        date(entry.time_ms),
        entry.id,
        entry.actor,
        entry.method,
        entry.path,
        omitted.unwrap_or_default()
    )
}
