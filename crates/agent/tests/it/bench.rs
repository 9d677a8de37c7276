//! A control plane in this process with an agent, each in a directory of its own.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_agent::config::Config;
use bellwether_agent::join::{JoinError, JoinRequest, JoinedNode, join};
use bellwether_agent::run::{RunError, run};
use bellwether_agent::status::{self, AgentStatus};
use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::access::NewJoinToken;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::evidence::Evidence;
use bellwether_api::v1::node::NodeView;
use bellwether_api::v1::policy::{OnFailure, Policy};
use bellwether_api::v1::rollout::NewRollout;
use bellwether_api::v1::target::TargetView;
use bellwether_core::decide::liveness::context::PresenceLimits;
use bellwether_core::decide::table::RetentionLimits;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::config::deciders::DeciderSettings;
use bellwether_server::http::ConcurrencyLimits;
use bellwether_server::run::{Server, init};
use tokio::task::JoinHandle;

/// Longest wait; only reached when something is broken.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const NS: &str = "default";
pub(crate) const NODE: &str = "web-1";

/// A control plane, and directories for an agent.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    config: bellwether_server::config::Config,
    server: Option<Server>,
    pub(crate) client: Client,
    pub(crate) address: SocketAddr,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with_lanes(ConcurrencyLimits::default()).await
    }

    /// One whose server has these concurrency limits.
    pub(crate) async fn with_lanes(lanes: ConcurrencyLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = bellwether_server::config::Config {
            data_dir: dir.path().join("server"),
            listen: "127.0.0.1:0".parse().unwrap(),
            plain_listen: Some("127.0.0.1:0".parse().unwrap()),
            names: vec!["127.0.0.1".to_owned()],
            settings: DeciderSettings {
                limits: PresenceLimits::default(),
                kept: RetentionLimits { events: 1_000, ..RetentionLimits::default() },
            },
            hooks: bellwether_server::hooks::settings::HookSettings::default(),
            sinks: bellwether_server::sinks::settings::SinkSettings::default(),
            discovery: bellwether_server::discovery::settings::DiscoverySettings::default(),
            dns: None,
            name: "server".parse().unwrap(),
            address: None,
            rules: bellwether_server::store_rules::StoreRules::of(false),
            etcd: None,
            clock_synchronized_file: None,
            on_store_failure: bellwether_server::config::OnStoreFailure::default(),
            secret_providers: std::collections::BTreeMap::new(),
            classes: lanes,
        };
        let installed = init(&config).await.unwrap();
        let server = Server::start(&config, Clock::system()).await.unwrap();
        let address = server.address;
        config.listen = address;
        let client = Client::new(&Access {
            server: format!("https://{address}"),
            ca: Some(server.ca_pem.clone()),
            identity: Identity::Token(installed.token),
        });
        Self { dir, config, server: Some(server), client: client.unwrap(), address }
    }

    /// A client that shows the certificate of the node that has joined.
    pub(crate) fn node_client(&self) -> Client {
        let read = |name: &str| std::fs::read_to_string(self.data_dir().join(name)).unwrap();
        let identity = Identity::Node { certificate: read("node.pem"), key: Secret::new(read("node.key")) };
        let ca = Some(self.server.as_ref().unwrap().ca_pem.clone());
        Client::new(&Access { server: format!("https://{}", self.address), ca, identity }).unwrap()
    }

    pub(crate) async fn stop_server(&mut self) {
        self.server.take().unwrap().stop().await.unwrap();
    }

    pub(crate) async fn start_server(&mut self) {
        self.server = Some(Server::start(&self.config, Clock::system()).await.unwrap());
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    /// A file for the commands of the agent under test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) async fn token(&self) -> Secret {
        let request = NewJoinToken { labels: vec!["*".to_owned()], ..NewJoinToken::default() };
        Secret::new(self.client.create_join_token(&request).await.unwrap().secret)
    }

    pub(crate) fn request(&self, token: Secret) -> JoinRequest {
        JoinRequest {
            servers: vec![format!("https://{}", self.address)],
            token,
            node: NODE.to_owned(),
            namespace: NS.to_owned(),
            labels: BTreeMap::from([("role".to_owned(), "web".to_owned())]),
            data_dir: self.data_dir(),
            force: false,
        }
    }

    pub(crate) async fn join(&self) -> Result<JoinedNode, JoinError> {
        join(self.request(self.token().await)).await
    }

    /// Writes `agent.toml` with these entities and returns its path.
    pub(crate) fn configure(&self, entities: &str) -> PathBuf {
        let path = self.path("agent.toml");
        let (address, data_dir) = (self.address, self.data_dir());
        let head = format!(
            "[agent]\nname = \"{NODE}\"\nserver = \"https://{address}\"\ndata_dir = \"{}\"\n",
            data_dir.display()
        );
        fs::write(&path, format!("{head}{entities}")).unwrap();
        path
    }

    /// Joins, and starts an agent with these entities in this process.
    pub(crate) async fn agent(&self, entities: &str) -> Agent {
        self.join().await.unwrap();
        self.agent_again(entities)
    }

    /// Starts an agent that has joined before.
    pub(crate) fn agent_again(&self, entities: &str) -> Agent {
        Agent::start(Config::load(&self.configure(entities)).unwrap())
    }

    /// Creates entity `web` on all nodes and requests a version; a failure pauses and nothing is rolled back.
    pub(crate) async fn roll(&self, version: &str) {
        self.roll_for(version, "0").await;
    }

    /// The same, with a soak.
    pub(crate) async fn roll_for(&self, version: &str, soak: &str) {
        let policy = Policy {
            soak: Some(soak.into()),
            deadline: Some("5m".into()),
            on_failure: Some(OnFailure::Pause),
            batch: Some("100%".into()),
            ..Policy::default()
        };
        let spec = EntitySpec { selector: "all".into(), policy, ..EntitySpec::default() };
        self.client.set_entity(NS, "web", &spec).await.unwrap();
        let new = NewRollout { version: Some(version.into()), ..NewRollout::default() };
        self.client.start_rollout(NS, "web", &new).await.unwrap();
    }

    pub(crate) async fn node(&self) -> NodeView {
        self.client.node(NS, NODE).await.unwrap()
    }

    /// Waits until the control plane has this state of the node.
    pub(crate) async fn sees(&self, what: &str, fits: impl Fn(&NodeView) -> bool) -> NodeView {
        self.until(what, async || {
            let node = self.node().await;
            fits(&node).then_some(node)
        })
        .await
    }

    /// Waits for a condition, with a bound.
    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
        match within(look).await {
            Some(found) => found,
            None => panic!("waited in vain for: {what}\n{}", self.account().await),
        }
    }

    /// The state of everything, for a test that timed out.
    async fn account(&self) -> String {
        let why = self.client.why(NS, &format!("node/{NODE}")).await;
        // Not every bench has the entity.
        let (node, target) = (self.node().await, self.client.targets(NS, "web", None, None).await);
        let status = status::read(&self.data_dir());
        let log = std::fs::read_to_string(self.data_dir().join("logs/web.service.log"));
        let ledger = std::fs::read_to_string(self.data_dir().join("ledger/entities/web.json"));
        format!("{ledger:#?}\n{why:#?}\n{node:#?}\n{target:#?}\n{status:#?}\n{log:#?}")
    }

    /// Waits until the node runs this version of `web`, by the control plane.
    pub(crate) async fn runs(&self, version: &str) -> NodeView {
        self.sees(&format!("{version} running"), |node| {
            node.running.get("web").is_some_and(|running| running == version)
        })
        .await
    }

    /// The only target of `web`.
    pub(crate) async fn target(&self) -> Option<TargetView> {
        self.client.targets(NS, "web", None, None).await.unwrap().items.into_iter().next()
    }

    /// Waits until the target has failed, and returns its evidence.
    pub(crate) async fn failure(&self) -> Evidence {
        self.until("a failed target", async || {
            self.target().await.filter(|target| target.phase == "failed")?.evidence
        })
        .await
    }

    /// Waits until the agent's own status fulfils this.
    pub(crate) async fn says(&self, what: &str, fits: impl Fn(&AgentStatus) -> bool) -> AgentStatus {
        self.until(what, async || status::read(&self.data_dir()).ok().filter(&fits)).await
    }

    /// The lines commands wrote to the trace.
    pub(crate) fn trace(&self) -> Vec<String> {
        lines(&self.path("trace"))
    }
}

