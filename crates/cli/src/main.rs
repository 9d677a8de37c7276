//! `bellwether`: control plane, node agent and command line in one binary.

mod args;
mod commands;
mod complaint;
mod completion;
mod confirm;
mod context;
mod exit;
mod fields;
mod names;
mod near;
mod parent;
mod server_addresses;
mod show;
mod simulation;
mod small_file;
mod telemetry;
mod whole_file;
mod yaml_depth;

use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::ErrorKind;

use args::Args;
use bellwether_agent::{guard, limits, renderer};
use commands::lock_guard;
use exit::{CommandResult, Exit, Failure};

/// Stack of each worker thread. Without optimisation, frames are large: an agent that asked an etcd deep within a change has overflowed the
/// usual two MiB.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    // Before anything is set up: one runs beside each job and each command with a lock, and should be small.
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(first) if first == guard::COMMAND => return guard::run(),
        Some(first) if first == renderer::COMMAND => return renderer::run(),
        Some(first) if first == limits::COMMAND => return limits::run(words),
        Some(first) if first == lock_guard::COMMAND => return lock_guard::run(words),
        Some(_) | None => {}
    }
    if let Err(error) = rustls::crypto::ring::default_provider().install_default() {
        tracing::debug!(?error, "a TLS provider was installed already");
    }
    match completion::answer() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return exit::usage(&error, None),
    }
    let parsed = args::command().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Args::from_arg_matches(&matches)?, matches)));
    let (args, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) if error.kind() == ErrorKind::MissingSubcommand => {
            show::tell(&args::short_help(std::env::args_os().skip(1)));
            return exit::code(Ok(Exit::Usage));
        }
        Err(error) => return exit::usage(&error, args::commands_meant(&error)),
    };
    if let Err(failure) = telemetry::start(&args) {
        return exit::code(Err(failure));
    }
    #[cfg(feature = "failpoints")]
    if let Err(error) = bellwether_rt::fail::arm(&args::fail_points_in_environment()) {
        return exit::code(Err(Failure::usage(error.to_string())));
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK_BYTES).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(run(args, &matches)),
        Err(error) => Err(Failure::ours(format!("start the runtime: {error}"))),
    };
    exit::code(ended)
}

async fn run(args: Args, matches: &clap::ArgMatches) -> CommandResult {
    let global = args.global.clone();
    let ended = commands::run(args).await;
    names::with_nearest(ended, &global, matches).await
}
