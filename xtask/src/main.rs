//! The project's own chores. Touches the tree and starts cargo; never part of the product.

mod bench;
mod ci;
mod codegen;
mod shell;
mod test;
mod tidy;

use std::path::PathBuf;

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
    /// Hold the walls between rooms, the sizes, the names and the map
    Tidy,
    /// Install what the tests need and run all of them
    Test {
        /// Only tests whose name holds this
        filter: Option<String>,
    },
    /// Everything a change must pass: format, lints, tidy, dependencies, tests
    Ci,
    /// Write the code that is made from proto files
    Codegen,
    /// Measure, and print figures last: decide, store, reports
    Bench {
        /// Which
        name: bench::Bench,
    },
}

fn main() -> Result<()> {
    let root = root();
    match Args::parse().chore {
        Chore::Tidy => tidy::run(&root),
        Chore::Test { filter } => test::run(&root, filter.as_deref()),
        Chore::Ci => ci::run(&root),
        Chore::Codegen => codegen::run(&root),
        Chore::Bench { name } => bench::run(&root, name),
    }
}

/// The workspace: the folder above this crate.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}
