//! Calls of hooks: the request bodies that the server sends to the controllers of a policy, and the answers
//! it reads.
//!
//! Unknown fields of an answer are ignored; a missing field makes the call fail.

pub mod answer;

use bellwether_core::records::hook_answers as core;
use serde::{Deserialize, Serialize};

use super::rollout::counts::TargetCounts;
use crate::word::words;

words! {
    /// The purpose of a hook.
    HookPurpose = core::HookPurpose {
        /// Which targets are updated next.
        Selection = "selection",
        /// Whether the selected targets may be updated.
        Approval = "approval",
        /// Whether single targets that soaked are healthy.
        Monitoring = "monitoring",
        /// Which targets may be removed once the version is good.
        Removal = "removal",
        /// Whether the rollout as a whole is healthy.
        Monitor = "monitor",
    }
}

macro_rules! questions {
    ($($(#[$doc:meta])* $type:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
        pub struct $type {
            /// The entity's namespace.
            pub namespace: String,
            /// The entity.
            pub entity: String,
            /// The rollout's number in the entity's history.
            pub rollout: u64,
            /// The version it moves targets to.
            pub version: String,
            /// The last known good version when the rollout started; absent if there was none.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub from: Option<String>,
            /// The purpose of this call.
            pub hook: HookPurpose,
            $($(#[$field_doc])* pub $field: $kind,)*
        }
    )*};
}

questions! {
    /// Asks which targets are updated next. Answered by [`HookSelected`].
    Select {
        /// How many targets were assigned the version so far; the hook is asked again after the next one.
        dispatched: u64,
        /// How many targets may be selected at most.
        limit: u64,
        /// Names of the targets to select from, in the order of the policy, at most 1,000.
        candidates: Vec<String>,
    }
    /// Asks whether targets may be updated. Answered by [`HookApproved`].
    Approve {
        /// How many targets were assigned the version so far, as in [`Select`].
        dispatched: u64,
        /// Names of the targets that would be updated.
        targets: Vec<String>,
    }
    /// Asks whether targets that soaked are healthy. Answered by [`HookJudged`].
    Judge {
        /// The targets, at most 1,000.
        targets: Vec<SoakedTarget>,
    }
    /// Asks to remove targets that do not run the version. Answered by [`HookRemoved`].
    Remove {
        /// Names of the targets that do not run the version, at most 1,000.
        targets: Vec<String>,
    }
    /// Asks whether the rollout as a whole is healthy. Answered by [`HookMonitored`].
    Watch {
        /// The number of targets in each state.
        counts: TargetCounts,
    }
}

/// A target that has soaked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SoakedTarget {
    /// Target name.
    pub name: String,
    /// The number of its assignment; a judgement counts for this assignment only.
    pub assignment: u64,
}

/// The targets that are updated next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookSelected {
    /// Names of candidates, at most `limit`, in the order in which they are updated; may be empty.
    pub targets: Vec<String>,
}

/// Whether the targets may be updated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookApproved {
    /// Whether the targets may be updated.
    pub approved: bool,
    /// The reason, one line.
    #[serde(default)]
    pub reason: String,
}

/// Judgements of single targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookJudged {
    /// The targets that can be judged; the hook is asked again about the others.
    pub targets: Vec<HookJudgedTarget>,
}

/// The judgement of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookJudgedTarget {
    /// Target name.
    pub name: String,
    /// Whether the target is healthy; `false` fails it.
    pub healthy: bool,
    /// The reason, one line.
    #[serde(default)]
    pub reason: String,
}

/// The targets that were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookRemoved {
    /// Target names.
    pub removed: Vec<String>,
}

/// The judgement of the rollout as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookMonitored {
    /// Whether the rollout is healthy; enough unhealthy answers in a row make the version bad.
    pub healthy: bool,
    /// The reason, one line.
    #[serde(default)]
    pub reason: String,
}