/// The lines of a file; none when there is no file.
pub(crate) fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

pub(crate) async fn within<T>(mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    tokio::time::timeout(LONG, async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .ok()
}

/// An agent in this process.
pub(crate) struct Agent {
    tasks: Tasks,
    running: JoinHandle<Option<Result<(), RunError>>>,
}

impl Agent {
    pub(crate) fn start(config: Config) -> Self {
        let tasks = Tasks::new();
        let level = tasks.clone();
        let running = tasks.spawn("agent", async move { run(config, Clock::system(), &level).await });
        Self { tasks, running }
    }

    /// How it ended.
    pub(crate) async fn ends(self) -> Result<(), RunError> {
        tokio::time::timeout(LONG, self.running).await.unwrap().unwrap().unwrap()
    }

    pub(crate) async fn stop(self) {
        self.tasks.cancel();
        tokio::time::timeout(LONG, self.running).await.unwrap().unwrap().unwrap().unwrap();
        self.tasks.stop(LONG).await.unwrap();
    }
}

/// An entity `web` whose parts write to the trace, with `more` keys.
pub(crate) fn tracing_entity(bench: &Bench, more: &str) -> String {
    let trace = bench.path("trace");
    let line = |part: &str| {
        format!(
            "{part} = [\"/bin/sh\", \"-c\", \"echo {part} $BELLWETHER_VERSION from [$BELLWETHER_PREVIOUS] >> {}\"]",
            trace.display()
        )
    };
    format!("[entity.web]\n{}\n{}\n{}\n{more}\n", line("static"), line("dynamic"), line("validate"))
}
