//! Events over HTTP: pages with a blocking read, and a stream that resumes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::sse::{self, KeepAlive, Sse};
use bellwether_api::list::JsonRow;
use bellwether_api::list::tables::EVENTS;
use bellwether_api::problem::Code;
use bellwether_api::shape::ShapeError;
use bellwether_api::v1::event::Event;
use bellwether_core::access::Identity;
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::filter::Filter;
use bellwether_core::words::name::Namespace;
use bellwether_core::words::time::{Span, Timestamp};
use futures_util::Stream;
use http::HeaderMap;
use tokio::time::Instant;

use super::auth::{Authenticated, is_still};
use super::input::{NamespacePath, QueryParams};
use super::list::{ListAnswer, ListQuery};
use super::listen::Peer;
use super::problem::Failure;
use super::readable::Readable;
use super::state::AppState;
use crate::event_log::{self, EventLogError};

/// Events per read for a stream.
const STREAM_PAGE: usize = 256;

/// Events per read for a filter.
const FILTER_PAGE: usize = 1_000;

/// Most reads for one page: a filter that matches nothing reads this many times [`FILTER_PAGE`] events, and the next page goes on.
const MAX_READS: usize = 20;

/// Longest life of a stream, after which the client authenticates again.
const STREAM_LIFE: Span = Span::from_secs(300);

/// Interval of keep-alive messages on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Events after `after`, oldest first; the newest `limit` when `after` is absent. With `wait`, waits for the first. With a filter,
/// `next` is the last event that was read, whether it matches or not.
pub(crate) async fn list(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
) -> Result<ListAnswer, Failure> {
    let list = ListQuery::read(&query, &EVENTS, &["wait"])?;
    list.only_in_own_order()?;
    let wait = query.wait()?;
    let (rows, next) = match query.after()? {
        None => {
            let rows = newest(&app, &namespace, &list).await?;
            let next = rows.last().filter(|_| rows.len() == list.limit).map(JsonRow::id);
            (rows, next)
        }
        Some(after) => {
            let (rows, place) = awaited(&app, &namespace, &list, (after, wait)).await?;
            let has_next = if list.is_filtered { place > after } else { rows.len() == list.limit };
            (rows, has_next.then(|| place.get().to_string()))
        }
    };
    Ok(list.page(&rows, next, None, app.world().revision))
}

/// As [`following`], once there is a matching event, or `wait` is over.
async fn awaited(
    app: &AppState,
    namespace: &Namespace,
    list: &ListQuery,
    (after, wait): (Sequence, Duration),
) -> Result<(Vec<JsonRow<Event>>, Sequence), Failure> {
    let (mut after, end) = (after, Instant::now() + wait);
    loop {
        if after >= last(app, namespace) {
            wait_for_more(app, namespace, after, end.saturating_duration_since(Instant::now())).await;
        }
        let (rows, place) = following(app, namespace, list, after).await?;
        // An event that does not match, or that the caller may not read, is nothing to answer with.
        let is_over = app.stop.is_cancelled() || Instant::now() >= end;
        if !rows.is_empty() || is_over {
            return Ok((rows, place));
        }
        after = place;
    }
}

/// The matching events after a sequence number, oldest first, and the number up to which they were read.
async fn following(
    app: &AppState,
    namespace: &Namespace,
    list: &ListQuery,
    after: Sequence,
) -> Result<(Vec<JsonRow<Event>>, Sequence), Failure> {
    let (mut rows, mut place) = (Vec::new(), after);
    let size = read_size(list);
    for _ in 0..MAX_READS {
        let events = read(app, namespace, place, size).await?;
        let is_last = events.len() < size;
        list.evaluate(|| {
            for event in &events {
                place = Sequence::new(event.seq);
                rows.extend(row(app, event)?.filter(|row| list.has_event(row)));
                if rows.len() == list.limit {
                    break;
                }
            }
            Ok::<_, Failure>(())
        })?;
        if is_last || rows.len() == list.limit {
            break;
        }
    }
    Ok((rows, place))
}

/// The newest matching events, oldest first.
async fn newest(
    app: &AppState,
    namespace: &Namespace,
    list: &ListQuery,
) -> Result<Vec<JsonRow<Event>>, Failure> {
    let (mut newest, size) = (Vec::new(), read_size(list));
    let mut end = last(app, namespace);
    for _ in 0..MAX_READS {
        let start = Sequence::new(end.get().saturating_sub(size as u64));
        let events = read(app, namespace, start, size).await?;
        list.evaluate(|| {
            for event in events.iter().rev().filter(|event| event.seq <= end.get()) {
                newest.extend(row(app, event)?.filter(|row| list.has_event(row)));
                if newest.len() == list.limit {
                    break;
                }
            }
            Ok::<_, Failure>(())
        })?;
        if newest.len() == list.limit || start == Sequence::ZERO || !list.is_filtered {
            break;
        }
        end = start;
    }
    newest.reverse();
    Ok(newest)
}

/// Number of events to read at once.
const fn read_size(list: &ListQuery) -> usize {
    if list.is_filtered { FILTER_PAGE } else { list.limit }
}

fn row(app: &AppState, event: &Event) -> Result<Option<JsonRow<Event>>, Failure> {
    let row = JsonRow::new(event, &EVENTS, app.clock.now());
    row.map(Some).map_err(|error| Failure::new(Code::Internal, format!("cannot encode an event: {error}")))
}

