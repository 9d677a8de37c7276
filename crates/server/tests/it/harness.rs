//! A server on a new installation, clients with every kind of identity, and a simulated node.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, CallError, Client, Identity};
use bellwether_api::problem::Code;
use bellwether_api::v1::access::{Join, NewJoinToken, NewToken};
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::report::{EntityReport, Report, TargetHealth};
use bellwether_api::v1::rollout::{NewRollout, RolloutView};
use bellwether_core::decide::liveness::context::PresenceLimits;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_server::config::Config;
use bellwether_server::http::ConcurrencyLimits;
use bellwether_server::run::{Server, init};
use bellwether_server::sinks::addresses::AddressRules;

/// Longest wait of a test for something that should happen at once.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Installation {
    _dir: tempfile::TempDir,
    pub(crate) config: Config,
    pub(crate) server: Option<Server>,
    pub(crate) admin_token: Secret,
}

impl Installation {
    pub(crate) async fn new() -> Self {
        Self::with(Config::load(None).unwrap()).await
    }

    /// A server on which a node is silent after half a second.
    pub(crate) async fn quick() -> Self {
        let mut config = Config::load(None).unwrap();
        config.settings.limits = PresenceLimits {
            suspect: Span::from_millis(200),
            unreachable: Span::from_millis(500),
            reconnect: Span::from_millis(200),
        };
        Self::with(config).await
    }

    /// A server on which no node becomes silent: a test that reports for many nodes may be late on a busy machine.
    pub(crate) async fn patient() -> Self {
        let mut config = Config::load(None).unwrap();
        config.settings.limits = PresenceLimits {
            suspect: Span::from_secs(3_600),
            unreachable: Span::from_secs(7_200),
            reconnect: Span::ZERO,
        };
        Self::with(config).await
    }

    /// A server on which a node is suspect at once, but never unreachable: what waits until every node could have
    /// reported begins soon.
    pub(crate) async fn lenient() -> Self {
        let mut config = Config::load(None).unwrap();
        config.settings.limits = PresenceLimits {
            suspect: Span::from_millis(100),
            unreachable: Span::from_secs(7_200),
            reconnect: Span::ZERO,
        };
        Self::with(config).await
    }

    /// A server with these concurrency limits, which also listens without TLS.
    pub(crate) async fn with_lanes(classes: ConcurrencyLimits) -> Self {
        let mut config = Config::load(None).unwrap();
        config.classes = classes;
        config.plain_listen = Some("127.0.0.1:0".parse().unwrap());
        Self::with(config).await
    }

    async fn with(mut config: Config) -> Self {
        // The controllers of tests are on this machine.
        config.hooks.addresses =
            std::sync::Arc::new(AddressRules::of_hooks(vec!["127.0.0.1".parse().unwrap()]));
        let dir = tempfile::tempdir().unwrap();
        config.data_dir = dir.path().join("server");
        config.listen = "127.0.0.1:0".parse().unwrap();
        let made = init(&config).await.unwrap();
        let server = Server::start(&config, Clock::system()).await.unwrap();
        let installation = Self { _dir: dir, config, server: Some(server), admin_token: made.token };
        installation.has_begun().await;
        installation
    }

    /// A harness for a server that was started elsewhere.
    pub(crate) fn of(config: Config, server: Server, admin: Identity) -> Self {
        let Identity::Token(admin_token) = admin else { panic!("an admin shows a token") };
        let dir = tempfile::tempdir().unwrap();
        Self { _dir: dir, config, server: Some(server), admin_token }
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(crate) async fn restart(&mut self) {
        self.restart_at(Clock::system()).await;
    }

    /// Restarts the server with another clock.
    pub(crate) async fn restart_at(&mut self, clock: Clock) {
        self.server.take().unwrap().stop().await.unwrap();
        self.server = Some(Server::start(&self.config, clock).await.unwrap());
        self.has_begun().await;
    }

    /// It has told that it leads, and made its first pass: what a test does afterwards has no event of that in between.
    async fn has_begun(&self) {
        let admin = self.admin();
        let asking = async {
            while admin
                .text("/metrics", SOON)
                .await
                .unwrap()
                .contains("bellwether_reconcile_passes_total 0\n")
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, asking).await.unwrap();
    }

    /// The directory of the audit log.
    pub(crate) fn audit_dir(&self) -> std::path::PathBuf {
        self.config.data_dir.join("audit")
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.server().address)
    }

    pub(crate) fn client(&self, identity: Identity) -> Client {
        let ca = Some(self.server().ca_pem.clone());
        Client::new(&Access { server: self.url(), ca, identity }).unwrap()
    }

    pub(crate) fn admin(&self) -> Client {
        self.client(Identity::Token(self.admin_token.clone()))
    }

    pub(crate) async fn token(&self, role: &str) -> Client {
        self.token_and_secret(role).await.0
    }

    /// A client with a new token of this role, and the token.
    pub(crate) async fn token_and_secret(&self, role: &str) -> (Client, String) {
        let secret = self.named_token(&format!("a-{role}"), role).await;
        (self.client(Identity::Token(Secret::new(secret.clone()))), secret)
    }

