//! Keeps stored presences in step with the sessions: every server for the nodes that call it, the leader also for those of
//! servers that are gone. Owns when that is looked at; what follows is the liveness decider's.

use std::time::Duration;

use bellwether_core::decide::liveness;
use bellwether_core::decide::liveness::context::{LivenessContext, PresenceLimits};
use bellwether_core::records::key::Key;
use bellwether_core::words::counter::{Revision, Term};
use bellwether_core::words::name::{Namespace, ServerName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::reconcile::{LOOK_AGAIN, sleep_or_never, slices};
use crate::records::commit::CommitError;
use crate::sessions::Sessions;
use crate::transactor::{CommitContext, Transactor};

/// Sessions that open and end within this are looked at, and written down, together.
const GATHER: Duration = Duration::from_millis(25);

/// The task's parts.
#[derive(Debug)]
pub struct Presences {
    /// Where verdicts are committed.
    pub transactor: Transactor,
    /// Who is connected.
    pub sessions: Sessions,
    /// Which server this is.
    pub me: ServerName,
    /// Its place among the servers, while it has one: the revision it was taken at.
    pub place: watch::Receiver<Option<Revision>>,
    /// The leadership, while this server has it.
    pub term: watch::Receiver<Option<Term>>,
    /// How long a node may be quiet.
    pub limits: PresenceLimits,
}

impl Presences {
    /// Runs until asked to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            // Both arms only wait; the value is tested by wait_for.
            let place = tokio::select! {
                () = stop.cancelled() => return,
                place = self.place.wait_for(Option::is_some) => match place {
                    Ok(place) => *place,
                    Err(_) => return,
                },
            };
            let Some(place) = place else { continue };
            self.transactor.shown(place).await;
            self.sessions.begin(&self.transactor.world(), &self.me);
            self.watch(place, &stop).await;
            if stop.is_cancelled() {
                return;
            }
        }
    }

    /// Looks while this server has its place.
    async fn watch(&mut self, place: Revision, stop: &CancellationToken) {
        let mut worlds = self.transactor.follow();
        let mut sessions = self.sessions.changes();
        while self.place.borrow().is_some_and(|held| held == place) {
            worlds.borrow_and_update();
            sessions.borrow_and_update();
            let sleep = match self.pass(place).await {
                Ok(wake) => wake.map(|at| at.since(self.transactor.now()).to_duration()),
                Err(CommitError::Closed) => return,
                Err(CommitError::Conflict | CommitError::LostTerm) => Some(LOOK_AGAIN),
                Err(error) => {
                    tracing::warn!(%error, "could not write down who is there");
                    Some(LOOK_AGAIN)
                }
            };
            // All arms only wait; the next pass looks at everything.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return },
                _ = sessions.changed() => tokio::time::sleep(GATHER).await,
                _ = self.place.changed() => {}
                _ = self.term.changed() => {}
                () = sleep_or_never(sleep) => {}
            }
        }
    }

    /// One look at every namespace. Answers when to look again.
    async fn pass(&self, place: Revision) -> Result<Option<Timestamp>, CommitError> {
        let mut wake: Option<Timestamp> = None;
        let world = self.transactor.world();
        let seated = Key::Server(self.me.clone());
        for namespace in world.fleets.keys() {
            // A server whose place the world does not show, or no longer, writes nothing.
            if world.revision(namespace, &seated) != place {
                return Ok(None);
            }
            let term = *self.term.borrow();
            let Some(verdict) = self.look(&world, namespace, term.is_some()) else { continue };
            wake = [wake, verdict.wake].into_iter().flatten().min();
            if !verdict.changesets.is_empty() {
                let by = CommitContext { term, seen: vec![seated.clone()], ..CommitContext::decider() };
                self.transactor.commit_in_line(&world, namespace, by, slices(verdict.changesets)).await?;
            }
        }
        Ok(wake)
    }

    fn look(
        &self,
        world: &World,
        namespace: &Namespace,
        leads: bool,
    ) -> Option<bellwether_core::verdict::Verdict> {
        let fleet = world.fleets.get(namespace)?;
        let watch = LivenessContext { me: &self.me, servers: &world.servers, leads, limits: self.limits };
        let now = self.transactor.now();
        Some(self.sessions.with(namespace, |contacts| {
            contacts.settle(fleet, &watch, now);
            liveness::decide(fleet, contacts, &watch, now)
        }))
    }
}
