//! Measures how calls are answered while a pass over many external targets is decided and committed: a rollout adopts all of
//! them at once, since they run its version already. The server has threads of its own; the callers have others.
//!
//! Run with `cargo xtask bench adopt`; an argument changes the number of targets. Results come last, as `name value unit`.

#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bellwether_api::client::{Access, CallError, Client, Identity};
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::external::settings::ExternalSettings;
use bellwether_api::v1::external::{TargetReport, TargetReports};
use bellwether_api::v1::freeze::FreezeSpec;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::rollout::NewRollout;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_server::config::Config;
use bellwether_server::run::{Server, init};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Targets, unless an argument gives their number.
const TARGETS: usize = 40_000;

/// Targets per report: the most that is allowed.
const REPORTED: usize = 10_000;

/// Targets of the controller's calls that are measured.
const POLLED: usize = 100;

/// Time without a change after which every record is written; it is part of the figure.
const QUIET: Duration = Duration::from_millis(500);

/// Longest time for the rollout to adopt every target.
const WITHIN: Duration = Duration::from_secs(300);

const NS: &str = "default";
const ENTITY: &str = "shop";

/// The measured calls.
#[derive(Debug, Clone, Copy)]
enum MeasuredCall {
    Read,
    Status,
    Write,
    Controller,
}

const CALLS: [(MeasuredCall, &str); 4] = [
    (MeasuredCall::Read, "read"),
    (MeasuredCall::Status, "rollout_status"),
    (MeasuredCall::Write, "write"),
    (MeasuredCall::Controller, "controller"),
];

fn main() -> Result<()> {
    let targets = std::env::args().nth(1).map_or(Ok(TARGETS), |text| text.parse())?;
    let serving = Builder::new_multi_thread().enable_all().build()?;
    let calling = Builder::new_multi_thread().enable_all().build()?;
    measure(&serving, &calling, targets)
}

fn measure(serving: &Runtime, calling: &Runtime, targets: usize) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut config = Config::load(None)?;
    config.data_dir = dir.path().join("server");
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let made = serving.block_on(init(&config))?;
    let server = serving.block_on(async { Server::start(&config, Clock::system()).await })?;
    let access = Access {
        server: format!("https://{}", server.address),
        ca: Some(server.ca_pem.clone()),
        identity: Identity::Token(made.token),
    };
    let client = Client::new(&access)?;
    let done = calling.block_on(run(&client, targets));
    serving.block_on(server.stop())?;
    done
}

async fn run(client: &Client, targets: usize) -> Result<()> {
    let policy = Policy { soak: Some("0s".to_owned()), batch: Some("100%".to_owned()), ..Policy::default() };
    let external = Some(ExternalSettings::default());
    let spec = EntitySpec { external, policy, ..EntitySpec::default() };
    client.set_entity(NS, ENTITY, &spec).await?;
    for from in (0..targets).step_by(REPORTED) {
        client.report_targets(NS, ENTITY, &reports(from..targets.min(from + REPORTED))).await?;
    }
    let clock = Arc::new(Clock::system());
    let over = Arc::new(AtomicBool::new(false));
    let mut running = JoinSet::new();
    for (call, name) in CALLS {
        let (client, clock, over) = (client.fresh(), clock.clone(), over.clone());
        running.spawn(async move { (name, repeat(call, &client, &clock, &over).await) });
    }
    let start = clock.now();
    let new = NewRollout { version: Some("v1".to_owned()), ..NewRollout::default() };
    client.start_rollout(NS, ENTITY, &new).await?;
    let started = clock.now();
    tokio::time::timeout(WITHIN, adopted(client)).await.context("the targets are not adopted")??;
    let ended = clock.now();
    over.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    let mut lines = vec![
        format!("adopted_in {} ms", ended.since(start).as_millis()),
        format!("start {} ms", started.since(start).as_millis()),
    ];
    while let Some(done) = running.join_next().await {
        let (name, times) = done?;
        let times = times?;
        lines.push(figures(name, times.clone()));
        all.extend(times);
    }
    lines.push(figures("calls", all));
    println!("{}", lines.join("\n"));
    Ok(())
}

fn reports(range: std::ops::Range<usize>) -> TargetReports {
    let running = Some("v1".to_owned());
    let target =
        |at| TargetReport { name: format!("t-{at:06}"), running: running.clone(), ..TargetReport::default() };
    TargetReports { targets: range.map(target).collect(), ..TargetReports::default() }
}

/// Waits until every target's record is written: none has been for a while.
async fn adopted(client: &Client) -> Result<(), CallError> {
    let mut index = None;
    loop {
        let view = client.current_rollout(NS, ENTITY, index, QUIET).await?;
        let over = view.rollout.is_some_and(|rollout| rollout.ended_ms.is_some());
        if over && index == Some(view.revision) {
            return Ok(());
        }
        index = Some(view.revision);
    }
}

/// Makes one call after the other until `over`; returns the milliseconds that each took.
async fn repeat(
    call: MeasuredCall,
    client: &Client,
    clock: &Clock,
    over: &AtomicBool,
) -> Result<Vec<u64>, CallError> {
    let mut times = Vec::new();
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        let start = clock.now();
        match call {
            MeasuredCall::Read => drop(client.entities(NS).await?),
            MeasuredCall::Status => drop(client.current_rollout(NS, ENTITY, None, Duration::ZERO).await?),
            MeasuredCall::Write => {
                let reason = format!("measured {number}");
                let spec = FreezeSpec { entity: Some("other".to_owned()), reason, ..FreezeSpec::default() };
                drop(client.set_freeze(Some(NS), "measured", &spec).await?);
            }
            MeasuredCall::Controller => drop(client.orchestrate(NS, ENTITY, &reports(0..POLLED)).await?),
        }
        times.push(clock.now().since(start).max(Span::from_millis(0)).as_millis());
        number += 1;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(times)
}

fn figures(name: &str, mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let at =
        |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1))).copied();
    let [median, late, longest] = [50, 99, 100].map(|share| at(share).unwrap_or_default());
    format!("{name} {median} ms (99 of 100: {late} ms, longest: {longest} ms, calls: {})", times.len())
}
