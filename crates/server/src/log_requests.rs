//! Readers of logs of jobs: each waits at the server that holds the node's session, for one answer of the node. Memory only,
//! never stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_api::v1::job_log::{LogChunk, LogRequest};
use bellwether_core::words::name::{Actor, Namespace, NodeName};
use tokio::sync::oneshot;

/// Most readers that wait for one node: half of what its agent answers at the same time.
pub const MOST_OF_NODE: usize = 8;

/// Most of them of one caller, where others wait for a place.
pub const MOST_OF_CALLER: usize = 4;

/// Most readers that wait for any node. Each has at most one part of a log in memory.
pub const MOST: usize = 256;

/// Within which time a node takes a request, and answers it after its wait.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// All readers that wait at this server. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct LogRequests(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    /// The number of the last request.
    last: u64,
    count: usize,
    nodes: BTreeMap<(Namespace, NodeName), Vec<Parked>>,
}

#[derive(Debug)]
struct Parked {
    caller: Actor,
    request: LogRequest,
    /// Until the node has the request.
    taken: Option<oneshot::Sender<()>>,
    answer: Option<oneshot::Sender<LogChunk>>,
}

impl Waiting {
    /// Has the latest reader of the caller with most of them give up its place at a node, if this one has few; whether one did.
    fn makes_room(&mut self, node: &(Namespace, NodeName), caller: &Actor) -> bool {
        let Some(of_node) = self.nodes.get_mut(node) else { return false };
        let count = |of: &Actor| of_node.iter().filter(|parked| parked.caller == *of).count();
        let latest = of_node.iter().rposition(|parked| count(&parked.caller) > MOST_OF_CALLER);
        let Some(latest) = latest.filter(|_| count(caller) < MOST_OF_CALLER) else { return false };
        of_node.remove(latest);
        true
    }
}

/// Why a reader has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswered {
    /// The node did not answer in time.
    Late,
    /// It made room for another caller.
    MadeRoom,
}

/// A reader that waits; dropping it ends its request.
#[derive(Debug)]
pub struct LogReader {
    requests: LogRequests,
    node: (Namespace, NodeName),
    number: u64,
    wait: Duration,
    taken: oneshot::Receiver<()>,
    answer: oneshot::Receiver<LogChunk>,
}

impl LogRequests {
    /// Has a reader wait for a part of a log; numbers the request. Where all places of the node are taken, the latest of who has most makes room for a
    /// caller with few. `None` if too many wait.
    #[must_use]
    pub fn park(
        &self,
        caller: Actor,
        node: (Namespace, NodeName),
        mut request: LogRequest,
    ) -> Option<LogReader> {
        let mut waiting = self.waiting();
        let of_node = waiting.nodes.get(&node).map_or(0, Vec::len);
        if waiting.count >= MOST || of_node >= MOST_OF_NODE && !waiting.makes_room(&node, &caller) {
            return None;
        }
        waiting.last = waiting.last.wrapping_add(1);
        waiting.count = waiting.count.saturating_add(1);
        request.number = waiting.last;
        let (number, wait) = (request.number, Duration::from_millis(request.wait_ms));
        let (taken_by, taken) = oneshot::channel();
        let (answered_by, answer) = oneshot::channel();
        let parked = Parked { caller, request, taken: Some(taken_by), answer: Some(answered_by) };
        waiting.nodes.entry(node.clone()).or_default().push(parked);
        Some(LogReader { requests: self.clone(), node, number, wait, taken, answer })
    }

    /// Whether there are requests that a node does not have yet.
    #[must_use]
    pub fn waits(&self, namespace: &Namespace, node: &NodeName) -> bool {
        let waiting = self.waiting();
        // Almost always: no key is made for ten thousand polls.
        if waiting.nodes.is_empty() {
            return false;
        }
        let of_node = waiting.nodes.get(&(namespace.clone(), node.clone()));
        of_node.is_some_and(|of_node| of_node.iter().any(|parked| parked.taken.is_some()))
    }

    /// The requests that a node does not have yet, which it has from now on.
    #[must_use]
    pub fn take(&self, namespace: &Namespace, node: &NodeName) -> Vec<LogRequest> {
        let mut waiting = self.waiting();
        if waiting.nodes.is_empty() {
            return Vec::new();
        }
        let of_node = waiting.nodes.get_mut(&(namespace.clone(), node.clone()));
        let mut taken = Vec::new();
        for parked in of_node.into_iter().flatten() {
            let Some(taken_by) = parked.taken.take() else { continue };
            // A reader that has just gone away is removed soon.
            if taken_by.send(()).is_ok() {
                taken.push(parked.request.clone());
            }
        }
        taken
    }

    /// Gives a node's answer to its reader. Returns whether one waits for it: not for another request of the same number, from
    /// before this server was started.
    #[must_use]
    pub fn answer(&self, node: (Namespace, NodeName), chunk: LogChunk) -> bool {
        let mut waiting = self.waiting();
        let mut of_node = waiting.nodes.get_mut(&node).into_iter().flatten();
        let answer = of_node.find(|parked| parked.request == chunk.request).and_then(|of| of.answer.take());
        answer.is_some_and(|answer| answer.send(chunk).is_ok())
    }

    /// Number of readers that wait.
    #[must_use]
    pub fn count(&self) -> usize {
        self.waiting().count
    }

