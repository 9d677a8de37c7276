//! What a schedule is to do now: start a run, pass a due time over, or wait.
//!
//! Only the last of several due times that were missed gets a run, and only within the starting deadline. Nothing is started for a
//! time that was handled: the record has the next one, written in the transaction that starts the run.

use alloc::format;
use alloc::string::String;

use crate::records::schedule::{Concurrency, DueResult, Schedule};
use crate::words::name::ScheduleName;
use crate::words::time::{Span, Timestamp};
use crate::world::fleet::Fleet;

/// How far the clock of a leader may be behind that of the one before. Beyond it, next times that the former one computed are computed
/// again: with a clock that was years ahead, it would never come to them.
const CLOCK_TOLERANCE: Span = Span::from_secs(60 * 60);

/// What is to happen with a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Nothing.
    Wait,
    /// Its next time is computed again: the clock was set back since.
    Plan(Schedule),
    /// A due time passes without a run.
    Skip(Schedule),
    /// A run is started for this due time.
    Start(Timestamp),
}

/// The schedule of a namespace that has a turn now, if one has; and when the next one has, otherwise.
#[must_use]
pub fn first(fleet: &Fleet, now: Timestamp) -> (Option<&ScheduleName>, Option<Timestamp>) {
    let index = &fleet.schedule_index;
    if let Some((at, name)) = index.last_planned()
        && is_ahead(at, now)
    {
        return (Some(name), None);
    }
    match index.first_due() {
        Some((at, name)) if at <= now => (Some(name), None),
        Some((at, _)) => (None, Some(at)),
        None => (None, None),
    }
}

/// What is to happen with a schedule now.
#[must_use]
pub fn turn(schedule: &Schedule, fleet: &Fleet, now: Timestamp) -> Turn {
    if is_ahead(schedule.planned_at, now) {
        return Turn::Plan(schedule.clone().planned(now));
    }
    let Some(due) = schedule.next.filter(|next| *next <= now) else { return Turn::Wait };
    let skipped =
        |due, reason: String| Turn::Skip(schedule.clone().after(due, DueResult::Skipped, reason, now));
    let Some(due) = last_in_time(schedule, due, now) else {
        let reason = format!("no server could start it within {}", schedule.starting_deadline);
        return skipped(due, reason);
    };
    let unfinished = schedule.last_run.as_ref().filter(|run| fleet.is_run_in_progress(run));
    match (schedule.concurrency, unfinished) {
        (Concurrency::Forbid, Some(run)) => skipped(due, format!("run {run} is in progress")),
        (Concurrency::Forbid | Concurrency::Allow, _) => Turn::Start(due),
    }
}

/// The last due time up to now, from `due` on, that is not too long ago.
fn last_in_time(schedule: &Schedule, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let after = |at: Timestamp| schedule.cron.after(&schedule.zone, at).filter(|next| *next <= now);
    let earliest = now.minus(schedule.starting_deadline);
    let mut last = if due < earliest { after(earliest.minus(Span::from_millis(1)))? } else { due };
    while let Some(next) = after(last) {
        last = next;
    }
    Some(last)
}

fn is_ahead(planned_at: Timestamp, now: Timestamp) -> bool {
    planned_at > now.plus(CLOCK_TOLERANCE)
}

#[cfg(test)]
mod tests;
