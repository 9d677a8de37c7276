//! Schedules: workflows that run at times of a calendar. What a schedule is, is written by operations; when it is due next, and what
//! became of the last time, also by the leader, in the transaction that starts the run.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use crate::records::annotation::Annotation;
use crate::records::policy::Policy;
use crate::words::counter::ScheduleRevision;
use crate::words::cron::Cron;
use crate::words::label::Labels;
use crate::words::name::{EntityName, ScheduleName, WorkflowName};
use crate::words::time::{Span, Timestamp};
use crate::words::zone::Zone;

/// Most schedules of a namespace.
pub const MAX_SCHEDULES: usize = 1_000;

/// Default time after a due time within which its run is started.
pub const STARTING_DEADLINE: Span = Span::from_secs(60 * 60);

/// Shortest such time: a server that takes over the leadership needs some seconds.
pub const MIN_STARTING_DEADLINE: Span = Span::from_secs(10);

/// Longest such time.
pub const MAX_STARTING_DEADLINE: Span = Span::from_secs(7 * 24 * 60 * 60);

/// Longest text of what became of a due time, in bytes.
pub const MAX_OUTCOME_BYTES: usize = 1_024;

/// A workflow that runs at times of a calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Its name.
    pub name: ScheduleName,
    /// Number of the last change of what it is, from 1.
    pub revision: ScheduleRevision,
    /// The workflow that it runs.
    pub workflow: WorkflowName,
    /// Filter of the nodes that run it, as a text; evaluated at each due time. It was valid when it was written.
    pub filter: String,
    /// When it is due.
    pub cron: Cron,
    /// By the clocks of this zone.
    pub zone: Zone,
    /// How long after a due time its run is started at the latest.
    pub starting_deadline: Span,
    /// What happens at a due time while its last run is in progress.
    pub concurrency: Concurrency,
    /// Whether due times pass without a run.
    pub suspended: bool,
    /// The policy of its runs.
    pub policy: Policy,
    /// Labels given to it by `apply`, for pruning by them.
    pub labels: Labels,
    /// Who changed it last, when and why.
    pub annotation: Annotation,
    /// When it is due next; `None` while it is suspended, or if it never is again.
    pub next: Option<Timestamp>,
    /// When that was computed.
    pub planned_at: Timestamp,
    /// The run that it started last.
    pub last_run: Option<EntityName>,
    /// What became of the last time that it was due.
    pub last: Option<DueOutcome>,
}

/// What happens at a due time while the last run is in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Concurrency {
    /// The due time passes without a run.
    #[default]
    Forbid,
    /// Another run is started. A node that is in both begins it after the one before.
    Allow,
}

/// What became of a due time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueOutcome {
    /// The due time.
    pub due: Timestamp,
    /// What became of it.
    pub result: DueResult,
    /// The run, or the reason for none.
    pub text: String,
}

/// What became of a due time, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueResult {
    /// A run was started.
    Started,
    /// It passed without a run, as the schedule says.
    Skipped,
    /// No run could be started.
    Failed,
}

impl Schedule {
    /// The schedule, due next at the first time after this one.
    #[must_use]
    pub fn planned(self, now: Timestamp) -> Self {
        let next = if self.suspended { None } else { self.cron.after(&self.zone, now) };
        Self { next, planned_at: now, ..self }
    }

    /// The schedule after a due time, and the due times that it stands for.
    #[must_use]
    pub fn after(self, due: Timestamp, result: DueResult, text: String, now: Timestamp) -> Self {
        Self { last: Some(DueOutcome { due, result, text }), ..self }.planned(now.max(due))
    }
}

macro_rules! words {
    ($type:ident: $what:literal { $($variant:ident = $word:literal,)* }) => {
        impl $type {
            /// Its word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(alloc::format!(concat!("{:?} is not ", $what), text)),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    Concurrency: "forbid or allow" { Forbid = "forbid", Allow = "allow", }
}

words! {
    DueResult: "started, skipped or failed" { Started = "started", Skipped = "skipped", Failed = "failed", }
}