    fn remove(&self, node: &(Namespace, NodeName), number: u64) {
        let mut waiting = self.waiting();
        waiting.count = waiting.count.saturating_sub(1);
        let Some(of_node) = waiting.nodes.get_mut(node) else { return };
        of_node.retain(|parked| parked.request.number != number);
        if of_node.is_empty() {
            waiting.nodes.remove(node);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Held for a change of the map, never across an await; consistent after every change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogReader {
    /// The node's answer.
    ///
    /// # Errors
    /// [`Unanswered::Late`] if it does not take the request within [`ANSWER_WITHIN`], or does not answer within that time after the wait;
    /// [`Unanswered::MadeRoom`].
    pub async fn answer(mut self) -> Result<LogChunk, Unanswered> {
        let taken = tokio::time::timeout(ANSWER_WITHIN, &mut self.taken).await;
        taken.map_err(|_| Unanswered::Late)?.map_err(|_| Unanswered::MadeRoom)?;
        let answer = tokio::time::timeout(self.wait + ANSWER_WITHIN, &mut self.answer).await;
        answer.map_err(|_| Unanswered::Late)?.map_err(|_| Unanswered::MadeRoom)
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        self.requests.remove(&self.node, self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn node(name: &str) -> (Namespace, NodeName) {
        ("default".parse().unwrap(), name.parse().unwrap())
    }

    fn caller(number: usize) -> Actor {
        Actor::parse(&format!("ci-{number}")).unwrap()
    }

    fn request() -> LogRequest {
        LogRequest {
            number: 0,
            run: "work-1".into(),
            index: 0,
            offset: 7,
            wait_ms: 5_000,
            entity: None,
            ensemble: None,
            tail_bytes: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_taken_once_and_its_answer_reaches_its_reader() {
        let requests = LogRequests::default();
        let (web, (namespace, name)) = (node("web-1"), node("web-1"));
        let reader = requests.park(caller(0), web.clone(), request()).unwrap();
        assert!(requests.waits(&namespace, &name) && !requests.waits(&namespace, &node("db-1").1));
        let taken = requests.take(&namespace, &name);
        assert!(taken.len() == 1 && !requests.waits(&namespace, &name));
        assert!(requests.take(&namespace, &name).is_empty());
        let chunk = |request: LogRequest| LogChunk { request, read: None, problem: None };
        let old = chunk(LogRequest { offset: 8, ..taken[0].clone() });
        assert!(!requests.answer(web.clone(), old), "of another life of the server");
        assert!(!requests.answer(node("db-1"), chunk(taken[0].clone())), "of another node");
        assert!(requests.answer(web.clone(), chunk(taken[0].clone())));
        assert!(!requests.answer(web, chunk(taken[0].clone())), "it is answered once");
        assert_eq!(reader.answer().await.unwrap().request, taken[0]);
        assert_eq!((requests.count(), requests.waiting().nodes.len()), (0, 0), "nothing is left of it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_waits_no_longer_than_for_a_node_that_is_there() {
        let requests = LogRequests::default();
        let begun = tokio::time::Instant::now();
        assert!(
            requests.park(caller(0), node("web-1"), request()).unwrap().answer().await
                == Err(Unanswered::Late)
        );
        assert_eq!(begun.elapsed(), ANSWER_WITHIN, "nobody took it");
        let reader = requests.park(caller(0), node("web-1"), request()).unwrap();
        assert_eq!(requests.take(&node("web-1").0, &node("web-1").1).len(), 1);
        assert_eq!(reader.answer().await, Err(Unanswered::Late));
        assert_eq!(begun.elapsed(), ANSWER_WITHIN * 2 + Duration::from_secs(5), "it was not answered");
        assert_eq!(requests.count(), 0);
    }

    #[tokio::test]
    async fn readers_are_limited_and_one_that_goes_away_makes_room() {
        let requests = LogRequests::default();
        let park = |of: usize, name: &str| requests.park(caller(of), node(name), request());
        let mut readers: Vec<_> = (0..MOST_OF_NODE).filter_map(|_| park(1, "web-1")).collect();
        assert!(readers.len() == MOST_OF_NODE && park(1, "web-1").is_none());
        let waits = readers.pop().unwrap();
        let mut waits = Box::pin(waits.answer());
        assert!(waits.as_mut().now_or_never().is_none());
        drop(waits);
        readers.push(park(1, "web-1").unwrap());
        for number in 0.. {
            let Some(reader) = park(0, &format!("db-{number}")) else { break };
            readers.push(reader);
        }
        assert_eq!((readers.len(), requests.count()), (MOST, MOST));
        drop(readers);
        assert!(requests.waiting().nodes.is_empty());
    }

    #[tokio::test]
    async fn who_has_most_places_of_a_node_makes_room_for_others_down_to_half() {
        let requests = LogRequests::default();
        let park = |of: usize| requests.park(caller(of), node("web-1"), request());
        let mut all: Vec<_> = (0..MOST_OF_NODE).filter_map(|_| park(0)).collect();
        let others: Vec<_> = (0..MOST_OF_NODE).filter_map(|_| park(1)).collect();
        assert_eq!((all.len(), others.len()), (MOST_OF_NODE, MOST_OF_NODE - MOST_OF_CALLER));
        assert!(park(2).is_none(), "both have what they may keep");
        let latest = all.pop().unwrap();
        assert_eq!(latest.answer().now_or_never(), Some(Err(Unanswered::MadeRoom)));
        let first = all.remove(0);
        assert_eq!(Box::pin(first.answer()).as_mut().now_or_never(), None, "it waits on");
        drop((all, others));
        assert!(requests.waiting().nodes.is_empty() && requests.count() == 0);
    }
}
