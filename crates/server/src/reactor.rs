//! Reactions to conditions: while this server leads, it starts the runs that are due. Core decides what is due; an operation does it, in a
//! transaction that also writes the firing.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::decide::reactions::{Turn, turn};
use bellwether_core::rollout::environment::Watch;
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::{Namespace, ReactionName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::http::matching_names;
use crate::leadership::Leadership;
use crate::ops::reaction::take_turn;
use crate::reconcile::LOOK_AGAIN;
use crate::repeated_failure::RepeatedFailure;
use crate::sleep::sleep_until;
use crate::transactor::Transactor;
use crate::world::RelistHandle;

/// Starts the runs of reactions.
#[derive(Debug)]
pub(crate) struct Reactor {
    /// Commits the runs.
    pub(crate) transactor: Transactor,
    /// Brings the world up to date with the store.
    pub(crate) relist: RelistHandle,
    /// When to look.
    pub(crate) leadership: Leadership,
    /// From when on what is recorded is believed.
    pub(crate) watches: watch::Receiver<Watch>,
}

/// What was looked at last in a namespace, and when there is something to do without a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Looked {
    loaded: Revision,
    changes: u64,
    watch: Watch,
    wake: Option<Timestamp>,
}

impl Reactor {
    /// Runs until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut failure = RepeatedFailure::default();
        while let Some(term) = self.leadership.won(&stop).await {
            if self.relist.bring_up_to_date(&stop).await {
                let mut worlds = self.transactor.follow();
                let mut looked = BTreeMap::new();
                while self.leadership.is_in(term) && !stop.is_cancelled() {
                    let world = Arc::clone(&worlds.borrow_and_update());
                    let watch = *self.watches.borrow_and_update();
                    let wake = self.look(&world, watch, (&mut looked, &mut failure)).await;
                    // All arms only wait.
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = self.leadership.changed() => {}
                        changed = worlds.changed() => if changed.is_err() { return },
                        changed = self.watches.changed() => if changed.is_err() { return },
                        () = sleep_until(self.transactor.clock(), wake) => {}
                    }
                }
            }
            self.leadership.lost(term, &stop).await;
        }
    }

    /// Has the reactions of each namespace do what is due; when there is something to do next. What did not change is not looked at.
    async fn look(
        &self,
        world: &World,
        watch: Watch,
        (looked, failure): (&mut BTreeMap<Namespace, Looked>, &mut RepeatedFailure),
    ) -> Option<Timestamp> {
        looked.retain(|namespace, _| world.fleets.contains_key(namespace));
        let mut wake: Option<Timestamp> = None;
        for (namespace, fleet) in world.fleets.iter() {
            let now = self.transactor.now();
            let is_same = |last: &&Looked| {
                last.loaded == fleet.loaded
                    && last.changes == fleet.reaction_changes
                    && last.watch == watch
                    && last.wake.is_none_or(|at| at > now)
            };
            let next = match looked.get(namespace).filter(is_same) {
                Some(last) => last.wake,
                None => {
                    let (due, next) = due(fleet, watch, now);
                    let (loaded, changes) = (fleet.loaded, fleet.reaction_changes);
                    looked.insert(namespace.clone(), Looked { loaded, changes, watch, wake: next });
                    match self.turns((namespace, watch), due, failure).await {
                        // What was written is looked at again, since the world changes.
                        true => next,
                        false => {
                            looked.remove(namespace);
                            Some(now.plus(LOOK_AGAIN))
                        }
                    }
                }
            };
            wake = [wake, next].into_iter().flatten().min();
        }
        wake
    }

    /// Whether all could do what is due.
    async fn turns(
        &self,
        (namespace, watch): (&Namespace, Watch),
        due: Vec<ReactionName>,
        failure: &mut RepeatedFailure,
    ) -> bool {
        let is_some_due = !due.is_empty();
        let mut is_done = true;
        for name in due {
            if let Err(error) = take_turn(&self.transactor, (namespace, &name), watch, matching_names).await {
                if failure.is_news(&error) {
                    tracing::warn!(%namespace, reaction = %name, %error, "cannot do what is due; it is tried again");
                }
                is_done = false;
            }
        }
        if is_some_due && is_done {
            failure.is_over();
        }
        is_done
    }
}

/// The reactions that are to do something now, and when one is to do something without a change.
fn due(fleet: &Fleet, watch: Watch, now: Timestamp) -> (Vec<ReactionName>, Option<Timestamp>) {
    let (mut due, mut wake) = (Vec::new(), None::<Timestamp>);
    for (name, kept) in fleet.reactions.iter() {
        match turn(&kept.value, fleet, watch, now) {
            Turn::Wait(at) => wake = [wake, at].into_iter().flatten().min(),
            Turn::Limit(_) | Turn::Fire(_) => due.push(name.clone()),
        }
    }
    (due, wake)
}
