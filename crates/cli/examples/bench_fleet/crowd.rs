//! Ten thousand agents in one process: each joined for real, with a key, a certificate and connections of its own, calling
//! as the agent's link does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, CallError, Client, Identity};
use bellwether_api::v1::access::{Join, NewJoinToken};
use bellwether_api::v1::order::{ApplyMethod, Assignment, Order};
use bellwether_api::v1::report::{EntityReport, Report, TargetHealth};
use bellwether_core::local::delay;
use bellwether_core::words::feature::Feature;
use bellwether_core::words::time::Span;
use tokio::task::{AbortHandle, JoinSet};

use super::agent_run::{AgentRun, JobTimes};
use super::place::NAMESPACE;

/// How many join at the same time.
const ABREAST: usize = 128;

/// How long a request hangs, give or take a quarter: as the agent's link has it.
const WAIT: Span = Span::from_secs(44);

/// The wait of the first request, and of the first after a failure, likewise.
const FIRST_WAIT: Span = Span::from_millis(1);

/// What an agent of the crowd does.
const FEATURES: [Feature; 4] = [Feature::Versions, Feature::Workflows, Feature::Jobs, Feature::TaskLists];

/// Nodes of each cluster.
pub(crate) const MEMBERS: u64 = 10;

/// The label with the cluster of a node.
pub(crate) const LABEL: &str = "cluster";

/// The cluster of the agent of this number.
pub(crate) fn cluster_of(number: u64) -> String {
    format!("c-{:04}", number / MEMBERS)
}

/// A joined machine.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) number: u64,
    certificate: String,
    key: Secret,
    ca: String,
}

/// What the agents have been told.
#[derive(Debug, Default)]
pub(crate) struct DispatchTimes {
    /// When each order with a version arrived, by version.
    orders: Mutex<BTreeMap<String, Vec<Instant>>>,
}

impl DispatchTimes {
    /// When orders with this version arrived.
    pub(crate) fn orders(&self, version: &str) -> Vec<Instant> {
        let all = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(version).cloned().unwrap_or_default()
    }

    fn order(&self, version: &str) {
        let mut all = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(version.to_owned()).or_default().push(now());
    }
}

/// Agents that call.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    pub(crate) dispatched: Arc<DispatchTimes>,
    pub(crate) jobs: Arc<JobTimes>,
    calling: JoinSet<()>,
}

/// The time, for measuring.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Joins `count` machines.
pub(crate) async fn join(admin: &Client, ca: &str, count: usize) -> Result<Vec<Agent>> {
    let mut joining = JoinSet::new();
    let mut agents = Vec::with_capacity(count);
    for number in 0..count {
        if joining.len() >= ABREAST {
            agents.extend(joining.join_next().await.transpose()?.transpose()?);
        }
        joining.spawn(join_one(admin.clone(), ca.to_owned(), number));
    }
    while let Some(agent) = joining.join_next().await {
        agents.push(agent??);
    }
    agents.sort_by_key(|agent| agent.number);
    Ok(agents)
}

async fn join_one(admin: Client, ca: String, number: usize) -> Result<Agent> {
    let name = format!("n-{number:05}");
    let asked = NewJoinToken { labels: vec!["*".to_owned()], ..NewJoinToken::default() };
    let token = admin.create_join_token(&asked).await.context("cannot make a join token")?.secret;
    let key = rcgen::KeyPair::generate()?;
    let request = Join {
        token,
        namespace: NAMESPACE.to_owned(),
        node: name.clone(),
        labels: BTreeMap::from([(LABEL.to_owned(), cluster_of(u64::try_from(number)?))]),
        certificate_request: rcgen::CertificateParams::default().serialize_request(&key)?.pem()?,
    };
    let joined = admin.join(&request).await.with_context(|| format!("cannot join {name}"))?;
    let key = Secret::new(key.serialize_pem());
    Ok(Agent { name, number: u64::try_from(number)?, certificate: joined.certificate, key, ca })
}

impl Crowd {
    /// One more agent calls these servers from now on, until it is stopped.
    pub(crate) fn add(&mut self, agent: Agent, servers: Vec<String>) -> AbortHandle {
        self.calling.spawn(agent.live(servers, (self.dispatched.clone(), self.jobs.clone())))
    }
}

