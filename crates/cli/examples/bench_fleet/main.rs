//! A control plane under ten thousand agents: what they cost it at rest, how fast an order reaches all of them, how a silent
//! one is found, and what a restart under all of them, or the end of the leader, is like. The servers are processes of the
//! program as it is built; the agents speak the real protocol, each with a certificate and connections of its own.
//!
//! `cargo xtask bench fleet [--agents 10000] [--servers 2 --etcd] [--rest 60]`; with `--jobs`, which `cargo xtask bench jobs` gives, what
//! the run of a workflow on all of them costs instead, and with `--orchestrate` what the views of their data stores do.

#![expect(clippy::print_stdout, reason = "figures are what a bench is for")]

mod agent_run;
mod crowd;
mod jobs;
mod measure;
mod orchestrate;
mod people;
mod place;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use measure::{Fleet, Herd, Spread};
use place::Setup;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Measures a control plane under many agents.
#[derive(Debug, Parser)]
struct Args {
    /// How many agents
    #[arg(long, default_value_t = 10_000)]
    agents: usize,
    /// How many servers; more than one need --etcd
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// Keep everything in an etcd of one member, started for this
    #[arg(long)]
    etcd: bool,
    /// Run a workflow on all agents, and nothing else
    #[arg(long)]
    jobs: bool,
    /// Have all agents report data stores, in clusters of ten, and nothing else
    #[arg(long)]
    orchestrate: bool,
    /// How many seconds nothing is done while what that costs is measured
    #[arg(long, default_value_t = 60)]
    rest: u64,
    /// The program whose servers are measured
    #[arg(long)]
    program: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    raise_limit(args.agents);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&args))
}

/// Each agent is a socket here, and one in the server, which has the same limit; while it calls again it may be two.
fn raise_limit(agents: usize) {
    let needed =
        u64::try_from(agents).unwrap_or(u64::MAX).saturating_mul(3).div_ceil(2).saturating_add(1_000);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return;
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum.map(|most| most.max(needed)) };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        println!("cannot raise the limit of open files to {needed}: {error}; connections will be refused");
    }
}

async fn measure(args: &Args) -> Result<()> {
    let program = args.program.clone().unwrap_or_else(program);
    let place = Setup::make(&program, args.servers, args.etcd).await?;
    println!("joining {} agents", args.agents);
    let mut fleet = Fleet::gather(place, args.agents).await?;
    if args.jobs {
        println!("all connected; running a workflow on all of them");
        println!("{}", fleet.run_workflow().await?.figures().join("\n"));
        return Ok(());
    }
    if args.orchestrate {
        println!("all connected; reporting data stores, doing nothing for {} s, then some die", args.rest);
        println!("{}", fleet.orchestrate(Duration::from_secs(args.rest)).await?.figures().join("\n"));
        return Ok(());
    }
    println!("all connected; doing nothing for {} s", args.rest);
    let rest = fleet.rest(Duration::from_secs(args.rest)).await?;
    println!("rest: {rest:?}");
    let mut orders = Vec::new();
    for version in ["1", "2", "3"] {
        let order = fleet.fan_out(version).await?;
        println!("fan-out: {order:?}");
        orders.push(order);
    }
    orders.sort_by_key(|order| order.most);
    let orders = *orders.get(1).context("three were measured")?;
    let stopped = fleet.herd(false).await?;
    dispatched("stopped and started", &stopped)?;
    let killed = fleet.herd(true).await?;
    dispatched("killed and started", &killed)?;
    let takeovers = if args.servers > 1 {
        let (clean, killed) = (fleet.takeover(false, "4").await?, fleet.takeover(true, "5").await?);
        Some((clean, killed))
    } else {
        None
    };
    let (silent, flaps) = fleet.silent().await?;
    println!();
    figure("rest-writes", rest.writes, "writes", "0");
    println!("rest-processor {:.1} %_of_a_core (bar 10, ratio {:.2})", rest.core * 100.0, rest.core * 10.0);
    let mib = rest.resident_kib / 1_024;
    println!("rest-memory {mib} MiB (bar 512, ratio {:.2})", ratio(mib, 512));
    println!("rest-per-agent {:.1} KiB (bar 40, ratio {:.2})", rest.kib_per_agent, rest.kib_per_agent / 40.0);
    seconds("fan-out-half", orders.half, None);
    seconds("fan-out-p99", orders.most, Some(0.5));
    seconds("fan-out-all", orders.all, None);
    for (name, herd) in [("stopped", &stopped), ("killed", &killed)] {
        seconds(&format!("herd-{name}-back"), herd.back, Some(15.0));
        seconds(&format!("herd-{name}-people-p99"), looks(herd)?.most, Some(0.5));
        figure(&format!("herd-{name}-flaps"), herd.flaps, "events", "0");
    }
    if let Some((clean, killed)) = takeovers {
        seconds("takeover-clean", clean, Some(0.5));
        seconds("takeover-killed", killed, Some(6.0));
    }
    seconds("silent-machine", silent, Some(30.0));
    figure("silent-others", flaps, "events", "0");
    Ok(())
}

fn looks(herd: &Herd) -> Result<Spread> {
    Spread::of(herd.looks.iter().map(|look| look.took).collect())
}

fn dispatched(what: &str, herd: &Herd) -> Result<()> {
    let unanswered = herd.looks.iter().filter(|look| !look.answered).count();
    let (back, flaps, looks, count) = (herd.back, herd.flaps, looks(herd)?, herd.looks.len());
    println!(
        "{what}: all back after {back:?}, {flaps} flaps, {count} looks, {unanswered} unanswered, {looks:?}"
    );
    Ok(())
}

fn figure(name: &str, value: u64, unit: &str, bar: &str) {
    println!("{name} {value} {unit} (bar {bar})");
}

fn seconds(name: &str, value: Duration, bar: Option<f64>) {
    let value = value.as_secs_f64();
    let bar = bar.map_or(String::new(), |bar| format!(" (bar {bar}, ratio {:.2})", value / bar));
    println!("{name} {value:.3} s{bar}");
}

#[expect(clippy::cast_precision_loss, reason = "megabytes of memory are far below 2^52")]
fn ratio(value: u64, bar: u64) -> f64 {
    value as f64 / bar as f64
}

/// The program as the workspace builds it for release.
fn program() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    std::env::var_os("CARGO_TARGET_DIR").map_or(here, PathBuf::from).join("release/bellwether")
}
