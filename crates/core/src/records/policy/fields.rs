//! The fields of a policy and their limits.

use alloc::vec::Vec;

use crate::records::policy::choice::{OnFailure, Supersede};
use crate::records::policy::hook::{Hooks, Monitor};
use crate::records::policy::ordering::{Domain, PolicyStage, ServiceNeed, TargetOrder};
use crate::words::name::ProbeName;
use crate::words::percent::{Amount, Percent};
use crate::words::time::Span;
use crate::words::window::Window;

/// The fields of a policy, every default filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFields {
    /// As in [`PolicyDraft::batch`](super::PolicyDraft::batch).
    pub batch: Amount,
    /// As in [`PolicyDraft::stages`](super::PolicyDraft::stages); empty means a single stage with every
    /// target.
    pub stages: Vec<PolicyStage>,
    /// As in [`PolicyDraft::max_unavailable`](super::PolicyDraft::max_unavailable).
    pub max_unavailable: Option<Amount>,
    /// As in [`PolicyDraft::success`](super::PolicyDraft::success).
    pub success: Percent,
    /// As in [`PolicyDraft::failures`](super::PolicyDraft::failures).
    pub failures: Option<Amount>,
    /// As in [`PolicyDraft::unreachable`](super::PolicyDraft::unreachable).
    pub unreachable: Amount,
    /// As in [`PolicyDraft::soak`](super::PolicyDraft::soak).
    pub soak: Span,
    /// As in [`PolicyDraft::deadline`](super::PolicyDraft::deadline).
    pub deadline: Span,
    /// As in [`PolicyDraft::progress`](super::PolicyDraft::progress).
    pub progress: Option<Span>,
    /// As in [`PolicyDraft::fail_fast`](super::PolicyDraft::fail_fast).
    pub fail_fast: bool,
    /// As in [`PolicyDraft::retries`](super::PolicyDraft::retries).
    pub retries: u32,
    /// As in [`PolicyDraft::domain`](super::PolicyDraft::domain).
    pub domain: Option<Domain>,
    /// As in [`PolicyDraft::order`](super::PolicyDraft::order).
    pub order: TargetOrder,
    /// As in [`PolicyDraft::store`](super::PolicyDraft::store).
    pub store: Option<ProbeName>,
    /// As in [`PolicyDraft::quorum`](super::PolicyDraft::quorum).
    pub quorum: bool,
    /// As in [`PolicyDraft::windows`](super::PolicyDraft::windows).
    pub windows: Vec<Window>,
    /// As in [`PolicyDraft::needs`](super::PolicyDraft::needs).
    pub needs: Vec<ServiceNeed>,
    /// As in [`PolicyDraft::monitor`](super::PolicyDraft::monitor).
    pub monitor: Option<Monitor>,
    /// As in [`PolicyDraft::hooks`](super::PolicyDraft::hooks).
    pub hooks: Hooks,
    /// As in [`PolicyDraft::on_failure`](super::PolicyDraft::on_failure).
    pub on_failure: OnFailure,
    /// As in [`PolicyDraft::rollback`](super::PolicyDraft::rollback).
    pub rollback: Amount,
    /// As in [`PolicyDraft::supersede`](super::PolicyDraft::supersede).
    pub supersede: Supersede,
    /// As in [`PolicyDraft::settle`](super::PolicyDraft::settle).
    pub settle: Span,
}

/// Most apply attempts after the first: more would be a loop.
pub const MAX_RETRIES: u32 = 100;

/// Longest soak or deadline: a year. Longer is a typing error.
pub const MAX_SPAN: Span = Span::from_secs(31_536_000);

/// Most stages, windows or needs of one policy: more is unreadable for people.
pub const MAX_LISTED: usize = 32;
