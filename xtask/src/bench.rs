//! Measuring: each bench is a program of the crate it measures, built for release; figures come last.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;

use crate::shell;

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Bench {
    /// Rollout decisions at 1k to 1M targets
    Decide,
    /// Whole rollouts in virtual time at 1k to 1M targets
    Simulation,
    /// Durable writes at 1, 32 and 256 writers, beside the disk's own rate
    Store,
    /// Status reports over TLS, authorised, durable, each with its event
    Reports,
    /// Calls while a rollout adopts 40,000 external targets at once
    Adopt,
    /// Answers to DNS questions, beside unbound with the same records
    Dns,
    /// What an agent costs at rest, how long a check that turns takes to reach every agent's DNS, and wrong answers over restarts
    Agent,
    /// What telling ten thousand machines something costs at the least
    Order,
    /// Shared data: a list of ten thousand nodes with a filter, and writes of one live profile by many
    Data,
    /// A control plane under ten thousand agents: at rest, told something, restarted, its leader gone
    Fleet,
    /// The run of a workflow on ten thousand machines: what is written and computed for each job
    Jobs,
    /// The views of the data stores of a thousand clusters: at rest, and from a store's death to its event and its reaction
    Orchestrate,
    /// Waiting for the workflows of a cluster of up to ten thousand members: what a change costs, and beginning a wait
    Wait,
}

pub(crate) fn run(root: &Path, bench: Bench, arguments: &[String]) -> Result<()> {
    let (package, example) = match bench {
        Bench::Decide => ("bellwether-core", "bench_decide"),
        Bench::Simulation => ("bellwether-core", "bench_simulation"),
        Bench::Store => ("bellwether-store", "bench_store"),
        Bench::Reports => ("bellwether-server", "bench_reports"),
        Bench::Adopt => ("bellwether-server", "bench_adopt"),
        Bench::Dns => ("bellwether-dns", "bench_dns"),
        Bench::Agent => ("bellwether", "bench_agent"),
        Bench::Order => ("bellwether-server", "bench_order"),
        Bench::Data => ("bellwether-server", "bench_data"),
        Bench::Fleet | Bench::Jobs | Bench::Orchestrate => ("bellwether", "bench_fleet"),
        Bench::Wait => ("bellwether-server", "bench_wait"),
    };
    if matches!(bench, Bench::Agent | Bench::Data | Bench::Fleet | Bench::Jobs | Bench::Orchestrate) {
        // It measures the program itself, as a user would build it.
        shell::run(root, "cargo", &["build", "--release", "--package", "bellwether", "--quiet", "--locked"])?;
    }
    let cargo = ["run", "--release", "--quiet", "--locked", "-p", package, "--example", example, "--"];
    let jobs = matches!(bench, Bench::Jobs).then_some("--jobs");
    let mode = jobs.or(matches!(bench, Bench::Orchestrate).then_some("--orchestrate"));
    let arguments = mode.into_iter().chain(arguments.iter().map(String::as_str));
    shell::run(root, "cargo", &cargo.into_iter().chain(arguments).collect::<Vec<&str>>())
}
