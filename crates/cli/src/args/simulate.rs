//! `simulate` as typed.

use std::path::PathBuf;

use bellwether_core::words::time::Span;

use crate::commands::simulate::faults::{Mix, Share};
use crate::commands::simulate::policies::{NamedPolicy, named};
use crate::commands::simulate::spread::Distribution;

/// Most nodes of a made-up fleet: what the engine is built to decide.
pub(crate) const MAX_NODES: u32 = 1_000_000;

/// Most runs: percentiles of more say nothing new.
const MAX_RUNS: u32 = 10_000;

/// Most zones: labels beyond that are names.
const MAX_ZONES: u32 = 1_000;

/// A made-up fleet, and what befalls it.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Simulate {
    /// How many nodes, up to 1000000
    #[arg(long, default_value = "1000", value_parser = nodes, value_name = "N")]
    pub(crate) nodes: u32,
    /// A policy to try, like 'batch=5% soak=60s', or with a name, like careful:'batch=1%'; may be given again to compare
    #[arg(long = "policy", value_parser = named, value_name = "[NAME:]FIELDS")]
    pub(crate) policies: Vec<NamedPolicy>,
    /// A TOML, YAML or JSON file with a policy, or with several by name; may be given again
    #[arg(long = "policy-file", value_name = "FILE")]
    pub(crate) policy_files: Vec<PathBuf>,
    /// How long a node takes to run a version: 30s, 10s..60s, exp:30s, normal:30s±5s or lognormal:30s±20s
    #[arg(long, default_value = "30s", value_name = "SPREAD")]
    pub(crate) apply_time: Distribution,
    /// Share of nodes that fail on the new version by bad luck, like 0.5%; with retries in the policy they try again
    #[arg(long, default_value = "0%", value_name = "SHARE")]
    pub(crate) failure_rate: Share,
    /// The new version is bad: it fails on this share of nodes, on every attempt; on all of them if no share is given
    #[arg(long, default_value = "0%", default_missing_value = "100%", num_args = 0..=1, value_name = "SHARE")]
    pub(crate) bad: Share,
    /// How nodes fail: apply, check, soak, hang, silent, or several with weights, like apply=3,soak=1
    #[arg(long, default_value = "apply,check,soak", value_name = "MODES")]
    pub(crate) failure_mode: Mix,
    /// How late a failure in the soak shows itself, like exp:10m; somewhere within the soak if absent
    #[arg(long, value_name = "SPREAD")]
    pub(crate) late: Option<Distribution>,
    /// Share of nodes that are not heard from
    #[arg(long, default_value = "0%", value_name = "SHARE")]
    pub(crate) unreachable_rate: Share,
    /// Spread the nodes over this many zones, labelled zone=z1 and so on
    #[arg(long, default_value = "1", value_parser = zones, value_name = "K")]
    pub(crate) zones: u32,
    /// How often to play it, each time with other luck
    #[arg(long, default_value = "1", value_parser = runs, value_name = "R")]
    pub(crate) runs: u32,
    /// Draws the luck: the same seed gives the same answer
    #[arg(long, default_value = "1", value_parser = seed, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// How far to look, in the fleet's time
    #[arg(long, default_value = "30d", value_parser = until, value_name = "TIME")]
    pub(crate) until: Span,
    /// Write a plot to this file: the share of nodes on the new version over time
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

fn nodes(text: &str) -> Result<u32, String> {
    count(text, MAX_NODES)
}

fn runs(text: &str) -> Result<u32, String> {
    count(text, MAX_RUNS)
}

fn zones(text: &str) -> Result<u32, String> {
    count(text, MAX_ZONES)
}

fn count(text: &str, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("write a whole number from 1 to {most}, like {}", most.min(100)))
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}, like 7", u64::MAX))
}

fn until(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|_| "write a length of time, like 12h or 30d".to_owned())?;
    let year = Span::from_secs(31_536_000);
    let fits = span > Span::ZERO && span <= year;
    if fits { Ok(span) } else { Err("look at least 1ms and at most a year ahead, like 30d".to_owned()) }
}
