//! Hook answers: from a controller's answer, or its absence, to the stored record. An answer that is not
//! valid is stored as an error, with its reason, and otherwise ignored.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::board::Board;
use super::hook_question::HookQuestion;
use crate::records::hook_answers::MonitorReport;
use crate::records::hook_answers::{HookAnswers, HookApproval, HookError, HookSelection, RolloutJudgement};
use crate::words::name::TargetName;
use crate::words::plural::plural;
use crate::words::time::Timestamp;

/// Longest stored reason, in characters.
const MAX_REASON: usize = 200;

/// The answer to a question to a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAnswer {
    /// The targets to update next, in this order; may be empty.
    Selected(Vec<TargetName>),
    /// Whether the targets of the question may start.
    Approved {
        /// Whether they may start.
        approved: bool,
        /// The reason, in one line; may be empty.
        reason: String,
    },
    /// Judgements of targets; the hook is asked again about those left out.
    Judged(Vec<TargetJudgement>),
    /// The targets that were removed. Removing them from the entity is up to the caller.
    Removed(Vec<TargetName>),
    /// Judgement of the rollout as a whole.
    Watched {
        /// Whether it is healthy.
        well: bool,
        /// The reason, in one line; may be empty.
        reason: String,
    },
    /// No answer, or none that is valid.
    Silent {
        /// The error, and what happened instead, in one line.
        reason: String,
    },
}

/// A question to a hook, with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredQuestion<'a> {
    /// The question.
    pub question: &'a HookQuestion,
    /// The answer, or the reason that there is none.
    pub answer: HookAnswer,
}

/// A hook's judgement of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetJudgement {
    /// Name of the target.
    pub target: TargetName,
    /// Whether it is healthy.
    pub well: bool,
    /// The reason, in one line; may be empty.
    pub reason: String,
}

/// The record of hook answers after `question` about the board's rollout was answered.
#[must_use]
pub fn absorb(
    board: &Board,
    known: &HookAnswers,
    question: &HookQuestion,
    answer: HookAnswer,
    now: Timestamp,
) -> HookAnswers {
    let Some(number) = board.rollout().map(|rollout| rollout.number) else { return known.clone() };
    let mut answers = if known.rollout == number { known.clone() } else { HookAnswers::default() };
    answers.rollout = number;
    let in_flight = |name: &TargetName| board.target(name).and_then(|target| target.state);
    answers.words.retain(|name, word| {
        in_flight(name).is_some_and(|state| state.is_in_flight() && state.assignment == word.assignment)
    });
    match take(&mut answers, question, answer, now) {
        Ok(()) => drop(answers.troubles.remove(&question.asked())),
        Err(reason) => {
            let trouble = HookError { since: now, reason: short(&reason) };
            let kept = answers.troubles.entry(question.asked()).or_insert(trouble);
            kept.reason = short(&reason);
        }
    }
    answers
}

fn take(
    answers: &mut HookAnswers,
    question: &HookQuestion,
    answer: HookAnswer,
    at: Timestamp,
) -> Result<(), String> {
    match (question, answer) {
        (_, HookAnswer::Silent { reason }) => return Err(reason),
        (HookQuestion::Selection { turned, room, candidates }, HookAnswer::Selected(targets)) => {
            if u64::try_from(targets.len()).is_ok_and(|count| count > *room) {
                return Err(format!("chose {}, at most {room} allowed", plural(targets.len(), "target")));
            }
            named_among(&targets, candidates)?;
            answers.selection = Some(HookSelection { turned: *turned, targets, at });
        }
        (HookQuestion::Approval { turned, targets }, HookAnswer::Approved { approved, reason }) => {
            let (turned, targets, reason) = (*turned, targets.clone(), short(&reason));
            answers.approval = Some(HookApproval { turned, targets, approved, reason, at });
        }
        (HookQuestion::Monitoring { targets }, HookAnswer::Judged(judged)) => {
            for TargetJudgement { target, well, reason } in judged {
                let asked = targets.iter().find(|(name, _)| *name == target);
                let (_, assignment) =
                    asked.ok_or_else(|| format!("judged {target}, which is not in the question"))?;
                let word =
                    MonitorReport { assignment: *assignment, well, reason: Arc::from(&*short(&reason)) };
                answers.words.insert(target, word);
            }
        }
        (HookQuestion::Removal { targets }, HookAnswer::Removed(gone)) => named_among(&gone, targets)?,
        (HookQuestion::Monitor { .. }, HookAnswer::Watched { well, reason }) => {
            let before = answers.monitor.as_ref().map_or(0, |judgement| judgement.failing);
            let failing = if well { 0 } else { before.saturating_add(1) };
            answers.monitor = Some(RolloutJudgement { failing, reason: short(&reason), at });
        }
        (
            HookQuestion::Selection { .. }
            | HookQuestion::Approval { .. }
            | HookQuestion::Monitoring { .. }
            | HookQuestion::Removal { .. }
            | HookQuestion::Monitor { .. },
            _,
        ) => return Err("answered a different question".into()),
    }
    Ok(())
}

/// Checks that the names of an answer are among those of its question.
fn named_among(names: &[TargetName], asked: &[TargetName]) -> Result<(), String> {
    match names.iter().find(|name| !asked.contains(name)) {
        Some(stranger) => Err(format!("named {stranger}, which is not in the question")),
        None => Ok(()),
    }
}

fn short(reason: &str) -> String {
    reason.lines().next().unwrap_or_default().chars().take(MAX_REASON).collect()
}
