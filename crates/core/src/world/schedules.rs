//! Index of schedules: by when they are due, and by when that was computed.

use crate::records::schedule::Schedule;
use crate::words::map::Set;
use crate::words::name::ScheduleName;
use crate::words::time::Timestamp;

/// Schedules by time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleIndex {
    due: Set<(Timestamp, ScheduleName)>,
    planned: Set<(Timestamp, ScheduleName)>,
}

impl ScheduleIndex {
    /// The schedule that is due first, and when.
    #[must_use]
    pub fn first_due(&self) -> Option<(Timestamp, &ScheduleName)> {
        self.due.first().map(|(at, name)| (*at, name))
    }

    /// The schedule whose next time was computed last, and when.
    #[must_use]
    pub fn last_planned(&self) -> Option<(Timestamp, &ScheduleName)> {
        self.planned.last().map(|(at, name)| (*at, name))
    }

    pub(super) fn insert(&mut self, schedule: &Schedule) {
        if let Some(next) = schedule.next {
            self.due.insert_mut((next, schedule.name.clone()));
            self.planned.insert_mut((schedule.planned_at, schedule.name.clone()));
        }
    }

    pub(super) fn remove(&mut self, schedule: &Schedule) {
        if let Some(next) = schedule.next {
            self.due.remove_mut(&(next, schedule.name.clone()));
            self.planned.remove_mut(&(schedule.planned_at, schedule.name.clone()));
        }
    }
}
