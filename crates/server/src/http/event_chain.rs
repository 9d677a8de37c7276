//! The chain of an event over HTTP: the events that led to it, and those that it led to.

use std::collections::BTreeSet;

use axum::extract::State;
use bellwether_api::problem::Code;
use bellwether_api::v1::event::{Event, EventChain};
use bellwether_core::words::counter::Sequence;
use bellwether_core::words::name::Namespace;

use super::events::read;
use super::input::{JsonAnswer, NamespacePath, Number};
use super::problem::Failure;
use super::readable::Readable;
use super::state::AppState;

/// Most events that led to an event, one to the other.
const MAX_DEPTH: usize = 100;

/// Most events of an answer: what one event may lead to on a whole fleet is longer than anybody reads.
const MAX_EVENTS: usize = 1_000;

/// Events per read for what an event led to.
const PAGE: usize = 1_000;

/// Most such reads.
const MAX_READS: usize = 20;

pub(crate) async fn get(
    State(app): State<AppState>,
    NamespacePath(namespace): NamespacePath,
    Number(number): Number,
    readable: Readable,
) -> Result<JsonAnswer<EventChain>, Failure> {
    let reader = ChainReader { app, namespace, readable };
    let found = reader.at(number).await?.filter(|event| reader.shows(event));
    let Some(event) = found else { return Err(reader.missing(number)) };
    let mut items = reader.before(&event).await?;
    items.push(event);
    let (after, read_to, complete) = reader.after(number).await?;
    items.extend(after);
    Ok(JsonAnswer(EventChain { items, read_to, complete }))
}

/// Reads the events of a namespace for a caller.
struct ChainReader {
    app: AppState,
    namespace: Namespace,
    readable: Readable,
}

impl ChainReader {
    fn shows(&self, event: &Event) -> bool {
        self.readable.has_subject(&event.subject)
    }

    /// The event of this number, if it is still kept.
    async fn at(&self, number: u64) -> Result<Option<Event>, Failure> {
        let Some(before) = number.checked_sub(1) else { return Ok(None) };
        let events = read(&self.app, &self.namespace, Sequence::new(before), 1).await?;
        Ok(events.into_iter().next().filter(|event| event.seq == number))
    }

    fn missing(&self, number: u64) -> Failure {
        let world = self.app.world();
        let kept = world.fleets.get(&self.namespace);
        let (first, last) = kept.map_or((0, 0), |fleet| (fleet.oldest_event.get(), fleet.last_event().get()));
        let failure = Failure::new(Code::NotFound, format!("cannot find event {number}"));
        failure.hint(format!("events {first} to {last} are kept: bellwether events"))
    }

    /// What led to an event, from the first on.
    async fn before(&self, event: &Event) -> Result<Vec<Event>, Failure> {
        let (mut items, mut next) = (Vec::new(), event.caused_by);
        for _ in 0..MAX_DEPTH {
            let Some(number) = next else { break };
            let Some(cause) = self.at(number).await? else { break };
            next = cause.caused_by.filter(|earlier| *earlier < number);
            items.extend(Some(cause).filter(|cause| self.shows(cause)));
        }
        items.reverse();
        Ok(items)
    }

    /// What an event led to, in order; up to which number events were read, and whether that is the last one.
    async fn after(&self, number: u64) -> Result<(Vec<Event>, u64, bool), Failure> {
        let (mut items, mut chain, mut read_to) = (Vec::new(), BTreeSet::from([number]), number);
        for _ in 0..MAX_READS {
            let events = read(&self.app, &self.namespace, Sequence::new(read_to), PAGE).await?;
            let is_last = events.len() < PAGE;
            for event in events {
                read_to = event.seq;
                if event.caused_by.is_some_and(|cause| chain.contains(&cause)) {
                    chain.insert(event.seq);
                    items.extend(Some(event).filter(|event| self.shows(event)));
                }
                if items.len() >= MAX_EVENTS {
                    return Ok((items, read_to, false));
                }
            }
            if is_last {
                return Ok((items, read_to, true));
            }
        }
        Ok((items, read_to, false))
    }
}
