//! Measures status reports: simulated agents send reports over TLS to a real server, each report changing one status,
//! authorised by the node's certificate, durable and with its event; compared with a TLS handler that only parses the JSON.
//!
//! Run with `cargo xtask bench reports`. Results come last, as `name value unit (peer value, ratio)`.

#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::put;
use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use bellwether_api::v1::access::{Join, NewJoinToken};
use bellwether_api::v1::report::Report;
use bellwether_api::v1::status::{Status, StatusState};
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::config::Config;
use bellwether_server::run::{Server, init};
use tokio::task::JoinSet;

/// Agents that report at the same time.
const AGENTS: usize = 256;

/// Duration of each measurement.
const MEASURE: Span = Span::from_secs(8);

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut config = Config::load(None)?;
    config.data_dir = dir.path().join("server");
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let made = init(&config).await?;
    let server = Server::start(&config, Clock::system()).await?;
    let address = format!("https://{}", server.address);
    let admin = Identity::Token(made.token);
    let admin =
        Client::new(&Access { server: address.clone(), ca: Some(server.ca_pem.clone()), identity: admin })?;
    let mut agents = Vec::with_capacity(AGENTS);
    for number in 0..AGENTS {
        agents.push(join(&admin, &address, &server.ca_pem, &format!("n-{number}")).await?);
    }
    let tasks = Tasks::new();
    let floor = floor(&server, &tasks)?;
    let mut rates = Vec::new();
    for round in 0..3 {
        let real = rate(&agents, None).await?;
        let parse = rate(&agents, Some(&floor)).await?;
        println!("round {round}: reports {real:.0}/s, parse only {parse:.0}/s");
        rates.push((real, parse));
    }
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (real, parse) = rates.get(1).copied().context("three rounds were run")?;
    tasks.cancel();
    server.stop().await?;
    println!("reports {real:.0} per_second (parse_only {parse:.0}, ratio {:.2})", real / parse);
    Ok(())
}

/// The client of a joined node, and its credentials for the reference server.
struct Agent {
    name: String,
    client: Client,
}

async fn join(admin: &Client, address: &str, ca: &str, name: &str) -> Result<Agent> {
    let token = admin
        .create_join_token(&NewJoinToken { labels: vec!["*".to_owned()], ..NewJoinToken::default() })
        .await?
        .secret;
    let key = rcgen::KeyPair::generate()?;
    let request = Join {
        token,
        namespace: "default".to_owned(),
        node: name.to_owned(),
        labels: BTreeMap::new(),
        certificate_request: rcgen::CertificateParams::default().serialize_request(&key)?.pem()?,
    };
    let joined = admin.join(&request).await?;
    let identity = Identity::Node { certificate: joined.certificate, key: Secret::new(key.serialize_pem()) };
    let access = Access { server: address.to_owned(), ca: Some(ca.to_owned()), identity };
    Ok(Agent { name: name.to_owned(), client: Client::new(&access)? })
}

/// A server that reads the same bodies over the same TLS and does nothing with them.
fn floor(server: &Server, tasks: &Tasks) -> Result<Client> {
    let handler = put(|body: bytes::Bytes| async move {
        match serde_json::from_slice::<Report>(&body) {
            Ok(_) => "{}",
            Err(_) => "null",
        }
    });
    let router = Router::new().route("/v1/namespaces/{ns}/nodes/{node}/report", handler);
    let address = server.serve_beside(router, tasks)?;
    let access = Access {
        server: format!("https://{address}"),
        ca: Some(server.ca_pem.clone()),
        identity: Identity::Nobody,
    };
    Ok(Client::new(&access)?)
}

/// Reports per second, of all agents together.
async fn rate(agents: &[Agent], floor: Option<&Client>) -> Result<f64> {
    let clock = Clock::system();
    let end = clock.now().plus(MEASURE);
    let mut running = JoinSet::new();
    let clock = Arc::new(clock);
    for agent in agents {
        let client = match floor {
            // A connection of its own, as on the real server.
            Some(floor) => floor.fresh(),
            None => agent.client.clone(),
        };
        let (name, clock) = (agent.name.clone(), clock.clone());
        running.spawn(async move { report(&client, &name, &clock, end).await });
    }
    let mut count = 0_u32;
    while let Some(done) = running.join_next().await {
        count += done??;
    }
    Ok(f64::from(count) / Duration::from_millis(MEASURE.as_millis()).as_secs_f64())
}

/// Sends reports until the end, each with the other state.
async fn report(
    client: &Client,
    name: &str,
    clock: &Clock,
    end: bellwether_core::words::time::Timestamp,
) -> Result<u32> {
    let mut count = 0_u32;
    while clock.now() < end {
        let state = if count.is_multiple_of(2) { StatusState::Success } else { StatusState::Failed };
        let status = Status { reason: "measured".to_owned(), ..state.into() };
        let report = Report {
            node: name.to_owned(),
            agent_version: "bench".to_owned(),
            generation: 0,
            ledger: None,
            ledger_since: 0,
            sequence: 0,
            entities: BTreeMap::new(),
            statuses: BTreeMap::from([("configure".to_owned(), status)]),
            features: None,
            deleted: BTreeMap::new(),
            received_at_ms: 0,
        };
        client.report("default", &report).await?;
        count += 1;
    }
    Ok(count)
}
