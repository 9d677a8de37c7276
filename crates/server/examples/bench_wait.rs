//! Measures waits for the workflows of a cluster's members, at 100, 1,000 and 10,000 members: the processor time that a change costs
//! while nobody and while 200 wait, and what beginning a wait costs. A change is the report of a member about the job of its run,
//! durable; its time contains both ends of the call. A wait that begins looks for failures, of which there are none, and finds a
//! member that is not complete.
//!
//! Run with `cargo xtask bench wait`; arguments change the numbers of members. Results come last, as `name value unit`.

#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::access::{Join, NewJoinToken};
use bellwether_api::v1::apply::{ApplyRequest, Document, StageDocument, TaskDocument, WorkflowDocument};
use bellwether_api::v1::cluster::ClusterSpec;
use bellwether_api::v1::cluster::work::{ClusterWaitState, NewClusterRun};
use bellwether_api::v1::job::{JobState, ReportedJob};
use bellwether_api::v1::order::Order;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::report::{EntityReport, Report, TargetActivity};
use bellwether_api::v1::workflow::{Script, TaskStep};
use bellwether_core::words::feature::Feature;
use bellwether_rt::clock::Clock;
use bellwether_server::config::Config;
use bellwether_server::run::{Server, init};
use tokio::task::JoinSet;

/// Numbers of members.
const MEMBERS: [usize; 3] = [100, 1_000, 10_000];

/// How many wait.
const WAITS: usize = 200;

/// Changes that are measured, one after the other.
const CHANGES: u32 = 2_000;

/// Waits that are begun, one after the other.
const BEGINNINGS: u32 = 1_000;

/// How long those who wait do so: longer than what is measured.
const WAIT: Duration = Duration::from_secs(300);

/// How many join at the same time.
const ABREAST: usize = 64;

/// The namespace of everything, and the name of everything else.
const NS: &str = "default";
const NAME: &str = "measured";

fn main() -> Result<()> {
    let given = std::env::args().skip(1).map(|text| text.parse().context("a number of members"));
    let given = given.collect::<Result<Vec<usize>>>()?;
    let members = if given.is_empty() { MEMBERS.to_vec() } else { given };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut lines = Vec::new();
    for count in members {
        println!("a cluster of {count} members");
        lines.extend(runtime.block_on(measure(count))?);
    }
    println!("{}", lines.join("\n"));
    Ok(())
}

async fn measure(members: usize) -> Result<Vec<String>> {
    let dir = tempfile::tempdir()?;
    let mut config = Config::load(None)?;
    config.data_dir = dir.path().join("server");
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let made = init(&config).await?;
    let server = Server::start(&config, Clock::system()).await?;
    let (address, ca) = (format!("https://{}", server.address), server.ca_pem.clone());
    let access = |identity| Access { server: address.clone(), ca: Some(ca.clone()), identity };
    let admin = Client::new(&access(Identity::Token(made.token)))?;
    let first = join_all(&admin, members).await?;
    let mut member = Member::begins(Client::new(&access(first))?, &admin).await?;
    let alone = member.changes().await?;
    let begun = processor()?;
    for _ in 0..BEGINNINGS {
        let found = admin.cluster_wait((NS, NAME), None, true, Duration::ZERO).await?;
        ensure!(found.state == ClusterWaitState::Waiting, "{}", found.reason);
    }
    let beginning = (processor()? - begun) / BEGINNINGS;
    let mut waiting = JoinSet::new();
    for _ in 0..WAITS {
        let client = admin.clone();
        waiting.spawn(async move { client.cluster_wait((NS, NAME), None, true, WAIT).await.map(drop) });
    }
    // Once one more call was answered on the connection, the server has received all of them.
    admin.overview(NS).await?;
    let together = member.changes().await?;
    ensure!(waiting.try_join_next().is_none(), "a wait ended");
    waiting.shutdown().await;
    member.polling.shutdown().await;
    server.stop().await?;
    let millis = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1_000.0);
    Ok(vec![
        format!("wait-{members}-change-alone {}", millis(alone)),
        format!("wait-{members}-change-beside-{WAITS} {}", millis(together)),
        format!("wait-{members}-begin {}", millis(beginning)),
    ])
}

/// The member that reports; the others never connect.
struct Member {
    client: Client,
    order: Order,
    run: String,
    attempts: u32,
    polling: JoinSet<()>,
}

