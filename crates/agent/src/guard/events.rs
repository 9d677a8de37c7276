//! What a guard waits for: requests of whoever started it, and ends of its children. Two threads wait, and one acts.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use bellwether_rt::clock::Clock;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::de::DeserializeOwned;

/// Events that wait; whoever has another one waits too.
const WAITING: usize = 16;

/// What a guard waits for.
#[derive(Debug)]
pub enum Event<R> {
    /// Whoever started the guard asks for something.
    Requested(R),
    /// Whoever started the guard has ended, or wants everything to end.
    Closed,
    /// A child may have ended.
    ChildEnded,
    /// The time is over.
    TimeOver,
}

/// The source of events.
#[derive(Debug)]
pub struct Events<R> {
    events: Receiver<Event<R>>,
    watch: SyncSender<()>,
}

impl<R: DeserializeOwned + Send + 'static> Events<R> {
    /// Begins to wait for requests from here, which are lines of JSON.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(requests: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, events) = sync_channel(WAITING);
        // One request to look again is as good as many.
        let (watch, watched) = sync_channel(1);
        let ends = sender.clone();
        thread::Builder::new().name("requests".to_owned()).spawn(move || read(requests, &sender))?;
        thread::Builder::new().name("ends".to_owned()).spawn(move || watch_children(&watched, &ends))?;
        Ok(Self { events, watch })
    }

    /// The next event; [`Event::TimeOver`] after `wait`, if there is none until then.
    pub fn next(&self, wait: Option<Duration>) -> Event<R> {
        match wait {
            None => self.events.recv().unwrap_or(Event::Closed),
            Some(wait) => self.events.recv_timeout(wait).unwrap_or_else(|error| match error {
                RecvTimeoutError::Timeout => Event::TimeOver,
                RecvTimeoutError::Disconnected => Event::Closed,
            }),
        }
    }

    /// Has the end of a child be told, once: those that had ended have been reaped, or another one was started.
    pub fn watch_children(&self) {
        // If it is full, a look is to follow already.
        self.watch.try_send(()).unwrap_or_default();
    }
}

/// What is left until this time since boot; nothing on a machine that does not say how long it runs.
#[must_use]
pub fn left(clock: &Clock, at_ms: u64) -> Duration {
    let now = clock.since_boot();
    now.map_or(Duration::ZERO, |now| Duration::from_millis(at_ms.saturating_sub(now.as_millis())))
}

/// Tells of each request, and of the end of them: also if one cannot be understood, which is of nobody known.
fn read<R: DeserializeOwned>(requests: impl Read, events: &SyncSender<Event<R>>) {
    for line in BufReader::new(requests).lines() {
        let request = line.ok().and_then(|line| serde_json::from_str(&line).ok());
        let Some(request) = request else { break };
        if events.send(Event::Requested(request)).is_err() {
            return;
        }
    }
    // Nobody waits any more otherwise.
    drop(events.send(Event::Closed));
}

/// Tells that a child has ended, and leaves it to be reaped by whoever starts children: its number is its own until then.
fn watch_children<R>(watched: &Receiver<()>, events: &SyncSender<Event<R>>) {
    while watched.recv().is_ok() {
        let ended = loop {
            match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(Errno::INTR) => {}
                ended => break ended,
            }
        };
        // Without children there is nothing to tell.
        if ended.is_ok() && events.send(Event::ChildEnded).is_err() {
            return;
        }
    }
}
