//! Data stores of clusters of ten: what their views cost while nothing new is said, and how long it takes from the report of a store that
//! died to the event, to the condition of its cluster, and to the run of the reaction.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bellwether_api::client::Client;
use bellwether_api::v1::cluster::ClusterSpec;
use bellwether_api::v1::probes::{DataStore, NodeProbes, Shard, ShardRole, StoreFacts, StoreState};
use bellwether_api::v1::reaction::ReactionSpec;
use tokio::task::JoinSet;

use super::crowd::{Agent, LABEL, MEMBERS, cluster_of, now};
use super::jobs::{WORKFLOW, workflow};
use super::measure::{BOUND, Fleet, Rest, Spread};
use super::place::NAMESPACE;

/// Name of the probe.
const PROBE: &str = "kv";

/// Calls at the same time.
const ABREAST: usize = 64;

/// Clusters whose primary dies, one after the other.
const DEATHS: u64 = 20;

/// What the views of all clusters cost.
pub(crate) struct ViewCost {
    clusters: u64,
    rest: Rest,
    /// From the report of a primary's death until the event of it was read.
    event: Spread,
    /// Until the event of the condition of its cluster was read.
    condition: Spread,
    /// Until the event of the reaction's run was read.
    run: Spread,
}

impl ViewCost {
    /// The figures, as they are printed.
    pub(crate) fn figures(&self) -> Vec<String> {
        let Rest { writes, core, resident_kib, .. } = &self.rest;
        let spread = |name: &str, of: &Spread, bar: &str| {
            let (half, all) = (of.half.as_secs_f64(), of.all.as_secs_f64());
            format!("{name} {half:.3} s (slowest {all:.3} s{bar})")
        };
        vec![
            format!("clusters {} clusters", self.clusters),
            format!("rest-writes {writes} writes (bar 0)"),
            format!("rest-processor {:.1} %_of_a_core", core * 100.0),
            format!("rest-memory {} MiB", resident_kib / 1_024),
            spread("death-to-event", &self.event, ", bar 2"),
            spread("death-to-condition", &self.condition, ""),
            spread("death-to-run", &self.run, ", bar 3"),
        ]
    }
}

impl Fleet {
    /// Has every agent report a data store, and lets some primaries die.
    pub(crate) async fn orchestrate(&self, rest: Duration) -> Result<ViewCost> {
        let person = self.person()?;
        let clusters = u64::try_from(self.joined.len())? / MEMBERS;
        for number in 0..clusters {
            let name = cluster_of(number * MEMBERS);
            let filter = Some(format!("label.{LABEL} = {name}"));
            person.set_cluster(NAMESPACE, &name, &ClusterSpec { filter, ..ClusterSpec::default() }).await?;
        }
        person.apply(NAMESPACE, &workflow()).await?;
        let reaction = ReactionSpec {
            on: "condition = store_down".to_owned(),
            workflow: WORKFLOW.to_owned(),
            max_per_hour: Some(60),
            ..ReactionSpec::default()
        };
        person.set_reaction(NAMESPACE, "restart", &reaction).await?;
        self.all_up().await?;
        self.quiet().await?;
        let rest = self.rest(rest).await?;
        let mut times = Times::default();
        for number in 0..clusters.min(DEATHS) {
            let primary = usize::try_from(number * MEMBERS)?;
            let agent = self.joined.get(primary).context("every cluster has a primary")?;
            times.die(&person, (agent, &self.client_of(agent)?), &cluster_of(agent.number)).await?;
        }
        let Times { event, condition, run } = times;
        Ok(ViewCost {
            clusters,
            rest,
            event: Spread::of(event)?,
            condition: Spread::of(condition)?,
            run: Spread::of(run)?,
        })
    }

    fn client_of(&self, agent: &Agent) -> Result<Client> {
        let servers = self.place.addresses();
        let server = servers.first().context("there is a server")?;
        Ok(Client::new(&agent.access(server))?)
    }

    /// Every agent says that its store is up: of each cluster the first is the primary.
    async fn all_up(&self) -> Result<()> {
        let mut calls = JoinSet::new();
        for agent in &self.joined {
            if calls.len() >= ABREAST {
                calls.join_next().await.transpose()?.transpose()?;
            }
            let (client, said) = (self.client_of(agent)?, probes(agent, StoreState::Up));
            calls.spawn(async move { client.probes(NAMESPACE, &said).await });
        }
        while let Some(called) = calls.join_next().await {
            called??;
        }
        Ok(())
    }
}

/// How long after each death something was read of.
#[derive(Debug, Default)]
struct Times {
    event: Vec<Duration>,
    condition: Vec<Duration>,
    run: Vec<Duration>,
}

impl Times {
    /// A primary dies.
    async fn die(
        &mut self,
        person: &Client,
        (agent, client): (&Agent, &Client),
        cluster: &str,
    ) -> Result<()> {
        let mut after = person.overview(NAMESPACE).await?.last_event;
        let begun = now();
        client.probes(NAMESPACE, &probes(agent, StoreState::Down)).await?;
        let (mut event, mut condition, mut run): (Option<Instant>, Option<Instant>, Option<Instant>) =
            (None, None, None);
        while event.is_none() || condition.is_none() || run.is_none() {
            anyhow::ensure!(begun.elapsed() < BOUND, "waited in vain for what follows a store's death");
            let page = person.events(NAMESPACE, Some(after), 1_000, Duration::from_secs(10)).await?;
            for read in page.items {
                after = read.seq;
                match read.kind.as_str() {
                    "store.down" if read.subject == format!("store/{}/{PROBE}", agent.name) => {
                        event.get_or_insert_with(now);
                    }
                    "cluster.condition_raised" if read.subject.starts_with(&format!("cluster/{cluster}")) => {
                        condition.get_or_insert_with(now);
                    }
                    "run.started" => {
                        run.get_or_insert_with(now);
                    }
                    _ => {}
                }
            }
        }
        let took = |at: Option<Instant>| at.unwrap_or(begun).saturating_duration_since(begun);
        self.event.push(took(event));
        self.condition.push(took(condition));
        self.run.push(took(run));
        Ok(())
    }
}

fn probes(agent: &Agent, state: StoreState) -> NodeProbes {
    let role = if agent.number.is_multiple_of(MEMBERS) { ShardRole::Primary } else { ShardRole::Replica };
    let shard = Shard { role, history: None, offset: None, lag: None, upstream: None, streaming: None };
    let facts = StoreFacts {
        software: "redis".to_owned(),
        version: Some("7.0.15".to_owned()),
        shards: BTreeMap::from([("0".to_owned(), shard)]),
        ..StoreFacts::default()
    };
    let (reason, facts) = match state {
        StoreState::Up => (String::new(), facts),
        StoreState::Down | StoreState::Unknown => ("connection refused".to_owned(), StoreFacts::default()),
    };
    let store = DataStore { state, since_ms: 0, reason, facts };
    let stores = BTreeMap::from([(PROBE.to_owned(), store)]);
    NodeProbes { node: agent.name.clone(), received_at_ms: 0, sequence: 0, stores }
}
