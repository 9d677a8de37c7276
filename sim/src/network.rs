//! The network between agents and people on one side and servers on the other: latency and partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bellwether_core::words::random::RandomStream;
use bellwether_rt::gate::TestGate;
use bellwether_rt::tasks::Tasks;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use tokio::sync::oneshot;
use tower::ServiceExt;

/// How long a server keeps a session whose peer vanished: until its pings are not answered.
const PINGED: Duration = Duration::from_secs(15);

/// Largest one-way latency, in milliseconds.
const FAR: u64 = 8;

/// Why a call has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallLoss {
    /// Nothing listens there: nothing was done.
    Refused,
    /// The connection broke, or no answer came in time: it may have been done.
    Broken,
}

/// Name of a caller.
pub type Caller = String;

/// The two ends of a call.
#[derive(Debug, Clone, Copy)]
pub struct CallEnds<'a> {
    /// Name of the caller.
    pub caller: &'a str,
    /// Index of the server.
    pub server: usize,
}

/// The network. Clones are the same network.
#[derive(Debug, Clone)]
pub struct Network {
    state: Arc<Mutex<State>>,
    /// Requests in flight.
    wires: Tasks,
}

#[derive(Debug)]
struct State {
    chance: RandomStream,
    /// Listening servers: router and process gate.
    servers: BTreeMap<usize, (Router, TestGate, Tasks)>,
    cut: BTreeSet<(Caller, usize)>,
}

impl Network {
    /// A network without servers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let chance = RandomStream::for_one(seed, "network", 0);
        let state = State { chance, servers: BTreeMap::new(), cut: BTreeSet::new() };
        Self { state: Arc::new(Mutex::new(state)), wires: Tasks::new() }
    }

    /// Adds a listening server.
    pub fn listens(&self, server: usize, router: Router, gate: &TestGate, tasks: &Tasks) {
        self.state().servers.insert(server, (router, gate.clone(), tasks.clone()));
    }

    /// Removes a listening server.
    pub fn left(&self, server: usize) {
        self.state().servers.remove(&server);
    }

    /// Partitions these two.
    pub fn cut(&self, caller: &str, server: usize) {
        self.state().cut.insert((caller.to_owned(), server));
    }

    /// Heals the partition of these two.
    pub fn mend(&self, caller: &str, server: usize) {
        self.state().cut.remove(&(caller.to_owned(), server));
    }

    /// Heals all partitions.
    pub fn mend_all(&self) {
        self.state().cut.clear();
    }

    /// Whether these two are partitioned.
    #[must_use]
    pub fn is_cut(&self, caller: &str, server: usize) -> bool {
        self.state().cut.contains(&(caller.to_owned(), server))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn way(&self) {
        let millis = self.state().chance.below(FAR) + 1;
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// Calls a server and waits this long for its answer.
    ///
    /// # Errors
    /// [`CallLoss`] if there is none.
    pub async fn call(
        &self,
        ends: CallEnds<'_>,
        request: Request<Body>,
        deadline: Duration,
    ) -> Result<(u16, Bytes), CallLoss> {
        let CallEnds { caller, server } = ends;
        let asked = async {
            self.way().await;
            if self.is_cut(caller, server) {
                std::future::pending::<()>().await;
            }
            let there = self.state().servers.get(&server).cloned();
            let Some((router, gate, tasks)) = there else { return Err(CallLoss::Refused) };
            let (answer, answered) = oneshot::channel();
            let work = async move {
                let Ok(response) = router.oneshot(request).await;
                let status = response.status().as_u16();
                let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes);
                if let Ok(body) = body {
                    // The caller may be gone.
                    drop(answer.send((status, body)));
                }
            };
            let handle = tasks.spawn("request", gate.behind(work));
            let hung = PendingRequest {
                network: self.clone(),
                caller: caller.to_owned(),
                server,
                task: handle.abort_handle(),
            };
            let answered = answered.await.map_err(|_| CallLoss::Broken)?;
            if self.is_cut(caller, server) {
                std::future::pending::<()>().await;
            }
            drop(hung);
            self.way().await;
            Ok(answered)
        };
        tokio::time::timeout(deadline, asked).await.unwrap_or(Err(CallLoss::Broken))
    }
}

/// A request in flight. If its caller goes away, the server notices at once, or by pings if they are partitioned.
struct PendingRequest {
    network: Network,
    caller: Caller,
    server: usize,
    task: tokio::task::AbortHandle,
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if self.task.is_finished() {
            return;
        }
        let (task, cut) = (self.task.clone(), self.network.is_cut(&self.caller, self.server));
        let wait = if cut { PINGED } else { Duration::from_millis(1) };
        if tokio::runtime::Handle::try_current().is_ok() {
            self.network.wires.spawn("wire", async move {
                tokio::time::sleep(wait).await;
                task.abort();
            });
        }
    }
}
