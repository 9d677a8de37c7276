//! A testbed under a story: several servers on an etcd of several members, agents, each on a host of its own; clients of every
//! server, and waiting until something holds.

use std::time::Duration;

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::rollout::{NewRollout, RolloutView};
use bellwether_api::v1::server::ControlPlane;
use bellwether_rt::tasks::Tasks;
use bellwether_testbed::{Options, Testbed, orders};

/// How long one call may take: a server that is cut off or paused answers nothing.
const CALL: Duration = Duration::from_secs(2);

/// How long a story waits for something that should happen within seconds on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// What is on a testbed unless a story wants it otherwise.
pub(crate) fn options() -> Options {
    Options::new(env!("CARGO_BIN_EXE_bellwether"))
}

pub(crate) struct Bed {
    pub(crate) inner: Testbed,
    pub(crate) clients: Vec<Client>,
    pub(crate) tasks: Tasks,
}

impl Bed {
    /// A testbed on which everything answers and every agent is up.
    pub(crate) async fn start(options: Options) -> Self {
        let tasks = Tasks::new();
        let inner = tokio::task::block_in_place(|| Testbed::start(options, &tasks)).unwrap();
        let clients = (1..=inner.options.servers).map(|server| client(&inner, server)).collect();
        let bed = Self { inner, clients, tasks };
        bed.wait_for("every agent is up", async || bed.up().await == bed.inner.options.agents).await;
        bed
    }

    /// Does what a line says, as on the testbed's own prompt.
    pub(crate) fn obey(&mut self, line: &str) {
        tokio::task::block_in_place(|| orders::obey(&mut self.inner, line)).unwrap();
    }

    /// Runs the command line against a server as the admin, and answers what it printed.
    pub(crate) fn run(&self, server: usize, args: &[&str]) -> String {
        let output =
            tokio::task::block_in_place(|| self.inner.command(server, args).unwrap().output().unwrap());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{args:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// The client of a server, counted from 1.
    pub(crate) fn client(&self, server: usize) -> &Client {
        self.clients.get(server - 1).unwrap()
    }

    /// What servers that answer say of the control plane, the one that has seen most first: one that is cut off from etcd goes
    /// on telling what it knew.
    async fn planes(&self) -> Vec<(Client, ControlPlane)> {
        let mut planes = Vec::new();
        for client in &self.clients {
            if let Ok(Ok(plane)) = tokio::time::timeout(CALL, client.control_plane()).await {
                planes.push((client.clone(), plane));
            }
        }
        planes.sort_by_key(|(_, plane)| std::cmp::Reverse(plane.revision));
        planes
    }

    /// What the first server says that answers, in the order of how much they have seen.
    pub(crate) async fn ask<T>(
        &self,
        mut question: impl AsyncFnMut(Client) -> Result<T, bellwether_api::client::CallError>,
    ) -> Option<T> {
        for (client, _) in self.planes().await {
            if let Ok(Ok(answer)) = tokio::time::timeout(CALL, question(client)).await {
                return Some(answer);
            }
        }
        None
    }

    /// Who leads, by whoever has seen most: counted from 1.
    pub(crate) async fn leader(&self) -> Option<usize> {
        let (_, newest) = self.planes().await.into_iter().next()?;
        newest.leader?.server.strip_prefix("server-")?.parse().ok()
    }

    /// Waits until somebody leads, and it is none of these.
    pub(crate) async fn leader_but(&self, not: &[usize]) -> usize {
        let mut leader = 0;
        self.wait_for("another server leads", async || {
            leader = self.leader().await.unwrap_or_default();
            leader != 0 && !not.contains(&leader)
        })
        .await;
        leader
    }

    /// How many nodes a server holds, counted from 1.
    pub(crate) async fn held(&self, server: usize) -> u64 {
        let plane = self.ask(async |client| client.control_plane().await).await;
        let held = plane.and_then(|plane| plane.sessions.get(&format!("server-{server}")).copied());
        held.unwrap_or_default()
    }

    /// Nodes that are up.
    pub(crate) async fn up(&self) -> usize {
        let overview = self.ask(async |client| client.overview("default").await).await;
        let up = overview
            .and_then(|overview| overview.nodes.get(&bellwether_api::v1::node::PresenceState::Up).copied())
            .unwrap_or_default();
        usize::try_from(up).unwrap()
    }

    /// How the rollout of `web` stands.
    pub(crate) async fn view(&self) -> Option<RolloutView> {
        self.ask(async |client| client.current_rollout("default", "web", None, Duration::ZERO).await).await
    }

    /// Makes the entity `web` of all agents, this many in flight at once.
    pub(crate) fn make_entity(&self, batch: u64) {
        let batch = batch.to_string();
        self.run(1, &["entity", "set", "web", "--selector", "role=web", "--batch", &batch, "--soak", "1s"]);
    }

    /// Starts a rollout at whoever takes it.
    pub(crate) async fn roll(&self, version: &str) {
        self.wait_for("somebody takes a rollout", async || {
            let new = NewRollout { version: Some(version.to_owned()), ..NewRollout::default() };
            let asked = async |client: Client| client.start_rollout("default", "web", &new).await;
            let view = self.view().await;
            let has = view.is_some_and(|view| view.progress.requested.as_deref() == Some(version));
            has || self.ask(asked).await.is_some()
        })
        .await;
    }

    /// Waits until the rollout of `web` looks as `holds` wants it.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut(&RolloutView) -> bool) -> RolloutView {
        let mut last = None;
        self.wait_for(what, async || {
            last = self.view().await;
            last.as_ref().is_some_and(&mut holds)
        })
        .await;
        last.unwrap()
    }

    /// Waits until a version is last known good and its rollout ended.
    pub(crate) async fn ended(&self, version: &str) -> RolloutView {
        self.until(&format!("the rollout of {version} ended well"), |view| {
            view.progress.last_known_good.as_deref() == Some(version)
                && view.rollout.as_ref().is_some_and(|rollout| rollout.ended_ms.is_some())
        })
        .await
    }

    /// Asks again and again, a little apart, until it holds.
    pub(crate) async fn wait_for(&self, what: &str, holds: impl AsyncFnMut() -> bool) {
        self.wait_within(SOON, what, holds).await;
    }

    /// The same, for what takes longer.
    pub(crate) async fn wait_within(
        &self,
        limit: Duration,
        what: &str,
        mut holds: impl AsyncFnMut() -> bool,
    ) {
        let asking = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(limit, asking).await.is_err() {
            let stands = self.view().await.map(|view| view.reason);
            panic!("never saw that {what}; the rollout: {stands:?}");
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.tasks.cancel();
        if std::thread::panicking() {
            for name in self.inner.names() {
                let log = self.inner.dir().join(format!("{name}.log"));
                let log = std::fs::read_to_string(log).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(80).collect();
                eprintln!("--- {name}");
                tail.iter().rev().for_each(|line| eprintln!("{line}"));
            }
        }
    }
}

fn client(bed: &Testbed, server: usize) -> Client {
    let environment = bed.environment(server).unwrap();
    let value = |wanted: &str| {
        let found = environment.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).unwrap()
    };
    let access = Access {
        server: value("BELLWETHER_SERVER"),
        ca: Some(std::fs::read_to_string(value("BELLWETHER_CA")).unwrap()),
        identity: Identity::Token(Secret::new(value("BELLWETHER_TOKEN"))),
    };
    Client::new(&access).unwrap()
}
