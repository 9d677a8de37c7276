//! One call of a hook: which hook, for which rollout, and the question.

use bellwether_core::records::hook_answers::HookPurpose;
use bellwether_core::records::policy::hook::{Hook, MonitorSource};
use bellwether_core::rollout::hook_answer::HookAnswer;
use bellwether_core::rollout::hook_question::HookQuestion;
use bellwether_core::words::counter::RolloutNumber;
use bellwether_core::words::name::{EntityName, Namespace};
use bellwether_core::words::version::Version;

/// The hook of an entity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HookCallKey {
    pub(super) namespace: Namespace,
    pub(super) entity: EntityName,
    pub(super) asked: HookPurpose,
}

/// A question to a hook.
#[derive(Debug, Clone)]
pub(super) struct HookCallSpec {
    pub(super) key: HookCallKey,
    pub(super) rollout: RolloutNumber,
    pub(super) versions: RolloutSubject,
    pub(super) hook: Hook,
    /// Where the answer comes from: the hook itself, or a Prometheus query.
    pub(super) source: MonitorSource,
    pub(super) question: HookQuestion,
}

/// The versions of a rollout.
#[derive(Debug, Clone)]
pub(super) struct RolloutSubject {
    pub(super) version: Version,
    pub(super) from: Option<Version>,
}

/// A question with its answer.
#[derive(Debug)]
pub(super) struct FinishedCall {
    pub(super) spec: HookCallSpec,
    pub(super) answer: HookAnswer,
}
