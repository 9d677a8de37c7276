//! Keeps stored presences in step with the sessions: each server for the nodes that call it, the leader also for those of
//! failed servers. This task owns when that is done; the liveness decider owns what is written.

use std::time::Duration;

use bellwether_core::decide::liveness;
use bellwether_core::decide::liveness::context::{LivenessContext, PresenceLimits};
use bellwether_core::records::key::global::GlobalKey;
use bellwether_core::words::counter::Revision;
use bellwether_core::words::name::{Namespace, ServerName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::World;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::leadership::Leadership;
use crate::reconcile::LOOK_AGAIN;
use crate::records::commit::CommitError;
use crate::repeated_failure::RepeatedFailure;
use crate::sessions::Sessions;
use crate::sleep::sleep_until;
use crate::transactor::{CommitContext, Transactor};

/// Sessions that open and close within this time are processed together.
const GATHER: Duration = Duration::from_millis(25);

/// The task that keeps presences up to date.
#[derive(Debug)]
pub struct Presences {
    /// Commits the verdicts.
    pub transactor: Transactor,
    /// Sessions with this server.
    pub sessions: Sessions,
    /// This server's name.
    pub name: ServerName,
    /// The revision at which this server acquired its membership, while it has it.
    pub membership: watch::Receiver<Option<Revision>>,
    /// Whether this server leads.
    pub leadership: Leadership,
    /// How long a node may be silent.
    pub limits: PresenceLimits,
}

impl Presences {
    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            // Both arms only wait; the value is tested by wait_for.
            let held = tokio::select! {
                () = stop.cancelled() => return,
                held = self.membership.wait_for(Option::is_some) => match held {
                    Ok(held) => *held,
                    Err(_) => return,
                },
            };
            let Some(held) = held else { continue };
            self.transactor.wait_for_revision(held).await;
            self.sessions.begin(&self.transactor.world(), &self.name);
            self.watch(held, &stop).await;
            if stop.is_cancelled() {
                return;
            }
        }
    }

    /// Runs passes while this server keeps the membership acquired at this revision.
    async fn watch(&mut self, acquired: Revision, stop: &CancellationToken) {
        let mut worlds = self.transactor.follow();
        let mut sessions = self.sessions.changes();
        let mut failure = RepeatedFailure::default();
        while self.membership.borrow().is_some_and(|held| held == acquired) {
            worlds.borrow_and_update();
            sessions.borrow_and_update();
            let again = self.transactor.now().plus(LOOK_AGAIN);
            let wake = match self.pass(acquired).await {
                Ok(wake) => {
                    failure.is_over();
                    wake
                }
                Err(CommitError::Closed) => return,
                Err(CommitError::Conflict { .. } | CommitError::LostTerm) => Some(again),
                Err(error) => {
                    if failure.is_news(&error) {
                        tracing::warn!(%error, "cannot commit presences");
                    }
                    Some(again)
                }
            };
            // All arms only wait; the next pass examines everything.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return },
                _ = sessions.changed() => tokio::time::sleep(GATHER).await,
                _ = self.membership.changed() => {}
                () = self.leadership.changed() => {}
                () = sleep_until(self.transactor.clock(), wake) => {}
            }
        }
    }

    /// One pass over all namespaces. Returns when the next one is due.
    async fn pass(&self, acquired: Revision) -> Result<Option<Timestamp>, CommitError> {
        let mut wake: Option<Timestamp> = None;
        let world = self.transactor.world();
        let own_key = GlobalKey::Server(self.name.clone());
        for namespace in world.fleets.keys() {
            // Without its membership in the world, this server writes nothing.
            if world.global_revision(&own_key) != acquired {
                return Ok(None);
            }
            let term = self.leadership.term();
            let Some(verdict) = self.look(&world, namespace, term.is_some()) else { continue };
            wake = [wake, verdict.wake].into_iter().flatten().min();
            if !verdict.changesets.is_empty() {
                let by =
                    CommitContext { term, seen: vec![own_key.clone().into()], ..CommitContext::decider() };
                let written = self.transactor.commit_in_line(&world, namespace, by, verdict.changesets).await;
                if let (Err(CommitError::LostTerm), Some(term)) = (&written, term) {
                    self.leadership.give_up(term);
                }
                written?;
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
        let watch = LivenessContext { me: &self.name, servers: &world.servers, leads, limits: self.limits };
        let now = self.transactor.now();
        Some(self.sessions.with(namespace, |contacts| {
            contacts.settle(fleet, &watch, now);
            liveness::decide(fleet, contacts, &watch, now)
        }))
    }
}
