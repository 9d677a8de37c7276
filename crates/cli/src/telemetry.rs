//! Logs, on stderr: errors alone for short commands, `info` for long-running ones.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::args::{Args, LogFormat};
use crate::exit::Failure;

/// Starts logging with the level and format of the arguments.
///
/// # Errors
/// The filter cannot be read.
pub(crate) fn start(args: &Args) -> Result<(), Failure> {
    let level = match (&args.global.log, args.command.runs_long()) {
        (Some(filter), _) => filter.clone(),
        (None, true) => "info".to_owned(),
        (None, false) => "error".to_owned(),
    };
    let filter = EnvFilter::try_new(&level).map_err(|error| {
        Failure::usage(format!("use --log {level:?}: {error}"))
            .hint("write a level like debug, or levels of parts like bellwether_server=debug,info; BELLWETHER_LOG has the same meaning")
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match args.global.log_format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started already");
    }
    Ok(())
}
