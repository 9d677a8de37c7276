//! The policy flags. What they mean is core's.

/// Policy fields; a field that is not given keeps its value, or takes its default. An empty value unsets a field.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Policy options")]
pub(crate) struct PolicyFlags {
    /// Most targets in flight at once: a share like 5%, or a count; 0 stops
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) batch: Option<String>,
    /// Caps of the stages: 1,5%,"25% approve",100%
    #[arg(long, value_delimiter = ',', value_name = "STAGE")]
    pub(crate) stages: Option<Vec<String>>,
    /// Most targets in flight, broken or unreachable together, per fleet and per domain
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) max_unavailable: Option<String>,
    /// Share of targets that must succeed
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) success: Option<String>,
    /// Failures tolerated; one more and the version is bad
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) failures: Option<String>,
    /// Unreachable targets tolerated before the rollout pauses
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) unreachable: Option<String>,
    /// Healthy time before a target counts as succeeded
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) soak: Option<String>,
    /// Time from assignment to success, after which a target is failed
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) deadline: Option<String>,
    /// Time within which another target must succeed, else the version is bad
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) progress: Option<String>,
    /// Fail a target at its first error: true or false
    #[arg(long, value_name = "BOOL")]
    pub(crate) fail_fast: Option<String>,
    /// Further attempts before a target is failed
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) retries: Option<String>,
    /// Label whose values are updated one after the other: zone, or zone:b,a to name the first ones
    #[arg(long, value_name = "LABEL")]
    pub(crate) domain: Option<String>,
    /// Order of the targets: name, label:KEY, shuffle:SEED, or followers-first, which needs --store
    #[arg(long)]
    pub(crate) order: Option<String>,
    /// Probe of the data stores on the targets, like db, for --order followers-first and --quorum
    #[arg(long, value_name = "PROBE")]
    pub(crate) store: Option<String>,
    /// Start no target without which its cluster of data stores would have no quorum: true or false
    #[arg(long, value_name = "BOOL")]
    pub(crate) quorum: Option<String>,
    /// Time window in which targets start updating: "Mon..Fri 22:00-04:00 Europe/Berlin"; may be repeated
    #[arg(long, value_name = "WINDOW")]
    pub(crate) windows: Option<Vec<String>>,
    /// Service that must be functional before a target starts updating: db, or "2 of db"; may be repeated
    #[arg(long, value_name = "NEED")]
    pub(crate) needs: Option<Vec<String>>,
    /// Response to a bad version: rollback, pause or continue
    #[arg(long, value_name = "RESPONSE")]
    pub(crate) on_failure: Option<String>,
    /// Most targets in flight during a rollback
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) rollback: Option<String>,
    /// Effect of a new version on a rollout under way: replace, finish or refuse
    #[arg(long, value_name = "EFFECT")]
    pub(crate) supersede: Option<String>,
    /// Time after success in which a target's failure is still reported as the version's
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) settle: Option<String>,
    /// Policy fields to unset, like windows,needs: they take their defaults
    #[arg(long, value_delimiter = ',', value_name = "FIELD")]
    pub(crate) unset: Vec<String>,
}
