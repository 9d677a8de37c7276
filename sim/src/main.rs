//! Plays histories and reports broken laws with the seed that replays them.

use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bellwether_sim::chaos::FaultMix;
use bellwether_sim::history::{Options, Outcome, play};
use bellwether_sim::rules::DisabledRule;
use bellwether_sim::site::authority;
use clap::Parser;
use tokio::time::Instant;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Play histories of a whole installation under simulated faults
#[derive(Parser)]
#[command(name = "cargo xtask sim")]
struct Args {
    /// Number of histories
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Play this seed alone, twice, and print its last lines
    #[arg(long)]
    seed: Option<u64>,
    /// Print to standard error what the servers log in this history, with the simulated time; `bellwether_sim=trace` adds each commit's values
    #[arg(long, requires = "seed", value_name = "DIRECTIVES", num_args = 0..=1, default_missing_value = "debug")]
    log: Option<String>,
    /// Seconds of faults in each history
    #[arg(long, default_value_t = 240)]
    trouble: u64,
    /// Which faults may occur
    #[arg(long, value_enum, default_value_t = FaultMix::Everything)]
    mix: FaultMix,
    /// Let servers or agents ignore one of their rules, to show that it is needed
    #[arg(long, value_name = "RULE")]
    without: Option<DisabledRule>,
}

#[expect(clippy::print_stdout, reason = "a tool tells what it found")]
fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let trouble = Duration::from_secs(args.trouble);
    let options = Options { trouble, mix: args.mix, without: args.without, ..Options::default() };
    let dir = tempfile::tempdir()?;
    authority(dir.path())?;
    if let Some(seed) = args.seed {
        let first = match &args.log {
            Some(directives) => logged(directives, || play(seed, &options, dir.path()))?,
            None => play(seed, &options, dir.path())?,
        };
        let second = play(seed, &options, dir.path())?;
        first.lines.iter().for_each(|line| println!("{line}"));
        println!("seed {seed}: {} commits, {} lines, sum {}", first.commits, first.sum.1, first.sum.0);
        if first.sum != second.sum {
            println!("seed {seed} is not repeated: {} lines, sum {}", second.sum.1, second.sum.0);
            return Ok(ExitCode::FAILURE);
        }
        return Ok(if first.broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let outcomes = all(&args, &options, dir.path());
    let (mut broken, mut commits) = (0, 0);
    for outcome in &outcomes {
        let outcome = outcome.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        commits += outcome.commits;
        for law in &outcome.broken {
            println!("seed {}: {law}", outcome.seed);
        }
        broken += u64::from(!outcome.broken.is_empty());
    }
    println!("{} histories, {commits} commits, {broken} broken", outcomes.len());
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays with the log lines that `directives` select.
fn logged(directives: &str, play: impl FnOnce() -> Result<Outcome>) -> Result<Outcome> {
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(directives).context("--log")?)
        .with_timer(SimulatedTime::default())
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .finish();
    tracing::subscriber::with_default(subscriber, play)
}

/// The time since the first line in milliseconds, as in a trace.
#[derive(Debug, Default)]
struct SimulatedTime(OnceLock<Instant>);

impl FormatTime for SimulatedTime {
    fn format_time(&self, to: &mut Writer<'_>) -> std::fmt::Result {
        write!(to, "{:>9}", self.0.get_or_init(Instant::now).elapsed().as_millis())
    }
}

/// Plays all seeds on as many threads as there are cores.
fn all(args: &Args, options: &Options, dir: &std::path::Path) -> Vec<Result<Outcome>> {
    let next = AtomicU64::new(args.from);
    let end = args.from + args.seeds;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut outcomes = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return outcomes;
            }
            outcomes.push(play(seed, options, dir));
        }
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles.into_iter().filter_map(|handle| handle.join().ok()).flatten().collect()
    })
}
