//! Measures the lower bound for delivering something to ten thousand machines on this host: a server process without any
//! logic or store answers all long polls at once, over the same connections, TLS and HTTP as agents use, except for their
//! certificates. It is the reference for the order latency of `bench fleet`.
//!
//! Run with `cargo xtask bench order`. Results come last, as `name value unit`.

#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::extract::{Query, State};
use axum::routing::{get, put};
use axum::{Json, Router};
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::order::{ApplyMethod, Assignment, Order, OrderPoll};
use bellwether_api::v1::report::{EntityReport, Report, TargetHealth};
use bellwether_core::local::delay;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::config::Config;
use bellwether_server::run::{Server, init};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Number of machines.
const AGENTS: usize = 10_000;

/// Number of rounds.
const ROUNDS: u64 = 5;

/// Duration of a long poll, plus or minus a quarter, as in the agent.
const WAIT: Span = Span::from_secs(44);

/// Deadline of everything that is awaited: far longer than it takes.
const BOUND: Duration = Duration::from_secs(120);

/// The argument that makes this process the server.
const SERVE: &str = "--serve";

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if std::env::args().any(|arg| arg == SERVE) {
        runtime.block_on(serve())
    } else {
        runtime.block_on(measure())
    }
}

/// Serves; publishes a new order for each line that it reads.
async fn serve() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut config = Config::load(None)?;
    config.data_dir = dir.path().join("server");
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    init(&config).await?;
    let server = Server::start(&config, Clock::system()).await?;
    let tasks = Tasks::new();
    let assigned = watch::Sender::new(0_u64);
    let router = Router::new()
        .route("/v1/namespaces/{ns}/nodes/{node}/order", get(sync))
        .route("/v1/namespaces/{ns}/nodes/{node}/report", put(async || "{}"))
        .with_state(assigned.clone());
    let address = server.serve_beside(router, &tasks)?;
    println!("{address} {}", config.data_dir.join("pki/ca.pem").display());
    let reading = tokio::task::spawn_blocking(move || {
        for _ in std::io::stdin().lines().map_while(std::result::Result::ok) {
            assigned.send_modify(|generation| *generation += 1);
        }
    });
    reading.await?;
    tasks.cancel();
    server.stop().await?;
    Ok(())
}

/// Waits until there is a newer order than the machine has.
async fn sync(
    State(assigned): State<watch::Sender<u64>>,
    Query(asked): Query<BTreeMap<String, String>>,
) -> Json<OrderPoll> {
    let known: u64 = asked.get("generation").and_then(|known| known.parse().ok()).unwrap_or_default();
    let mut assigned = assigned.subscribe();
    let newer = assigned.wait_for(|generation| *generation > known);
    let newer = tokio::time::timeout(WAIT.to_duration(), newer).await;
    let order = newer.ok().and_then(std::result::Result::ok).map(|generation| order(*generation));
    Json(OrderPoll {
        order,
        report_requested: false,
        overwritten: false,
        catalogue: None,
        servers: None,
        params: None,
        log_requests: Vec::new(),
        authorities: None,
        renew: false,
    })
}

/// An order with one entity at a version, as in `bench fleet`.
fn order(generation: u64) -> Order {
    let assignment = Assignment {
        store: None,
        retry: None,
        soak_ms: None,
        version: generation.to_string(),
        number: generation,
        method: ApplyMethod::Apply,
        ledger: None,
        complete: 0,
        lost_for: None,
    };
    Order {
        generation,
        term: 1,
        epoch: 0,
        entities: BTreeMap::from([("app".to_owned(), assignment)]),
        paused: None,
        rescan: 0,
        hosts: BTreeMap::new(),
        not_runnable: None,
        undo: None,
        failed_runs: Vec::new(),
        services: None,
        members: BTreeMap::new(),
        osds: BTreeMap::new(),
    }
}

/// The time, for measurements.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}

