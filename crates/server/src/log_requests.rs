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

/// Most of them of one caller.
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
    /// Has a reader wait for a part of a log; numbers the request. `None` if too many wait, or too many of this caller.
    #[must_use]
    pub fn park(
        &self,
        caller: Actor,
        node: (Namespace, NodeName),
        mut request: LogRequest,
    ) -> Option<LogReader> {
        let mut waiting = self.waiting();
        let of_node = || waiting.nodes.get(&node).into_iter().flatten();
        let of_caller = of_node().filter(|parked| parked.caller == caller).count();
        if waiting.count >= MOST || of_node().count() >= MOST_OF_NODE || of_caller >= MOST_OF_CALLER {
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
    /// The node's answer; `None` if it does not take the request within [`ANSWER_WITHIN`], or does not answer within that time after
    /// the wait.
    pub async fn answer(mut self) -> Option<LogChunk> {
        tokio::time::timeout(ANSWER_WITHIN, &mut self.taken).await.ok()?.ok()?;
        tokio::time::timeout(self.wait + ANSWER_WITHIN, &mut self.answer).await.ok()?.ok()
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
        assert!(requests.park(caller(0), node("web-1"), request()).unwrap().answer().await.is_none());
        assert_eq!(begun.elapsed(), ANSWER_WITHIN, "nobody took it");
        let reader = requests.park(caller(0), node("web-1"), request()).unwrap();
        assert_eq!(requests.take(&node("web-1").0, &node("web-1").1).len(), 1);
        assert!(reader.answer().await.is_none());
        assert_eq!(begun.elapsed(), ANSWER_WITHIN * 2 + Duration::from_secs(5), "it was not answered");
        assert_eq!(requests.count(), 0);
    }

    #[tokio::test]
    async fn readers_are_limited_and_one_that_goes_away_makes_room() {
        let requests = LogRequests::default();
        let park = |of: usize, name: &str| requests.park(caller(of), node(name), request());
        let mut readers: Vec<_> = (0..MOST_OF_NODE).filter_map(|_| park(0, "web-1")).collect();
        assert_eq!(readers.len(), MOST_OF_CALLER, "one caller leaves room for others");
        readers.extend((0..MOST_OF_NODE).filter_map(|_| park(1, "web-1")));
        assert!(readers.len() == MOST_OF_NODE && park(2, "web-1").is_none());
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
}
