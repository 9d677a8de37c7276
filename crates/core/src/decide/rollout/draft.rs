//! Drafts of progress and the rollout in progress. Owns how the one follows from the other.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::event_text;
use crate::records::entity::{RequestKind, VersionRequest};
use crate::records::event::EventDraft;
use crate::records::policy::Policy;
use crate::records::progress::{BadVersion, MAX_BAD, Progress, RolloutActivity};
use crate::records::rollout::{
    Direction, Rollout, RolloutState, StageProgress, TargetCounts, VersionJudgement, WaivedPauses,
};
use crate::rollout::board::Board;
use crate::words::name::EntityName;
use crate::words::time::Timestamp;
use crate::words::version::Version;

/// Progress and the rollout in progress, while they are being changed.
pub(super) struct RolloutDraft {
    pub(super) now: Timestamp,
    pub(super) progress: Arc<Progress>,
    pub(super) rollout: Option<Arc<Rollout>>,
    /// Rollouts that reached a final state.
    pub(super) ended: Vec<Arc<Rollout>>,
    pub(super) events: Vec<EventDraft>,
    entity: EntityName,
    counts: Option<TargetCounts>,
}

impl RolloutDraft {
    /// The draft of a board. Progress that a crash left behind its rollout is corrected.
    pub(super) fn of(board: &Board, now: Timestamp) -> Self {
        let counts = board.frame().rolling.as_ref().map(|_| board.counts());
        let active = board.progress().active();
        let rollout = board.shared_rollout().filter(|rollout| active == Some(rollout.number));
        let entity = board.entity().name.clone();
        let (ended, events) = (Vec::new(), Vec::new());
        let mut draft =
            Self { now, progress: board.shared_progress(), rollout, ended, events, entity, counts };
        draft.level();
        draft
    }

    /// Changes progress, if that makes a difference.
    pub(super) fn change_progress(&mut self, change: impl FnOnce(&mut Progress)) {
        let mut progress = (*self.progress).clone();
        change(&mut progress);
        if progress != *self.progress {
            self.progress = Arc::new(progress);
        }
    }

    /// Changes the rollout in progress, and updates its counts.
    pub(super) fn change_rollout(&mut self, change: impl FnOnce(&mut Rollout)) {
        let counts = self.counts;
        if let Some(rollout) = &mut self.rollout {
            let rollout = Arc::make_mut(rollout);
            change(rollout);
            rollout.counts = counts.unwrap_or(rollout.counts);
        }
        self.level();
    }

    /// Moves the rollout in progress to a state, with an event, if it is in another.
    pub(super) fn turn_to(&mut self, state: RolloutState, cause: String) {
        let Some(rollout) = self.rollout.clone().filter(|rollout| rollout.state != state) else { return };
        if let Some(kind) = event_text::kind_of_turn(&rollout.state, &state) {
            // Why it waits or is paused is the cause, and stands in the event once.
            let after = state.details().map_or_else(|| state.to_string(), |_| state.label().to_string());
            let (before, after) = (Some(rollout.state.label().to_string()), Some(after));
            let cause = match state.details() {
                Some(details) if cause == state.to_string() => details,
                Some(_) | None => cause,
            };
            let subject = event_text::rollout(&self.entity, rollout.number);
            self.events.push(EventDraft { kind, subject, before, after, cause });
        }
        let ended = state.is_final().then_some(self.now);
        self.change_rollout(|rollout| {
            rollout.state = state;
            rollout.ended = ended;
        });
    }

    /// Judges the version of the rollout in progress good.
    pub(super) fn call_good(&mut self, cause: String) {
        let before = self.progress.last_known_good.as_ref().map(ToString::to_string);
        self.tell_slot("rollout.known_good", before, cause);
        let at = self.now;
        self.change_rollout(|rollout| rollout.judgement = VersionJudgement::Good { at });
    }

    /// Judges the version of the rollout in progress bad.
    pub(super) fn call_bad(&mut self, reason: String) {
        self.tell_slot("rollout.known_bad", None, reason.clone());
        let at = self.now;
        self.change_rollout(|rollout| rollout.judgement = VersionJudgement::Bad { at, reason });
    }

    fn tell_slot(&mut self, kind: &'static str, before: Option<String>, cause: String) {
        if let Some(rollout) = &self.rollout {
            let subject = event_text::rollout(&self.entity, rollout.number);
            let after = Some(rollout.version.to_string());
            self.events.push(EventDraft { kind, subject, before, after, cause });
        }
    }

    /// Adds an event about the rollout in progress that changes no state.
    pub(super) fn tell(&mut self, kind: &'static str, cause: String) {
        if let Some(rollout) = &self.rollout {
            let subject = event_text::rollout(&self.entity, rollout.number);
            self.events.push(EventDraft { kind, subject, before: None, after: None, cause });
        }
    }

    /// Adds an event that a request was refused.
    pub(super) fn tell_refused(&mut self, wanted: &VersionRequest, cause: String) {
        let subject = event_text::entity(&self.entity);
        let after = Some(wanted.version.to_string());
        self.events.push(EventDraft { kind: "rollout.refused", subject, before: None, after, cause });
    }