impl Agent {
    pub(crate) fn access(&self, server: &str) -> Access {
        let identity = Identity::Node { certificate: self.certificate.clone(), key: self.key.clone() };
        Access { server: server.to_owned(), ca: Some(self.ca.clone()), identity }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    async fn live(self, servers: Vec<String>, (dispatched, jobs): (Arc<DispatchTimes>, Arc<JobTimes>)) {
        let mut runs = JoinSet::new();
        let mut turns =
            servers.iter().cycle().skip(usize::try_from(self.number).unwrap_or_default() % servers.len());
        let (mut failed, mut round) = (0_u32, 0_u32);
        let mut known: Option<Order> = None;
        let mut client: Option<Client> = None;
        loop {
            round = round.wrapping_add(1);
            let called = match client.take() {
                Some(client) => Ok(client),
                None => {
                    turns.next().map_or_else(|| Err(no_server()), |server| Client::new(&self.access(server)))
                }
            };
            let answer = match called {
                Ok(called) => {
                    let before = known.as_ref().map_or(0, |order| order.generation);
                    let answer = self.call(&called, (&mut known, &dispatched), (round, failed)).await;
                    for run in self.new_runs(&called, (before, known.as_ref()), &jobs) {
                        runs.spawn(run.carry_out());
                    }
                    client = if answer.is_ok() || servers.len() == 1 {
                        Some(called)
                    } else {
                        turns.next().and_then(|server| called.towards(server).ok())
                    };
                    answer
                }
                Err(error) => Err(error),
            };
            match answer {
                Ok(()) => failed = 0,
                Err(error) => {
                    failed = failed.saturating_add(1);
                    // As the agent's link has it: whoever waited for an answer in vain has waited long enough.
                    let counts = if matches!(error, CallError::Timeout { .. }) { 1 } else { failed };
                    let pause = delay::before_call(counts, self.seed()).to_duration();
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    /// One long poll, and the report that follows from its answer.
    async fn call(
        &self,
        client: &Client,
        (known, dispatched): (&mut Option<Order>, &DispatchTimes),
        (round, failed): (u32, u32),
    ) -> Result<(), CallError> {
        let generation = known.as_ref().map_or(0, |order| order.generation);
        let hangs = round > 1 && failed == 0;
        let wait = if hangs { delay::spread(WAIT, self.seed(), round) } else { FIRST_WAIT };
        let answer = client.sync(NAMESPACE, &self.name, (generation, None), wait.to_duration()).await?;
        let news = answer.order.is_some();
        if let Some(order) = answer.order {
            for assignment in order.entities.values() {
                dispatched.order(&assignment.version);
            }
            *known = Some(order);
        }
        // After a break it may be another server, or have forgotten.
        let has_run = known.as_ref().is_some_and(|order| order.entities.values().any(is_run));
        if (news && !has_run) || answer.report_requested || failed > 0 {
            client.report(NAMESPACE, &self.report(known.as_ref())).await?;
        }
        Ok(())
    }

    /// The runs of workflows in an order that is newer than this generation.
    fn new_runs(
        &self,
        client: &Client,
        (before, order): (u64, Option<&Order>),
        times: &Arc<JobTimes>,
    ) -> Vec<AgentRun> {
        let Some(order) = order.filter(|order| order.generation > before) else { return Vec::new() };
        let runs = order.entities.iter().filter(|(_, assignment)| is_run(assignment));
        let run = runs.map(|(name, assignment)| AgentRun {
            agent: self.clone(),
            client: client.clone(),
            name: name.clone(),
            assignment: assignment.clone(),
            generation: order.generation,
            times: times.clone(),
        });
        run.collect()
    }

    /// Everything it was told is done, and well; runs of workflows tell of themselves.
    pub(crate) fn report(&self, order: Option<&Order>) -> Report {
        let entities = order.into_iter().flat_map(|order| &order.entities);
        let entities = entities.filter(|(_, assignment)| !is_run(assignment));
        let done = entities.map(|(name, assignment)| {
            let report = EntityReport {
                running: Some(assignment.version.clone()),
                answering: assignment.number,
                health: TargetHealth::Healthy,
                healthy_for_ms: Some(0),
                ..EntityReport::default()
            };
            (name.clone(), report)
        });
        Report {
            node: self.name.clone(),
            agent_version: "bench".to_owned(),
            generation: order.map_or(0, |order| order.generation),
            ledger: Some(self.name.clone()),
            ledger_since: 0,
            sequence: 0,
            entities: done.collect(),
            statuses: BTreeMap::new(),
            features: Some(FEATURES.iter().map(ToString::to_string).collect()),
            deleted: BTreeMap::new(),
            received_at_ms: 0,
        }
    }
}

fn is_run(assignment: &Assignment) -> bool {
    assignment.method == ApplyMethod::Workflow
}

fn no_server() -> CallError {
    CallError::Setup { what: "the servers".to_owned(), reason: "there is none".to_owned() }
}

/// How long until something holds; an error after `bound`.
pub(crate) async fn until(
    what: &str,
    bound: Duration,
    mut holds: impl AsyncFnMut() -> bool,
) -> Result<Duration> {
    let begun = now();
    while !holds().await {
        anyhow::ensure!(begun.elapsed() < bound, "waited {bound:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(begun.elapsed())
}