/// All events after `after` (or the `Last-Event-ID`), then each new one. With a filter, a message without data has the number up to which
/// the events were read, where the last of them are not sent: the reader resumes there.
pub(crate) async fn stream(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    query: QueryParams,
    (headers, peer, caller): (HeaderMap, Option<Extension<Peer>>, Authenticated),
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, Failure> {
    query.only(&["after", "filter"])?;
    let filter: Option<String> = query.get("filter")?;
    let filter = filter.map(|text| query.filter(&text, &EVENTS)).transpose();
    let filter = filter.map_err(|error| ShapeError::misread("filter", &error))?;
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let after = match resumed {
        Some(number) => Sequence::new(number),
        None => query.after()?.unwrap_or_else(|| last(&app, &namespace)),
    };
    // It ends after a while, and the client resumes it: nobody else knows whether that is still there.
    let end = app.clock.now().plus(STREAM_LIFE);
    let caller = StreamCaller { headers, peer: peer.map(|peer| peer.0), identity: caller.0 };
    let choice = Arc::new(StreamChoice { readable: query.readable, filter, caller });
    let place = (app, namespace, after);
    let pages = futures_util::stream::unfold(place, move |place| next_page(place, choice.clone(), end));
    let events = futures_util::StreamExt::flat_map(pages, |page| {
        let position = page.position.map(position_message);
        futures_util::stream::iter(page.events.into_iter().map(message).chain(position).map(Ok))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn message(event: Event) -> sse::Event {
    let data = serde_json::to_string(&event).unwrap_or_default();
    sse::Event::default().id(event.seq.to_string()).event(event.kind).data(data)
}

/// A message that is no event: by the rules of server-sent events, a client keeps its number and shows nothing.
fn position_message(last: u64) -> sse::Event {
    sse::Event::default().id(last.to_string())
}

/// Where a stream is: the last event that was sent.
type StreamPosition = (AppState, Namespace, Sequence);

/// What a stream has of all events.
struct StreamChoice {
    readable: Readable,
    filter: Option<Filter>,
    caller: StreamCaller,
}

/// By what the caller of a stream is known: whether they still are is asked before events are sent.
struct StreamCaller {
    headers: HeaderMap,
    peer: Option<Peer>,
    identity: Identity,
}

impl StreamCaller {
    fn is_still(&self, app: &AppState) -> bool {
        let mut request = Request::new(Body::empty());
        self.headers.clone_into(request.headers_mut());
        if let Some(peer) = &self.peer {
            request.extensions_mut().insert(peer.clone());
        }
        is_still(app, &request, &self.identity)
    }
}

/// Events of a stream.
struct StreamPage {
    events: Vec<Event>,
    /// Up to which number they were read, if the last of them is not one of these.
    position: Option<u64>,
}

impl StreamChoice {
    /// Those of these events that the stream has.
    fn page(&self, app: &AppState, events: Vec<Event>) -> StreamPage {
        let (last, now) = (events.last().map(|event| event.seq), app.clock.now());
        let is_readable = |event: &Event| self.readable.has_subject(&event.subject);
        let events: Vec<Event> = match &self.filter {
            None => events.into_iter().filter(is_readable).collect(),
            Some(filter) => app.traffic.reads.evaluate(filter, || {
                let matches =
                    |event: &Event| JsonRow::new(event, &EVENTS, now).is_ok_and(|row| filter.matches(&row));
                events.into_iter().filter(|event| is_readable(event) && matches(event)).collect()
            }),
        };
        let is_left_out = |last: &u64| events.last().is_none_or(|event| event.seq < *last);
        let position = last.filter(|last| self.filter.is_some() && is_left_out(last));
        StreamPage { events, position }
    }
}

/// The next events after a sequence number. Ends when the server stops or the store fails, and the client then resumes; and when the caller has no
/// longer the rights with which it began.
async fn next_page(
    (app, namespace, after): StreamPosition,
    choice: Arc<StreamChoice>,
    end: Timestamp,
) -> Option<(StreamPage, StreamPosition)> {
    loop {
        let left = end.since(app.clock.now());
        if app.stop.is_cancelled() || left == Span::ZERO {
            return None;
        }
        let (reader, of, asked) = (app.clone(), namespace.clone(), choice.clone());
        let choice = choice.clone();
        let page = async move {
            let events = read(&reader, &of, after, STREAM_PAGE).await.ok()?;
            let last = events.last().map(|event| Sequence::new(event.seq));
            Some((last, choice.page(&reader, events)))
        };
        let (last, page) = app.traffic.reads.run(page).await.ok()??;
        if !asked.caller.is_still(&app) {
            return None;
        }
        if let Some(last) = last {
            return Some((page, (app, namespace, last)));
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

/// Events after a sequence number.
pub(super) async fn read(
    app: &AppState,
    namespace: &Namespace,
    after: Sequence,
    limit: usize,
) -> Result<Vec<Event>, Failure> {
    event_log::read(&app.world(), &app.records.store, (namespace, after), limit).await.map_err(|error| {
        match error {
            EventLogError::Store(_) => Failure::new(Code::Store, error.to_string()),
            EventLogError::Shape(error) => error.into(),
        }
    })
}
