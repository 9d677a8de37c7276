//! `events`: events in order, and new ones as they happen.

use std::time::Duration;

use bellwether_api::v1::event::Event;
use bellwether_api::v1::page::Page;

use super::subject::{KINDS, is_about};
use crate::args::{Events, Output};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::data::readable;
use crate::show::event::line;
use crate::show::time::{clock, date};
use crate::show::{try_print, try_print_data};

/// Most events that one request returns.
const MOST: u32 = 1_000;

/// Most events that are printed if nobody says otherwise.
const USUAL: u32 = 50;

/// Longest wait of one long poll.
const WAIT: Duration = Duration::from_secs(30);

pub(super) async fn run(context: &Context, args: &Events) -> CommandResult {
    let limit = args.limit.unwrap_or(if args.since.is_some() { MOST } else { USUAL });
    let (found, mut last) = match (&args.about, args.since) {
        (Some(_), _) | (_, Some(_)) => past(context, args, limit).await?,
        (None, None) => {
            let page = context.client.events(&context.namespace, args.after, limit, Duration::ZERO).await?;
            let last = page.items.last().map_or(args.after.unwrap_or_default(), |event| event.seq);
            (page.items, last)
        }
    };
    show(context, args, &found)?;
    if let (Some(about), []) = (&args.about, found.as_slice()) {
        nothing_about(context, about).await?;
    }
    if !args.watch {
        return Ok(Exit::Yes);
    }
    loop {
        let page = context.client.events(&context.namespace, Some(last), MOST, WAIT).await?;
        last = following(&page, last);
        show(context, args, &page.items)?;
    }
}

/// The number after which the next page begins.
fn following(page: &Page<Event>, last: u64) -> u64 {
    let read = page.next.as_ref().and_then(|next| next.parse().ok());
    read.or(page.items.last().map(|event| event.seq)).unwrap_or(last)
}

/// The events about an object, or of the last time, that are to be shown, oldest first, and the number of the last event that was
/// read: the first ones after `--after`, or else the newest.
async fn past(context: &Context, args: &Events, limit: u32) -> Result<(Vec<Event>, u64), Failure> {
    let about = args.about.as_deref();
    if let Some(about) = about
        && let Some((kind, _)) = about.split_once('/')
        && !KINDS.contains(&kind)
    {
        let what = format!("list events about {about}: {kind} is not a kind of object");
        return Err(Failure::usage(what).hint(format!("kinds: {}", KINDS.join(", "))));
    }
    let (client, namespace) = (&context.client, &context.namespace);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let from_ms = match args.since {
        Some(since) => client.time(WAIT).await?.now_ms.saturating_sub(since.as_millis()),
        None => 0,
    };
    let shown =
        |event: &Event| event.time_ms >= from_ms && about.is_none_or(|about| is_about(&event.subject, about));
    let page = client.events(namespace, args.after, MOST, Duration::ZERO).await?;
    let mut last = page.items.last().map_or(args.after.unwrap_or_default(), |event| event.seq);
    let mut first = page.items.first().map_or(0, |event| event.seq);
    let mut oldest_ms = page.items.first().map_or(0, |event| event.time_ms);
    let mut found: Vec<Event> = page.items;
    found.retain(shown);
    while found.len() < limit && (args.after.is_some() || oldest_ms >= from_ms) {
        let page = if args.after.is_some() {
            client.events(namespace, Some(last), MOST, Duration::ZERO).await?
        } else {
            // The page before the first event that was read; events are numbered without gaps.
            let count = u32::try_from(first.saturating_sub(1)).map_or(MOST, |left| left.min(MOST));
            if count == 0 {
                break;
            }
            let after = first - 1 - u64::from(count);
            client.events(namespace, Some(after), count, Duration::ZERO).await?
        };
        let mut items = page.items;
        let Some((low, high)) = items.first().zip(items.last()).map(|(low, high)| (low.seq, high.seq)) else {
            break;
        };
        oldest_ms = items.first().map_or(0, |event| event.time_ms);
        items.retain(shown);
        if args.after.is_some() {
            last = high;
            found.append(&mut items);
        } else if low < first {
            first = low;
            items.append(&mut found);
            found = items;
        } else {
            // Older events are no longer kept.
            break;
        }
    }
    if args.after.is_some() {
        found.truncate(limit);
        last = found.last().filter(|_| found.len() == limit).map_or(last, |event| event.seq);
    } else {
        found.drain(..found.len().saturating_sub(limit));
    }
    Ok((found, last))
}

/// Reports that there are no events about an object.
///
/// # Errors
/// Not found, if there is no such object either.
async fn nothing_about(context: &Context, about: &str) -> Result<(), Failure> {
    let object = match about.split_once('/') {
        Some(("rollout", rest)) => format!("rollout/{}", rest.split('/').next().unwrap_or(rest)),
        Some(("token" | "join-token", _)) => String::new(),
        Some(_) | None => about.to_owned(),
    };
    if !object.is_empty() {
        super::describe::find(context, &object).await?;
    }
    context.show.note(&format!("no events about {about}"));
    Ok(())
}

fn show(context: &Context, args: &Events, events: &[Event]) -> Result<(), Failure> {
    let about = |event: &&Event| args.about.as_ref().is_none_or(|about| is_about(&event.subject, about));
    for event in events.iter().filter(about) {
        let text = match context.show.output {
            Output::Json => readable(event)
                .and_then(|value| serde_json::to_string(&value))
                .map_err(|error| error.to_string()),
            Output::Yaml => readable(event).map_err(|error| error.to_string()).and_then(|value| {
                let text = serde_norway::to_string(&value).map_err(|error| error.to_string())?;
                Ok(format!("---\n{text}"))
            }),
            Output::Name => {
                try_print(&event.seq.to_string())?;
                continue;
            }
            Output::Table | Output::Wide => {
                let is_wide = context.show.output == Output::Wide;
                let time = if is_wide { date(event.time_ms) } else { clock(event.time_ms) };
                try_print(&line(event, context.show.paint, &time))?;
                continue;
            }
        };
        try_print_data(&text.map_err(|error| Failure::ours(format!("print an event: {error}")))?)?;
    }
    Ok(())
}