    /// A new token of this name and role.
    pub(crate) async fn named_token(&self, name: &str, role: &str) -> String {
        let (name, roles) = (name.to_owned(), vec![role.to_owned()]);
        let request = NewToken { name, roles, only_in: None, expires_in: None };
        self.admin().create_token(&request).await.unwrap().secret
    }

    pub(crate) async fn join_token(&self, node: Option<&str>) -> String {
        let request = NewJoinToken {
            node: node.map(str::to_owned),
            labels: vec!["*".to_owned()],
            ..NewJoinToken::default()
        };
        self.admin().create_join_token(&request).await.unwrap().secret
    }

    pub(crate) async fn node(&self, name: &str) -> Node {
        let token = self.join_token(Some(name)).await;
        let (key, request) = join_request(&token, name);
        let joined = self.client(Identity::Nobody).join(&request).await.unwrap();
        let identity = Identity::Node { certificate: joined.certificate, key: Secret::new(key) };
        Node { client: self.client(identity.clone()), identity, name: name.to_owned() }
    }

    /// A node that joined before, calling the present server.
    pub(crate) fn node_again(&self, node: Node) -> Node {
        Node { client: self.client(node.identity.clone()), ..node }
    }

    pub(crate) fn store_file(&self) -> PathBuf {
        self.config.data_dir.join("store")
    }
}

/// A key and the certificate request for it.
pub(crate) fn join_request(token: &str, name: &str) -> (String, Join) {
    let key = rcgen::KeyPair::generate().unwrap();
    let request = rcgen::CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
    let join = Join {
        token: token.to_owned(),
        namespace: "default".to_owned(),
        node: name.to_owned(),
        labels: BTreeMap::from([("role".to_owned(), "web".to_owned())]),
        certificate_request: request,
    };
    (key.serialize_pem(), join)
}

/// A node that reports what the test says.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) client: Client,
    pub(crate) identity: Identity,
    pub(crate) name: String,
}

impl Node {
    pub(crate) fn empty_report(&self) -> Report {
        Report {
            node: self.name.clone(),
            agent_version: "test".to_owned(),
            generation: 0,
            ledger: None,
            ledger_since: 0,
            sequence: 0,
            entities: BTreeMap::new(),
            statuses: BTreeMap::new(),
            features: None,
            deleted: BTreeMap::new(),
            received_at_ms: 0,
        }
    }

    /// Waits for an order with `version` of `web`, and returns its assignment's number.
    pub(crate) async fn assigned(&self, version: &str) -> u64 {
        let mut generation = 0;
        tokio::time::timeout(SOON, async {
            loop {
                let sync = self
                    .client
                    .sync("default", &self.name, (generation, None), Duration::from_secs(1))
                    .await
                    .unwrap();
                let Some(order) = sync.order else { continue };
                generation = order.generation;
                if let Some(assigned) =
                    order.entities.get("web").filter(|assigned| assigned.version == version)
                {
                    return assigned.number;
                }
            }
        })
        .await
        .unwrap_or_else(|_| panic!("never assigned {version}; generation {generation}"))
    }

    /// Reports that it runs `version` of `web` for assignment `number`, healthy or not.
    pub(crate) async fn runs(&self, version: &str, number: u64, health: TargetHealth) {
        let healthy_for_ms = (health != TargetHealth::NoChecks
            && !matches!(health, TargetHealth::Failing { .. }))
        .then_some(10_000);
        let entity = EntityReport {
            running: Some(version.to_owned()),
            answering: number,
            healthy_for_ms,
            health,
            ..EntityReport::default()
        };
        let mut report = self.empty_report();
        report.entities.insert("web".to_owned(), entity);
        self.client.report("default", &report).await.unwrap();
    }
}

pub(crate) fn policy(batch: &str, soak: &str) -> Policy {
    let text = |text: &str| Some(text.to_owned());
    Policy { batch: text(batch), soak: text(soak), deadline: text("1m"), ..Policy::default() }
}

pub(crate) async fn set_entity(client: &Client, policy: Policy) {
    let spec = EntitySpec { selector: "role=web".to_owned(), policy, ..EntitySpec::default() };
    client.set_entity("default", "web", &spec).await.unwrap();
}

pub(crate) fn version(version: &str) -> NewRollout {
    NewRollout { version: Some(version.to_owned()), ..NewRollout::default() }
}

/// Waits until `holds` is true of the rollout of `web`.
pub(crate) async fn until(client: &Client, holds: impl Fn(&RolloutView) -> bool) -> RolloutView {
    let looking = async {
        let mut index = None;
        loop {
            let view = client.current_rollout("default", "web", index, Duration::from_secs(1)).await.unwrap();
            if holds(&view) {
                return view;
            }
            index = Some(view.revision);
        }
    };
    tokio::time::timeout(SOON, looking).await.expect("the rollout never looked as expected")
}

/// The problem that a call failed with.
pub(crate) fn problem<T: std::fmt::Debug>(answer: Result<T, CallError>) -> (Code, String) {
    match answer.unwrap_err() {
        CallError::Problem(problem) => (problem.code, problem.detail),
        other => panic!("not a problem: {other}"),
    }
}
