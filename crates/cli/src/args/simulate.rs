//! `simulate` as typed.

use std::path::PathBuf;

use bellwether_core::words::time::Span;

use crate::simulation::faults::{Mix, Share};
use crate::simulation::policies::{NamedPolicy, named};
use crate::simulation::spread::Distribution;

/// Most nodes of a simulated fleet: what the engine is built to decide.
pub(crate) const MAX_NODES: u32 = 1_000_000;

/// Most runs: percentiles of more are no more exact.
const MAX_RUNS: u32 = 10_000;

/// Most zones: beyond that a zone is as small as a node.
const MAX_ZONES: u32 = 1_000;

/// A simulated fleet and its faults.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Simulate {
    /// Number of nodes, up to 1000000
    #[arg(long, default_value = "1000", value_parser = nodes, value_name = "N")]
    pub(crate) nodes: u32,
    /// Policy to simulate, like 'batch=5% soak=60s', or named, like careful:'batch=1%'; may be repeated to compare
    #[arg(long = "policy", value_parser = named, value_name = "[NAME:]FIELDS")]
    pub(crate) policies: Vec<NamedPolicy>,
    /// TOML, YAML or JSON file with one policy, or with several by name; may be repeated
    #[arg(long = "policy-file", value_name = "FILE")]
    pub(crate) policy_files: Vec<PathBuf>,
    /// Time that a node needs to apply a version: 30s, 10s..60s, exp:30s, normal:30s±5s or lognormal:30s±20s
    #[arg(long, default_value = "30s", value_name = "SPREAD")]
    pub(crate) apply_time: Distribution,
    /// Share of nodes that fail at random on the new version, like 0.5%; a policy with retries retries them
    #[arg(long, default_value = "0%", value_name = "SHARE")]
    pub(crate) failure_rate: Share,
    /// Share of nodes on which the new version fails at every attempt; 100% if given without a share
    #[arg(long, default_value = "0%", default_missing_value = "100%", num_args = 0..=1, value_name = "SHARE")]
    pub(crate) bad: Share,
    /// Failure modes: apply, check, soak, hang or silent; several with weights, like apply=3,soak=1
    #[arg(long, default_value = "apply,check,soak", value_name = "MODES")]
    pub(crate) failure_mode: Mix,
    /// Time into the soak at which a failure appears, like exp:10m; uniform within the soak if absent
    #[arg(long, value_name = "SPREAD")]
    pub(crate) late: Option<Distribution>,
    /// Share of nodes that are unreachable
    #[arg(long, default_value = "0%", value_name = "SHARE")]
    pub(crate) unreachable_rate: Share,
    /// Number of zones that the nodes are spread over, labelled zone=z1 and so on
    #[arg(long, default_value = "1", value_parser = zones, value_name = "N")]
    pub(crate) zones: u32,
    /// Number of runs, each with other random faults
    #[arg(long, default_value = "1", value_parser = runs, value_name = "N")]
    pub(crate) runs: u32,
    /// Seed of the random faults: the same seed gives the same result
    #[arg(long, default_value = "1", value_parser = seed, value_name = "N")]
    pub(crate) seed: u64,
    /// End of the simulation, in the fleet's time
    #[arg(long, default_value = "30d", value_parser = until, value_name = "TIME")]
    pub(crate) until: Span,
    /// File for a plot of the share of nodes on the new version over time
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
    let span: Span = text.parse().map_err(|_| "write a duration, like 12h or 30d".to_owned())?;
    let year = Span::from_secs(31_536_000);
    let fits = span > Span::ZERO && span <= year;
    if fits { Ok(span) } else { Err("write a duration from 1ms to one year, like 30d".to_owned()) }
}
