//! Schedules of workflows: while this server leads, it starts the runs that are due. Core decides what is due; an operation does it,
//! in a transaction that also writes when the schedule is due next.

use std::sync::Arc;

use bellwether_core::decide::schedules;
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use tokio_util::sync::CancellationToken;

use crate::http::matching_names;
use crate::leadership::Leadership;
use crate::ops::schedule::take_turn;
use crate::reconcile::LOOK_AGAIN;
use crate::repeated_failure::RepeatedFailure;
use crate::sleep::sleep_until;
use crate::transactor::Transactor;
use crate::world::RelistHandle;

/// Starts the runs of schedules.
#[derive(Debug)]
pub(crate) struct Scheduler {
    /// Commits the runs.
    pub(crate) transactor: Transactor,
    /// Brings the world up to date with the store.
    pub(crate) relist: RelistHandle,
    /// When to look.
    pub(crate) leadership: Leadership,
}

impl Scheduler {
    /// Runs until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut failure = RepeatedFailure::default();
        while let Some(term) = self.leadership.won(&stop).await {
            if self.relist.bring_up_to_date(&stop).await {
                let mut worlds = self.transactor.follow();
                while self.leadership.is_in(term) && !stop.is_cancelled() {
                    let world = Arc::clone(&worlds.borrow_and_update());
                    let wake = match self.look(&world, &mut failure).await {
                        Looked::Done => continue,
                        Looked::Next(at) => at,
                        Looked::Failed => Some(self.transactor.now().plus(LOOK_AGAIN)),
                    };
                    // All arms only wait.
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = self.leadership.changed() => {}
                        changed = worlds.changed() => if changed.is_err() { return },
                        () = sleep_until(self.transactor.clock(), wake) => {}
                    }
                }
            }
            self.leadership.lost(term, &stop).await;
        }
    }

    /// Has the first schedule of each namespace that is due do what it is to do.
    async fn look(&self, world: &World, failure: &mut RepeatedFailure) -> Looked {
        let now = self.transactor.now();
        let (mut wake, mut is_done, mut has_failed) = (None, false, false);
        for (namespace, fleet) in world.fleets.iter() {
            let (due, next) = schedules::first(fleet, now);
            wake = [wake, next].into_iter().flatten().min();
            let Some(name) = due else { continue };
            match take_turn(&self.transactor, namespace, name, matching_names).await {
                Ok(()) => is_done = true,
                Err(error) => {
                    has_failed = true;
                    if failure.is_news(&error) {
                        tracing::warn!(%namespace, schedule = %name, %error, "cannot do what is due; it is tried again");
                    }
                }
            }
        }
        if !has_failed {
            failure.is_over();
        }
        match (has_failed, is_done) {
            (true, _) => Looked::Failed,
            (false, true) => Looked::Done,
            (false, false) => Looked::Next(wake),
        }
    }
}

/// What looking at the schedules came to.
enum Looked {
    /// Something was due, and was done.
    Done,
    /// Nothing was due before this time.
    Next(Option<Timestamp>),
    /// Something could not be written.
    Failed,
}
