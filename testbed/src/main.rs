//! The testbed at a prompt: starts it, says how to reach it, executes commands from standard input, and stops everything at
//! the end of the input, on `quit` and on Ctrl-C.

use std::path::PathBuf;

use anyhow::{Context, Result};
use bellwether_rt::signal::stop_requested;
use bellwether_rt::tasks::Tasks;
use bellwether_testbed::{Options, Testbed, orders};
use clap::Parser;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Run an etcd, servers and agents on several hosts of this machine
#[derive(Parser)]
#[command(name = "cargo xtask testbed")]
struct Args {
    /// Path of the program `bellwether`
    #[arg(long)]
    program: PathBuf,
    /// Number of etcd members; with 0, the only server uses its embedded store
    #[arg(long, default_value_t = 3)]
    etcd: usize,
    /// Number of servers
    #[arg(long, default_value_t = 3)]
    servers: usize,
    /// Number of agents
    #[arg(long, default_value_t = 6)]
    agents: usize,
    /// Number of the only server that agents are configured with
    #[arg(long)]
    agents_know: Option<usize>,
    /// Run etcd with --pre-vote
    #[arg(long)]
    pre_vote: bool,
    /// Storage quota of etcd, in bytes
    #[arg(long)]
    quota_bytes: Option<u64>,
    /// Size of each member's own disk, in MiB
    #[arg(long)]
    disk_mib: Option<u32>,
    /// Let servers reach etcd through proxies, which can be made slow and lossy
    #[arg(long)]
    proxied: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Runtime::new().context("cannot start a runtime")?;
    let ended = runtime.block_on(run(args));
    // Reading the terminal cannot be cancelled: it must not delay the end.
    runtime.shutdown_background();
    ended
}

async fn run(args: Args) -> Result<()> {
    let options = Options {
        etcd: args.etcd,
        servers: args.servers,
        agents: args.agents,
        agents_know: args.agents_know,
        pre_vote: args.pre_vote,
        quota_bytes: args.quota_bytes,
        disk_mib: args.disk_mib,
        proxied: args.proxied,
        ..Options::new(args.program)
    };
    let tasks = Tasks::new();
    say("starting; this takes some seconds");
    let mut bed = Testbed::start(options, &tasks)?;
    say(&format!("everything is in {}; talk to it with:", bed.dir().display()));
    for (name, value) in bed.environment(1)?.iter().filter(|(name, _)| name != "HOME") {
        say(&format!("  export {name}={value}"));
    }
    say(orders::HELP);
    // A line half typed when a signal arrives is discarded.
    let ended = tokio::select! {
        ended = take_orders(&mut bed) => ended,
        stop = stop_requested() => stop.map(drop).context("cannot listen for signals"),
    };
    say("taking everything down");
    tasks.cancel();
    drop(bed);
    ended
}

async fn take_orders(bed: &mut Testbed) -> Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if line.trim() == "quit" {
            return Ok(());
        }
        match tokio::task::block_in_place(|| orders::obey(bed, &line)) {
            Ok(said) if said.is_empty() => say("done"),
            Ok(said) => say(&said),
            Err(error) => say(&format!("could not: {error:#}")),
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "it speaks to the person who started it")]
fn say(text: &str) {
    println!("{text}");
}