    /// Starts the rollout of a request; an undo rolls back from its start.
    pub(super) fn start(&mut self, wanted: &VersionRequest, policy: Policy, from: Option<Version>) {
        let number = self.progress.last.next();
        let is_good = self.progress.last_known_good.as_ref() == Some(&wanted.version);
        let undo = wanted.how == RequestKind::Undo && is_good;
        let cause = match (wanted.how, wanted.annotation.reason.is_empty()) {
            (how, true) => format!("{how} of {} by {}", wanted.version, wanted.annotation.by),
            (how, false) => format!(
                "{how} of {} by {}: {}",
                wanted.version, wanted.annotation.by, wanted.annotation.reason
            ),
        };
        let direction = Direction::RollbackByUndo {
            by: wanted.annotation.by.clone(),
            reason: wanted.annotation.reason.clone(),
        };
        let rollout = Rollout {
            number,
            request: wanted.request,
            version: wanted.version.clone(),
            from,
            how: wanted.how,
            by: wanted.annotation.by.clone(),
            reason: wanted.annotation.reason.clone(),
            policy,
            started: self.now,
            ended: None,
            state: if undo { RolloutState::RollingBack } else { RolloutState::InProgress },
            direction: if undo { direction } else { Direction::Forward },
            judgement: if is_good { VersionJudgement::Good { at: self.now } } else { VersionJudgement::Open },
            waived: WaivedPauses::default(),
            stage: StageProgress::default(),
            peak: None,
            enrolled: 0,
            counts: TargetCounts::default(),
            batches: Vec::new(),
            failures: Vec::new(),
        };
        self.counts = None;
        self.rollout = Some(Arc::new(rollout));
        self.tell("rollout.started", cause);
        let request = wanted.request;
        self.change_progress(|progress| {
            progress.last = number;
            progress.handled = request;
            progress.activity = RolloutActivity::RollingForward(number);
        });
        self.level();
    }

    /// Sets the progress that follows from the rollout in progress; releases the rollout when it is over.
    fn level(&mut self) {
        let Some(rollout) = self.rollout.clone() else { return };
        let now = self.now;
        self.change_progress(|progress| {
            follow_judgement(progress, &rollout);
            progress.activity = activity(&rollout);
            progress.rolling = match progress.activity {
                RolloutActivity::Settled | RolloutActivity::Abandoned | RolloutActivity::Continued => None,
                RolloutActivity::RollingForward(_) => Some(rollout.version.clone()),
                RolloutActivity::RollingBack(_) => progress.last_known_good.clone(),
            };
            progress.clock = progress.clock.turned(matches!(rollout.state, RolloutState::Paused(_)), now);
        });
        if rollout.is_over() {
            self.ended.push(rollout);
            self.rollout = None;
        }
    }
}

/// Updates known good and known bad versions from the judgement of the rolling version.
fn follow_judgement(progress: &mut Progress, rollout: &Rollout) {
    let is_bad = matches!(rollout.judgement, VersionJudgement::Bad { .. });
    if !is_bad {
        progress.bad.retain(|bad| bad.version != rollout.version);
    }
    match &rollout.judgement {
        VersionJudgement::Open => {}
        VersionJudgement::Good { .. } => progress.last_known_good = Some(rollout.version.clone()),
        VersionJudgement::Bad { at, reason } => {
            if progress.bad(&rollout.version).is_none() {
                let (version, reason) = (rollout.version.clone(), reason.clone());
                progress.bad.push(BadVersion { version, at: *at, rollout: rollout.number, reason });
            }
            let surplus = progress.bad.len().saturating_sub(MAX_BAD);
            progress.bad.drain(..surplus);
        }
    }
}

const fn activity(rollout: &Rollout) -> RolloutActivity {
    match (&rollout.state, &rollout.direction, &rollout.judgement) {
        (
            RolloutState::InProgress
            | RolloutState::Waiting(_)
            | RolloutState::Paused(_)
            | RolloutState::RollingBack,
            Direction::Forward,
            _,
        ) => RolloutActivity::RollingForward(rollout.number),
        (
            RolloutState::InProgress
            | RolloutState::Waiting(_)
            | RolloutState::Paused(_)
            | RolloutState::RollingBack,
            _,
            _,
        ) => RolloutActivity::RollingBack(rollout.number),
        (
            RolloutState::Succeeded | RolloutState::PartiallySucceeded { .. },
            _,
            VersionJudgement::Good { .. },
        ) => RolloutActivity::Settled,
        (RolloutState::RolledBack | RolloutState::RollbackFailed { .. }, _, _) => RolloutActivity::Settled,
        (RolloutState::Failed { .. }, _, _) => RolloutActivity::Continued,
        (
            RolloutState::Succeeded
            | RolloutState::PartiallySucceeded { .. }
            | RolloutState::Aborted { .. }
            | RolloutState::Superseded { .. },
            _,
            _,
        ) => RolloutActivity::Abandoned,
    }
}
