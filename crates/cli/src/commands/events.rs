//! `events`: events in order, and new ones as they happen.

use std::time::Duration;

use bellwether_api::v1::event::Event;

use crate::args::{Events, Output};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::data::readable;
use crate::show::paint::{Paint, Tone};
use crate::show::time::{clock, date};
use crate::show::try_print;

/// Most events that one request returns.
const MOST: u32 = 1_000;

/// Longest wait of one long poll.
const WAIT: Duration = Duration::from_secs(30);

pub(super) async fn run(context: &Context, args: &Events) -> CommandResult {
    let read = if args.about.is_some() { MOST } else { args.limit };
    let page = context.client.events(&context.namespace, args.after, read, Duration::ZERO).await?;
    let mut last = page.items.last().map_or(args.after.unwrap_or_default(), |event| event.seq);
    let about = |event: &&Event| args.about.as_ref().is_none_or(|about| event.subject == *about);
    let found: Vec<Event> = page.items.iter().filter(about).cloned().collect();
    let newest = found.len().saturating_sub(usize::try_from(args.limit).unwrap_or(usize::MAX));
    show(context, args, found.get(newest..).unwrap_or_default())?;
    if !args.watch {
        return Ok(Exit::Yes);
    }
    loop {
        let page = context.client.events(&context.namespace, Some(last), MOST, WAIT).await?;
        last = page.items.last().map_or(last, |event| event.seq);
        show(context, args, &page.items)?;
    }
}

fn show(context: &Context, args: &Events, events: &[Event]) -> Result<(), Failure> {
    let about = |event: &&Event| args.about.as_ref().is_none_or(|about| event.subject == *about);
    for event in events.iter().filter(about) {
        let text = match context.show.output {
            Output::Json => readable(event)
                .and_then(|value| serde_json::to_string(&value))
                .map_err(|error| error.to_string()),
            Output::Yaml => readable(event).map_err(|error| error.to_string()).and_then(|value| {
                let text = serde_norway::to_string(&value).map_err(|error| error.to_string())?;
                Ok(format!("---\n{text}"))
            }),
            Output::Name => Ok(event.seq.to_string()),
            Output::Table => Ok(line(event, context.show.paint, &clock(event.time_ms))),
            Output::Wide => Ok(line(event, context.show.paint, &date(event.time_ms))),
        };
        try_print(&text.map_err(|error| Failure::ours(format!("print an event: {error}")))?)?;
    }
    Ok(())
}

/// An event in one line.
pub(super) fn line(event: &Event, paint: Paint, time: &str) -> String {
    let change = match (&event.before, &event.after) {
        (Some(before), Some(after)) => format!("{before} → {after}: "),
        (None, Some(after)) => format!("{after}: "),
        (Some(before), None) => format!("{before} →: "),
        (None, None) => String::new(),
    };
    let tone = match event.kind.rsplit('.').next() {
        Some(
            "failed" | "unreachable" | "rolling_back" | "known_bad" | "rollback_failed" | "late_failure",
        ) => Tone::Bad,
        Some("succeeded" | "known_good" | "up") => Tone::Good,
        Some(_) | None => Tone::Strong,
    };
    format!(
        "{} {} {} {} {change}{} {}",
        paint.text(Tone::Dim, &format!("{:>6}", event.seq)),
        paint.text(Tone::Dim, time),
        paint.text(tone, &format!("{:<22}", event.kind)),
        format_args!("{:<22}", event.subject),
        event.cause,
        paint.text(Tone::Dim, &format!("({})", event.actor)),
    )
}
