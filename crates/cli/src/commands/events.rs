//! `events`: events in order, and new ones as they happen.

mod chain;
mod print;

use std::time::Duration;

use bellwether_api::client::{Client, ListOptions};
use bellwether_api::v1::event::Event;
use bellwether_api::v1::page::Page;

use super::subject::{KINDS, is_about};
use crate::args::Events;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};

/// Most events that one request returns.
const MOST: u32 = 1_000;

/// Most events that are printed if nobody says otherwise.
const USUAL: u32 = 50;

/// Longest wait of one long poll.
const WAIT: Duration = Duration::from_secs(30);

/// Most events that one request with a filter reads.
const MOST_READ: u64 = 20_000;

pub(super) async fn run(context: &Context, args: &Events) -> CommandResult {
    if let Some(number) = args.chain {
        return chain::run(context, number).await;
    }
    let filter = args.filter.as_deref();
    let pointing = |error| Failure::pointing(error, filter);
    let options = ListOptions { filter: args.filter.clone(), ..ListOptions::default() };
    let client = context.client.listing(options);
    let limit = args.limit.unwrap_or(if args.since.is_some() { MOST } else { USUAL });
    let is_whole = args.about.is_none() && args.since.is_none() && filter.is_none();
    let (found, mut last) = if is_whole {
        let page = client.events(&context.namespace, args.after, limit, Duration::ZERO).await?;
        let last = page.items.last().map_or(args.after.unwrap_or_default(), |event| event.seq);
        (page.items, last)
    } else {
        past(context, &client, args, limit).await?
    };
    show(context, args, &found)?;
    if let (Some(about), []) = (&args.about, found.as_slice()) {
        nothing_about(context, about).await?;
    }
    if !args.watch {
        return Ok(Exit::Yes);
    }
    loop {
        let page = client.events(&context.namespace, Some(last), MOST, WAIT).await.map_err(pointing)?;
        last = following(&page, last);
        show(context, args, &page.items)?;
    }
}

/// The number after which the next page begins.
fn following(page: &Page<Event>, last: u64) -> u64 {
    let read = page.next.as_ref().and_then(|next| next.parse().ok());
    read.or(page.items.last().map(|event| event.seq)).unwrap_or(last)
}

/// The events about an object, of the last time, or that a filter matches, oldest first, and the number up to which events were read:
/// the first ones after `--after`, or else the newest.
async fn past(
    context: &Context,
    client: &Client,
    args: &Events,
    limit: u32,
) -> Result<(Vec<Event>, u64), Failure> {
    let about = args.about.as_deref();
    if let Some(about) = about
        && let Some((kind, _)) = about.split_once('/')
        && !KINDS.contains(&kind)
    {
        let what = format!("list events about {about}: {kind} is not a kind of object");
        return Err(Failure::usage(what).hint(format!("kinds: {}", KINDS.join(", "))));
    }
    let from_ms = match args.since {
        Some(since) => client.time(WAIT).await?.now_ms.saturating_sub(since.as_millis()),
        None => 0,
    };
    let history = History { context, client, filter: args.filter.as_deref() };
    let shown =
        |event: &Event| event.time_ms >= from_ms && about.is_none_or(|about| is_about(&event.subject, about));
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    match args.after {
        Some(after) => history.after(after, limit, &shown).await,
        None => history.newest(from_ms, limit, &shown).await,
    }
}

/// The events of a namespace, read page by page.
struct History<'a> {
    context: &'a Context,
    /// Reads those that the filter matches.
    client: &'a Client,
    filter: Option<&'a str>,
}

impl History<'_> {
    async fn page(&self, after: u64) -> Result<Page<Event>, Failure> {
        let page = self.client.events(&self.context.namespace, Some(after), MOST, Duration::ZERO).await;
        page.map_err(|error| Failure::pointing(error, self.filter))
    }

    /// The first events after a number.
    async fn after(
        &self,
        after: u64,
        limit: usize,
        shown: &impl Fn(&Event) -> bool,
    ) -> Result<(Vec<Event>, u64), Failure> {
        let (mut found, mut last) = (Vec::new(), after);
        loop {
            let page = self.page(last).await?;
            let next = following(&page, last);
            found.extend(page.items.into_iter().filter(shown));
            if found.len() >= limit {
                found.truncate(limit);
                let last = found.last().map_or(next, |event: &Event| event.seq);
                return Ok((found, last));
            }
            if next == last {
                return Ok((found, last));
            }
            last = next;
        }
    }

    /// The newest events, back to a time.
    async fn newest(
        &self,
        from_ms: u64,
        limit: usize,
        shown: &impl Fn(&Event) -> bool,
    ) -> Result<(Vec<Event>, u64), Failure> {
        let every = &self.context.client;
        let newest = every.events(&self.context.namespace, None, 1, Duration::ZERO).await?;
        let oldest = every.events(&self.context.namespace, Some(0), 1, Duration::ZERO).await?;
        let number = |page: &Page<Event>| page.items.first().map_or(0, |event| event.seq);
        let (last, oldest) = (number(&newest), number(&oldest));
        let size = if self.filter.is_some() { MOST_READ } else { u64::from(MOST) };
        let (mut found, mut end, mut oldest_ms) = (Vec::new(), last, u64::MAX);
        while found.len() < limit && end > 0 && end >= oldest && oldest_ms >= from_ms {
            let after = end.saturating_sub(size);
            let mut events = self.between(after, end).await?;
            oldest_ms = events.first().map_or(oldest_ms, |event| event.time_ms);
            events.retain(shown);
            events.append(&mut found);
            found = events;
            end = after;
        }
        found.drain(..found.len().saturating_sub(limit));
        Ok((found, last))
    }

    /// The events after a number, up to another one.
    async fn between(&self, after: u64, end: u64) -> Result<Vec<Event>, Failure> {
        let (mut events, mut last) = (Vec::new(), after);
        while last < end {
            let page = self.page(last).await?;
            let next = following(&page, last);
            events.extend(page.items.into_iter().filter(|event| event.seq <= end));
            if next == last {
                break;
            }
            last = next;
        }
        Ok(events)
    }
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
    let events: Vec<Event> = events.iter().filter(about).cloned().collect();
    print::each(context, &events)
}
