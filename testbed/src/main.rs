//! The testbed by hand: starts it, says how to talk to it, does what it is told on stdin, and takes everything down at the
//! end of that, on `quit`, and on Ctrl-C.

use std::path::PathBuf;

use anyhow::{Context, Result};
use bellwether_rt::signal::stop_requested;
use bellwether_rt::tasks::Tasks;
use bellwether_testbed::{Options, Testbed, orders};
use clap::Parser;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Several hosts on this machine, with an etcd, servers and agents on them
#[derive(Parser)]
#[command(name = "cargo xtask testbed")]
struct Args {
    /// The program `bellwether`
    #[arg(long)]
    program: PathBuf,
    /// Members of the etcd; with none, the one server keeps its own store
    #[arg(long, default_value_t = 3)]
    etcd: usize,
    /// Servers
    #[arg(long, default_value_t = 3)]
    servers: usize,
    /// Agents
    #[arg(long, default_value_t = 6)]
    agents: usize,
    /// The one server that agents are configured with
    #[arg(long)]
    agents_know: Option<usize>,
    /// Members ask before they stand for election
    #[arg(long)]
    pre_vote: bool,
    /// The size at which etcd takes no more writes
    #[arg(long)]
    quota_bytes: Option<u64>,
    /// A disk of this size for each member, in MiB
    #[arg(long)]
    disk_mib: Option<u32>,
    /// Servers reach etcd by way of proxies, which can be made slow and lossy
    #[arg(long)]
    proxied: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Runtime::new().context("could not start a runtime")?;
    let ended = runtime.block_on(run(args));
    // Reading the terminal cannot be broken off: it must not keep this from ending.
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
    // A line that was half typed when a signal came is nobody's.
    let ended = tokio::select! {
        ended = take_orders(&mut bed) => ended,
        stop = stop_requested() => stop.map(drop).context("could not listen for signals"),
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
