//! `sink`, as typed.

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum SinkVerb {
    /// Create a sink of events, or change one: a webhook or a file that receives the events of the namespace
    Set {
        #[command(flatten)]
        of: SinkName,
        #[command(flatten)]
        change: Box<SinkFlags>,
        /// Change only if this is its revision, 0 if it must not exist; else exit 6 and change nothing
        #[arg(long, value_name = "REVISION", value_parser = super::number::whole::<u64>)]
        if_revision: Option<u64>,
    },
    /// List sinks, how far they are, and why they do not send
    List(ListFlags),
    /// Show a sink: how far it is, the last attempt with its answer, its dead letters, and why it does not send
    Get {
        #[command(flatten)]
        of: SinkName,
    },
    /// Send one test event to the receiver of a sink now, and say what it answered
    Test {
        #[command(flatten)]
        of: SinkName,
    },
    /// Send events again, before those that follow
    Replay {
        #[command(flatten)]
        of: SinkName,
        /// Number of the first event that is sent again; all after it are, too
        #[arg(long, value_name = "EVENT", value_parser = super::number::whole::<u64>, conflicts_with = "dead_letters", required_unless_present = "dead_letters")]
        from: Option<u64>,
        /// Send the dead letters again
        #[arg(long)]
        dead_letters: bool,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Enable a sink that is disabled, or that stopped; one that waits for its next attempt makes it at once
    Enable {
        #[command(flatten)]
        of: SinkName,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Disable a sink: it sends nothing, and events wait for as long as they are kept
    Disable {
        #[command(flatten)]
        of: SinkName,
        /// Reason, kept in the history
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Delete a sink, and what is known of how far it is
    Delete {
        #[command(flatten)]
        of: SinkName,
        #[command(flatten)]
        consent: Consent,
    },
}

/// The sink that a command is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SinkName {
    /// Sink name
    #[arg(value_name = "SINK")]
    pub(crate) name: String,
}

/// What a sink is to be. What is not given stays as it is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SinkFlags {
    /// URL that receives each event in a request of its own, like https://receiver.example/events
    #[arg(long, value_name = "URL", conflicts_with = "file")]
    pub(crate) webhook: Option<String>,
    /// Secret of the namespace that signs the requests; at most two, and together they replace those before
    #[arg(long, value_name = "SECRET", conflicts_with = "file")]
    pub(crate) secret: Vec<String>,
    /// Send unsigned requests
    #[arg(long, conflicts_with_all = ["secret", "file"])]
    pub(crate) unsigned: bool,
    /// Header that is sent with each request; all that are given replace those before
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "file")]
    pub(crate) header: Vec<String>,
    /// Time limit of one request, 100ms to 60s [default: 10s]
    #[arg(long, value_name = "TIME", conflicts_with = "file")]
    pub(crate) timeout: Option<Span>,
    /// Number of refusals of one event after which it is a dead letter, 1 to 1000 [default: 20]
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>, conflicts_with = "file")]
    pub(crate) attempts: Option<u32>,
    /// Age of an event from which an attempt that fails is the last one, 1s to 7d [default: 24h]
    #[arg(long, value_name = "TIME", conflicts_with = "file")]
    pub(crate) max_age: Option<Span>,
    /// File that receives each event as a line, below the directory that the server's configuration names
    #[arg(long = "to-file", value_name = "PATH")]
    pub(crate) file: Option<String>,
    /// Size of the file after which another one is begun [default: 67108864]
    #[arg(long, value_name = "BYTES", value_parser = super::number::whole::<u64>)]
    pub(crate) max_bytes: Option<u64>,
    /// Number of older files that are kept, 0 to 100 [default: 4]
    #[arg(long, value_name = "N", value_parser = super::number::whole::<u32>)]
    pub(crate) keep: Option<u32>,
    /// Filter of the events, like 'kind = rollout.failed or kind = node.unreachable' [default: all]
    #[arg(long, short = 'l', value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Reason, kept in the history
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
}