impl Member {
    /// Connects the first member, and starts the run on all of them.
    async fn begins(client: Client, admin: &Client) -> Result<Self> {
        admin.apply(NS, &workflow()).await?;
        let spec = ClusterSpec { filter: Some("all".to_owned()), leaders: Some(0), ..ClusterSpec::default() };
        admin.set_cluster(NS, NAME, &spec).await?;
        client.report(NS, &report(0, BTreeMap::new())).await?;
        let policy =
            Policy { batch: Some("100%".to_owned()), soak: Some("0s".to_owned()), ..Policy::default() };
        let workflow = Some(NAME.to_owned());
        let new = NewClusterRun { workflow, on: Some("all".to_owned()), policy, ..NewClusterRun::default() };
        let run = admin.start_cluster_run(NS, NAME, &new).await?.name;
        let order = loop {
            let known = client.sync(NS, &node(0), (0, None), Duration::from_secs(10)).await?;
            if let Some(order) = known.order.filter(|order| order.entities.contains_key(&run)) {
                break order;
            }
        };
        client.next_job(NS, (&node(0), &run), 0).await?;
        let (mut polling, polls, generation) = (JoinSet::new(), client.clone(), order.generation);
        polling.spawn(async move {
            while polls.sync(NS, &node(0), (generation, None), Duration::from_secs(30)).await.is_ok() {}
        });
        Ok(Self { client, order, run, attempts: 0, polling })
    }

    /// Reports its job, each time begun once more; the processor time of one report.
    async fn changes(&mut self) -> Result<Duration> {
        let begun = processor()?;
        for _ in 0..CHANGES {
            self.attempts += 1;
            let job = ReportedJob {
                index: 0,
                task: NAME.to_owned(),
                state: JobState::Running,
                exit: None,
                exit_code: None,
                attempts: self.attempts,
                started_ms: Some(1),
                ended_ms: None,
                outputs: None,
            };
            let assigned = self.order.entities.get(&self.run).context("it is in the order")?;
            let entity = EntityReport {
                answering: assigned.number,
                activity: TargetActivity::Applying { attempt: self.attempts, waiting_for: None },
                jobs: Some(vec![job]),
                ..EntityReport::default()
            };
            let entities = BTreeMap::from([(self.run.clone(), entity)]);
            self.client.report(NS, &report(self.order.generation, entities)).await?;
        }
        Ok((processor()? - begun) / CHANGES)
    }
}

fn report(generation: u64, entities: BTreeMap<String, EntityReport>) -> Report {
    let features = [Feature::Versions, Feature::Workflows, Feature::Jobs, Feature::TaskLists];
    Report {
        node: node(0),
        agent_version: "bench".to_owned(),
        generation,
        ledger: Some("bench".to_owned()),
        ledger_since: 0,
        sequence: 0,
        entities,
        statuses: BTreeMap::new(),
        features: Some(features.iter().map(ToString::to_string).collect()),
        deleted: BTreeMap::new(),
        received_at_ms: 0,
    }
}

fn workflow() -> ApplyRequest {
    let name = NAME.to_owned();
    let script = Some(Script { text: "true\n".to_owned(), ..Script::default() });
    let steps = vec![TaskStep { name: "run".to_owned(), script, file: None }];
    let documents = vec![
        Document::Task(TaskDocument { name: name.clone(), steps, ..TaskDocument::default() }),
        Document::Stage(StageDocument {
            name: name.clone(),
            tasks: vec![name.clone()],
            ..StageDocument::default()
        }),
        Document::Workflow(WorkflowDocument {
            name: name.clone(),
            stages: vec![name],
            ..WorkflowDocument::default()
        }),
    ];
    ApplyRequest { documents, ..ApplyRequest::default() }
}

fn node(number: usize) -> String {
    format!("node-{number:05}")
}

/// Joins so many nodes; answers the identity of the first one.
async fn join_all(admin: &Client, nodes: usize) -> Result<Identity> {
    let first = join(admin.clone(), 0).await?;
    let mut joining = JoinSet::new();
    for number in 1..nodes {
        if joining.len() >= ABREAST {
            joining.join_next().await.context("some are joining")???;
        }
        joining.spawn(join(admin.clone(), number));
    }
    while let Some(done) = joining.join_next().await {
        done??;
    }
    Ok(first)
}

async fn join(admin: Client, number: usize) -> Result<Identity> {
    let labels = vec!["*".to_owned()];
    let token = admin.create_join_token(&NewJoinToken { labels, ..NewJoinToken::default() }).await?.secret;
    let key = rcgen::KeyPair::generate()?;
    let request = Join {
        token,
        namespace: NS.to_owned(),
        node: node(number),
        labels: BTreeMap::new(),
        certificate_request: rcgen::CertificateParams::default().serialize_request(&key)?.pem()?,
    };
    let certificate = admin.join(&request).await?.certificate;
    Ok(Identity::Node { certificate, key: Secret::new(key.serialize_pem()) })
}

/// Processor time of this process so far: other programs on the machine do not change it.
fn processor() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after = stat.rsplit(") ").next().context("the kernel says how a process is")?;
    let ticks = after.split(' ').skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    // A tick is 10 ms wherever Linux runs.
    Ok(Duration::from_millis(ticks * 10))
}
