//! The flags that say how carefully targets change. What they mean is core's.

use bellwether_api::v1::policy::{OnFailure, Supersede};

/// How carefully targets change; what is not given keeps its value, or its default.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyFlags {
    /// Most targets in flight at once: 5%, or a count; 0 holds
    #[arg(long)]
    pub(crate) batch: Option<String>,
    /// How far it goes before the next stage: 1,5%,"25% approve",100%
    #[arg(long, value_delimiter = ',')]
    pub(crate) stages: Option<Vec<String>>,
    /// Most targets in flight, broken or unreachable together, per fleet and per domain
    #[arg(long)]
    pub(crate) max_unavailable: Option<String>,
    /// Share of targets that must succeed
    #[arg(long)]
    pub(crate) success: Option<String>,
    /// Failures tolerated; one more and the version is bad
    #[arg(long)]
    pub(crate) failures: Option<String>,
    /// Silent targets tolerated before the rollout pauses
    #[arg(long)]
    pub(crate) unreachable: Option<String>,
    /// Healthy time before a target counts
    #[arg(long)]
    pub(crate) soak: Option<String>,
    /// Time from being told to success, else failed
    #[arg(long)]
    pub(crate) deadline: Option<String>,
    /// Within this a target must be gained, else the version is bad
    #[arg(long)]
    pub(crate) progress: Option<String>,
    /// Whether an error fails a target at once
    #[arg(long)]
    pub(crate) fail_fast: Option<bool>,
    /// Further attempts before a target is failed
    #[arg(long)]
    pub(crate) retries: Option<u32>,
    /// The label whose values change one after the other: zone, or zone:b,a for those that come first
    #[arg(long)]
    pub(crate) domain: Option<String>,
    /// Who is next: name, label:KEY or shuffle:SEED
    #[arg(long)]
    pub(crate) order: Option<String>,
    /// When turns are handed out: "Mon..Fri 22:00-04:00 Europe/Berlin"; may be given again
    #[arg(long, value_name = "WINDOW")]
    pub(crate) windows: Option<Vec<String>>,
    /// A service that must be functional for the next turn: db, or "2 of db"; may be given again
    #[arg(long, value_name = "NEED")]
    pub(crate) needs: Option<Vec<String>>,
    /// rollback, pause or continue
    #[arg(long)]
    pub(crate) on_failure: Option<OnFailure>,
    /// Most targets in flight on the way back
    #[arg(long)]
    pub(crate) rollback: Option<String>,
    /// What a new version does to a rollout under way: replace, finish or refuse
    #[arg(long)]
    pub(crate) supersede: Option<Supersede>,
    /// How long after its success a target's failure is still told as the version's
    #[arg(long)]
    pub(crate) settle: Option<String>,
}
