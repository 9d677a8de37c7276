//! Events over HTTP: pages with a blocking read, and a stream that resumes.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{self, KeepAlive, Sse};
use bellwether_api::problem::Code;
use bellwether_api::v1::event::Event;
use bellwether_api::v1::page::Page;
use bellwether_core::records::key::Record;
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::name::Namespace;
use bellwether_core::words::time::{Span, Timestamp};
use futures_util::Stream;
use http::HeaderMap;

use super::input::{JsonAnswer, NamespacePath, QueryParams};
use super::problem::Failure;
use super::state::AppState;
use crate::records::{encoding, key_text};

/// Events per read for a stream.
const STREAM_PAGE: usize = 256;

/// Longest life of a stream, after which the client authenticates again.
const STREAM_LIFE: Span = Span::from_secs(300);

/// Interval of keep-alive messages on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events after `after`, oldest first; the newest `limit` when `after` is absent. With `wait`, waits for the first.
pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<JsonAnswer<Page<Event>>, Failure> {
    query.only(&["after", "limit", "wait"])?;
    let limit = query.limit()?;
    let last = last(&app, &namespace);
    let newest = Sequence::new(last.get().saturating_sub(limit as u64));
    let after = query.after()?.unwrap_or(newest);
    let wait = query.wait()?;
    if after >= last && !wait.is_zero() {
        wait_for_more(&app, &namespace, after, wait).await;
    }
    let items = read(&app, &namespace, after, limit).await?;
    let next = items.last().map(|event| event.seq.to_string());
    let revision = app.world().revision.get();
    Ok(JsonAnswer(Page { next: next.filter(|_| items.len() == limit), items, revision }))
}

/// All events after `after` (or the `Last-Event-ID`), then each new one.
pub(crate) async fn stream(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Failure> {
    query.only(&["after"])?;
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let after = match resumed {
        Some(number) => Sequence::new(number),
        None => query.after()?.unwrap_or_else(|| last(&app, &namespace)),
    };
    // The stream ends after a while and the client resumes it, so that a deleted token stops working.
    let end = app.clock.now().plus(STREAM_LIFE);
    let pages = futures_util::stream::unfold((app, namespace, after), move |place| next_page(place, end));
    let events = futures_util::StreamExt::flat_map(pages, |page| {
        futures_util::stream::iter(page.into_iter().map(|event| {
            let data = serde_json::to_string(&event).unwrap_or_default();
            Ok(sse::Event::default().id(event.seq.to_string()).event(event.kind).data(data))
        }))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Where a stream is: the last event that was sent.
type StreamPosition = (AppState, Namespace, Sequence);

/// The next events after a sequence number. Ends when the server stops or the store fails; the client then resumes.
async fn next_page(
    (app, namespace, after): StreamPosition,
    end: Timestamp,
) -> Option<(Vec<Event>, StreamPosition)> {
    loop {
        let left = end.since(app.clock.now());
        if app.stop.is_cancelled() || left == Span::ZERO {
            return None;
        }
        let events = read(&app, &namespace, after, STREAM_PAGE).await.ok()?;
        if let Some(last) = events.last() {
            let place = (app, namespace, Sequence::new(last.seq));
            return Some((events, place));
        }
        wait_for_more(&app, &namespace, after, left.to_duration()).await;
    }
}

fn last(app: &AppState, namespace: &Namespace) -> Sequence {
    app.world().fleets.get(namespace).map_or(Sequence::ZERO, |fleet| fleet.last_event())
}

async fn wait_for_more(app: &AppState, namespace: &Namespace, after: Sequence, wait: Duration) {
    let mut worlds = app.records.transactor.follow();
    let more =
        worlds.wait_for(|world| world.fleets.get(namespace).is_some_and(|fleet| fleet.last_event() > after));
    // All arms only wait.
    tokio::select! {
        _ = more => {}
        () = tokio::time::sleep(wait) => {}
        () = app.stop.cancelled() => {}
    }
}

/// Events after a sequence number: from the world if they are there, else from the store.
async fn read(
    app: &AppState,
    namespace: &Namespace,
    after: Sequence,
    limit: usize,
) -> Result<Vec<Event>, Failure> {
    let world = app.world();
    let Some(fleet) = world.fleets.get(namespace) else { return Ok(Vec::new()) };
    let in_memory = fleet.events.range(after.next()..).next().map(|(first, _)| *first);
    if in_memory.is_none_or(|first| first == after.next()) {
        let newer = fleet.events.range(after.next()..).take(limit);
        return Ok(newer.map(|(_, event)| (&**event).into()).collect());
    }
    let page = app.records.store.list(key_text::events_after(namespace, after), None, limit).await;
    let page = page.map_err(|error| Failure::new(Code::Store, format!("cannot {error}")))?;
    let mut events = Vec::with_capacity(page.entries.len());
    for entry in page.entries {
        let Some(key_text::KeyLocation::Namespaced(_, key)) = key_text::read(&entry.key) else { continue };
        let Record::Event(event) = encoding::read(&key, &entry.value)? else { continue };
        events.push((&event).into());
    }
    Ok(events)
}