async fn measure() -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(SERVE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut tell = child.stdin.take().context("its input was asked for")?;
    let said = BufReader::new(child.stdout.take().context("its output was asked for")?).lines().next();
    let said = said.context("it serves")??;
    let (address, ca) = said.split_once(' ').context("it says where, and by which authority")?;
    let access = Access {
        server: format!("https://{address}"),
        ca: Some(std::fs::read_to_string(ca)?),
        identity: Identity::Nobody,
    };
    let client = Client::new(&access)?;
    let (mut counts, mut assigned) = (Vec::new(), 0);
    for reports in [false, true] {
        println!(
            "connecting {AGENTS} agents, which {} what they did",
            if reports { "report" } else { "do not report" }
        );
        let tell = || {
            assigned += 1;
            writeln!(tell, "tell")?;
            Ok(assigned)
        };
        counts.push((reports, rounds(&client, reports, tell).await?));
    }
    drop(tell);
    ensure!(child.wait()?.success(), "the server ended badly");
    for (reports, (half, most)) in counts {
        let name = if reports { "told-and-reported" } else { "told" };
        println!("{name}-half {:.3} s", half.as_secs_f64());
        println!("{name}-p99 {:.3} s", most.as_secs_f64());
    }
    Ok(())
}

/// When each machine received which order.
type Times = Arc<Mutex<BTreeMap<u64, Vec<Instant>>>>;

/// Time until half of the machines, and 99 of 100, have the order, in the median round.
async fn rounds(
    client: &Client,
    reports: bool,
    mut tell: impl FnMut() -> Result<u64>,
) -> Result<(Duration, Duration)> {
    let (times, mut calling) = (Times::default(), JoinSet::new());
    for number in 0..AGENTS {
        calling.spawn(live(client.fresh(), number, reports, times.clone()));
    }
    let mut spreads = Vec::new();
    for round in 0..=ROUNDS {
        let begun = now();
        let generation = tell()?;
        let assigned =
            || times.lock().unwrap_or_else(PoisonError::into_inner).get(&generation).map_or(0, Vec::len);
        while assigned() < AGENTS {
            ensure!(begun.elapsed() < BOUND, "waited {BOUND:?} in vain until all were told");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let all =
            times.lock().unwrap_or_else(PoisonError::into_inner).remove(&generation).unwrap_or_default();
        let mut took: Vec<Duration> = all.iter().map(|at| at.saturating_duration_since(begun)).collect();
        took.sort();
        let at = |share: usize| took.get(took.len() * share / 100).copied().unwrap_or_default();
        // In the first round they connect.
        if round > 0 {
            spreads.push((at(50), at(99)));
        }
        // Until all machines poll again, and what follows from that is done.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    spreads.sort_by_key(|(_, most)| *most);
    spreads.get(spreads.len() / 2).copied().context("there were rounds")
}

/// Polls as the agent does.
async fn live(client: Client, number: usize, reports: bool, times: Times) {
    let name = format!("n-{number:05}");
    let mut known = 0;
    loop {
        let wait = delay::spread(WAIT, number as u64, 1).to_duration();
        let Ok(answer) = client.sync("default", &name, (known, None), wait).await else {
            tokio::time::sleep(delay::before_call(1, number as u64).to_duration()).await;
            continue;
        };
        let Some(order) = answer.order else { continue };
        known = order.generation;
        times.lock().unwrap_or_else(PoisonError::into_inner).entry(known).or_default().push(now());
        if reports {
            drop(client.report("default", &report(&name, &order)).await);
        }
    }
}

/// A report that everything was applied successfully.
fn report(name: &str, order: &Order) -> Report {
    let done = order.entities.iter().map(|(entity, assignment)| {
        let report = EntityReport {
            running: Some(assignment.version.clone()),
            answering: assignment.number,
            health: TargetHealth::Healthy,
            healthy_for_ms: Some(0),
            ..EntityReport::default()
        };
        (entity.clone(), report)
    });
    Report {
        node: name.to_owned(),
        agent_version: "bench".to_owned(),
        generation: order.generation,
        ledger: None,
        ledger_since: 0,
        sequence: 0,
        entities: done.collect(),
        statuses: BTreeMap::new(),
        features: None,
        deleted: BTreeMap::new(),
        received_at_ms: 0,
    }
}
