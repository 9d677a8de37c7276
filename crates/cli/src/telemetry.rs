//! Logs, on stderr: errors alone for short commands, `info` for long-running ones.

use std::io::IsTerminal;
use std::str::FromStr;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

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
    let filter = filter(&level)?;
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

/// The filter of this text. A library that warns of each connection that misbehaves is quiet unless it is named, or `debug` or `trace` of everything is asked for: the
/// server tells of such connections itself, at a limited rate.
fn filter(level: &str) -> Result<EnvFilter, Failure> {
    let filter = EnvFilter::try_new(level).map_err(|error| {
        Failure::usage(format!("use --log {level:?}: {error}"))
            .hint("write a level like debug, or levels of parts like bellwether_server=debug,info; BELLWETHER_LOG has the same meaning")
    })?;
    let is_verbose = |part: &str| matches!(part.trim().to_ascii_lowercase().as_str(), "debug" | "trace");
    let is_asked_for = level.contains("h2") || level.split(',').any(is_verbose);
    let quiet = Directive::from_str("h2=error").ok().filter(|_| !is_asked_for);
    Ok(match quiet {
        Some(quiet) => filter.add_directive(quiet),
        None => filter,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_misbehave_are_not_told_one_by_one_unless_that_is_asked_for() {
        let of = |level: &str| filter(level).unwrap().to_string();
        for level in ["info", "warn", "error", "bellwether_server=debug,info"] {
            assert!(of(level).contains("h2=error"), "{}", of(level));
        }
        for level in ["debug", "trace", "h2=warn,info", "info,TRACE"] {
            assert!(!of(level).contains("h2=error"), "{}", of(level));
        }
        assert!(filter("a=b=c").is_err());
    }
}
