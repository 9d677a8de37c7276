//! `events`, as typed.

use bellwether_core::words::time::Span;

use super::number;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Events {
    /// Follow new events as they happen
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Sequence number after which to start
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>)]
    pub(crate) after: Option<u64>,
    /// Show the events of the last so long, like 10m or 2h
    #[arg(long, value_name = "TIME", conflicts_with = "after")]
    pub(crate) since: Option<Span>,
    /// Number of an event: show what led to it, and what it led to, as a tree
    #[arg(
        long,
        value_name = "N",
        value_parser = number::whole::<u64>,
        conflicts_with_all = ["watch", "after", "since", "limit", "filter", "about"]
    )]
    pub(crate) chain: Option<u64>,
    /// Most events to print, 1 to 1000: the newest ones; 50 if absent, 1000 with --since
    #[arg(long, value_parser = number::between(1_u32, 1_000), value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Filter of the events, like 'kind in (node.up, node.unreachable) and subject =~ "^node/web-"'
    #[arg(short = 'l', long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Object that the events are about, with its parts: NAME, node/NAME, entity/NAME, rollout/ENTITY, target/ENTITY/NAME,
    /// service/NAME, cluster/NAME, ensemble/NAME, slot/NAME, freeze/NAME, pause/NAME, profile/NAME, filter/NAME or token/NAME; every object if absent
    #[arg(long, value_name = "SUBJECT")]
    pub(crate) about: Option<String>,
}
