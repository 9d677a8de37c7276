//! `bellwether`: control plane, node agent and command line in one binary.

mod args;
mod commands;
mod context;
mod exit;
mod near;
mod show;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

use args::Args;
use exit::Failure;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    if let Err(error) = rustls::crypto::ring::default_provider().install_default() {
        tracing::debug!(?error, "a TLS provider was installed already");
    }
    telemetry::start(&args);
    #[cfg(feature = "failpoints")]
    if let Err(error) = bellwether_rt::fail::arm(&args::fail_points_in_environment()) {
        return exit::code(Err(Failure::usage(error.to_string())));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(args)),
        Err(error) => Err(Failure::ours(format!("start the runtime: {error}"))),
    };
    exit::code(ended)
}
