//! The project's own chores. Touches the tree and starts cargo; never part of the product.

mod bench;
mod ci;
mod codegen;
mod fuzz;
mod package;
mod shell;
mod sim;
mod test;
mod testbed;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check walls, layers, circles, sizes, names, and the words and paths of all pages
    Tidy(tidy::Shown),
    /// Install what the tests need and run all of them
    Test {
        /// Only tests whose name holds this
        filter: Option<String>,
    },
    /// Everything a change must pass: format, lints, tidy, dependencies, tests
    Ci,
    /// Write the code that is made from proto files
    Codegen,
    /// Build the Debian package, in `target/package`
    Package {
        /// Profile to build the program with, instead of `dist`
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
    /// Play histories of a whole installation under simulated trouble
    Sim {
        /// What the simulator is told: `--seeds N`, `--seed N`, `--mood MOOD`, `--without RULE`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Fuzz what comes from outside: policies, entities, reports, answers of hooks, filters, words
    Fuzz(fuzz::Fuzz),
    /// Call every operation of the API with valid and invalid values of everything, by its own description
    Schemathesis {
        /// Examples of each operation
        #[arg(long, default_value_t = 200)]
        examples: u32,
    },
    /// Play what takes minutes: several servers under every fault of the testbed
    Faults {
        /// Only those whose name holds this
        filter: Option<String>,
    },
    /// Several hosts on this machine, with an etcd, servers and agents on them
    Testbed {
        /// What the testbed is told: `--servers N`, `--agents N`, `--etcd N`, `--pre-vote`; `--help` says the rest
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Measure, and print figures last: decide, store, reports
    Bench {
        /// Which
        name: bench::Bench,
        /// What it is told: `fleet` takes `--agents N`, `--servers N`, `--etcd`, `--rest SECONDS`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

/// The failure is the last line, without a backtrace: what the chore started has said above what is wrong.
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            shell::say(&format!("failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let root = root();
    match Args::parse().chore {
        Chore::Tidy(shown) => tidy::run_or_show(&root, &shown),
        Chore::Test { filter } => test::run(&root, filter.as_deref()),
        Chore::Ci => ci::run(&root),
        Chore::Package { profile } => package::run(&root, profile.as_deref()),
        Chore::Fuzz(fuzz) => fuzz::run(&root, &fuzz),
        Chore::Codegen => codegen::run(&root),
        Chore::Bench { name, args } => bench::run(&root, name, &args),
        Chore::Faults { filter } => test::faults(&root, filter.as_deref()),
        Chore::Schemathesis { examples } => test::schemathesis(&root, examples),
        Chore::Testbed { args } => testbed::run(&root, &args),
        Chore::Sim { args } => sim::run(&root, &args),
    }
}

/// The workspace: the folder above this crate.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}
