//! What the controllers of a policy are asked, and what they answer: the bodies of the calls that the server makes.
//!
//! An answer may say more than what is read here; what is missing in it is trouble.

use serde::{Deserialize, Serialize};

use super::rollout::TargetCounts;

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
            /// What was last known good when it started.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub from: Option<String>,
            /// Which hook this is: `selection`, `approval`, `monitoring`, `removal`, `monitor`.
            pub hook: String,
            $($(#[$field_doc])* pub $field: $kind,)*
        }
    )*};
}

questions! {
    /// Who is next. Answered by [`HookSelected`].
    Select {
        /// How many targets had their turn; it is asked again when another has.
        turned: u64,
        /// How many may be chosen.
        room: u64,
        /// Among whom, in the policy's order, at most 1000.
        candidates: Vec<String>,
    }
    /// Whether these may be told. Answered by [`HookApproved`].
    Approve {
        /// As in [`Select`].
        turned: u64,
        /// Who would be told.
        targets: Vec<String>,
    }
    /// How these do, which have soaked. Answered by [`HookJudged`].
    Judge {
        /// Who, at most 1000.
        targets: Vec<SoakedTarget>,
    }
    /// Which of these may go. Answered by [`HookRemoved`].
    Remove {
        /// Who does not run the version, at most 1000.
        targets: Vec<String>,
    }
    /// How the rollout does as a whole. Answered by [`HookMonitored`].
    Watch {
        /// How its targets stand.
        counts: TargetCounts,
    }
}

/// A target that has soaked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SoakedTarget {
    /// Its name.
    pub name: String,
    /// The number of its assignment: another one is another turn.
    pub assignment: u64,
}

/// Who is next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookSelected {
    /// Candidates, at most as many as there is room for, in this order; nobody is an answer too.
    pub targets: Vec<String>,
}

/// Whether they may be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookApproved {
    /// Whether they may.
    pub approved: bool,
    /// Why, in one line.
    #[serde(default)]
    pub reason: String,
}

/// How targets do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookJudged {
    /// Those that can be judged; the others are asked about again.
    pub targets: Vec<HookJudgedTarget>,
}

/// How a target does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookJudgedTarget {
    /// Its name.
    pub name: String,
    /// Whether it does well.
    pub well: bool,
    /// Why, in one line.
    #[serde(default)]
    pub reason: String,
}

/// Who was taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookRemoved {
    /// Their names.
    pub removed: Vec<String>,
}

/// How the rollout does as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HookMonitored {
    /// Whether it does well.
    pub well: bool,
    /// Why, in one line.
    #[serde(default)]
    pub reason: String,
}
