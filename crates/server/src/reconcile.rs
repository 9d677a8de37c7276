//! The reconcile loop: while this server leads, run every decider on what is due, commit the verdicts, repeat.
//!
//! A pass starts after each change, or when time requires it; deciders never learn which. An agenda per namespace says which
//! entities are due. A verdict larger than one transaction is committed in slices, in order; after the first that fails the rest is
//! dropped, the other entities, deciders and namespaces go on, and the next pass decides anew.

mod due;

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::decide::agenda::{Agenda, Basis};
use bellwether_core::decide::table::{DECIDERS, Decide, Decider, DeciderContext, RetentionLimits};
use bellwether_core::records::key::Key;
use bellwether_core::rollout::environment::Watch;
use bellwether_core::verdict::Verdict;
use bellwether_core::words::counter::Term;
use bellwether_core::words::name::{EntityName, Namespace, ServerName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_rt::fail::{self, FailPoint};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::deciders::DeciderSettings;
use crate::decider_failures::DeciderFailures;
use crate::leadership::Leadership;
use crate::metrics::{DeciderPass, Metrics};
use crate::ops;
use crate::records::commit::CommitError;
use crate::repeated_failure::RepeatedFailure;
use crate::sleep::sleep_until;
use crate::transactor::{CommitContext, Transactor};
use crate::world::RelistHandle;

/// Most targets in a namespace on which deciders run within the reconcile task. A pass over as many takes some milliseconds;
/// one over more runs on a thread of its own, so that the requests on this thread do not wait for it.
const DECIDED_INLINE: u64 = 2_000;

/// Longest delay of the next pass after a failed commit.
pub(crate) const LOOK_AGAIN: Span = Span::from_millis(500);

/// The reconcile loop.
#[derive(Debug)]
pub struct Reconciler {
    /// Commits the verdicts.
    pub transactor: Transactor,
    /// Brings the world up to date with the store.
    pub relist: RelistHandle,
    /// When to decide, and under which term.
    pub leadership: Leadership,
    /// Settings of the deciders.
    pub settings: DeciderSettings,
    /// Where the watch over the targets is published, for explanations.
    pub watches: watch::Sender<Watch>,
    /// Counters.
    pub metrics: Metrics,
    /// What cannot be committed.
    pub failures: DeciderFailures,
}

/// Since when the servers that there are could hear every node.
#[derive(Debug)]
struct Audience {
    since: Timestamp,
    servers: BTreeMap<ServerName, Timestamp>,
}

impl Audience {
    /// Begins anew when a server went or restarted: nodes that were its own are shown as up and may be gone.
    fn complete_since(&mut self, world: &World, now: Timestamp) -> Timestamp {
        let servers: BTreeMap<ServerName, Timestamp> =
            world.servers.iter().map(|(name, kept)| (name.clone(), kept.value.since)).collect();
        if self.servers.iter().any(|(name, since)| servers.get(name) != Some(since)) {
            self.since = now;
        }
        self.servers = servers;
        self.since
    }
}

impl Reconciler {
    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        while let Some(term) = self.leadership.won(&stop).await {
            fail::pass(FailPoint::LeadershipAcquired);
            // A new leader decides only once its world contains everything that was committed before. It asks the store, since a
            // watch may have missed something.
            if self.relist.bring_up_to_date(&stop).await {
                self.tell().await;
                self.lead(term, &stop).await;
                self.failures.clear();
            }
            self.leadership.lost(term, &stop).await;
        }
    }

    /// Tells that this server leads; nothing waits for that to succeed.
    async fn tell(&self) {
        let world = self.transactor.world();
        let Some(leader) = &world.leader else { return };
        if let Err(error) = ops::server::leads(&self.transactor, &leader.value).await {
            tracing::warn!(%error, "cannot record that this server leads");
        }
    }

    async fn lead(&mut self, term: Term, stop: &CancellationToken) {
        let mut worlds = self.transactor.follow();
        let mut agendas = Agendas::default();
        let mut audience = Audience { since: self.transactor.now(), servers: BTreeMap::new() };
        let mut failure = RepeatedFailure::default();
        while self.leadership.is_in(term) {
            let world = worlds.borrow_and_update().clone();
            let now = self.transactor.now();
            let watch = self.settings.watch(audience.complete_since(&world, now));
            self.watches.send_if_modified(|published| std::mem::replace(published, watch) != watch);
            let begun = tokio::time::Instant::now();
            let pass = self.pass(&world, PassInputs { term, watch, now }, &mut agendas).await;
            self.metrics.passes.inc();
            self.metrics.pass_seconds.observe_since(begun);
            let wake = match pass {
                Ok(PassResult { wrote: true, .. }) => continue,
                Ok(PassResult { failed: true, .. }) => Some(now.plus(LOOK_AGAIN)),
                Ok(PassResult { wake, .. }) => {
                    failure.is_over();
                    wake
                }
                Err(CommitError::LostTerm) => return self.leadership.give_up(term),
                Err(CommitError::Closed) => return,
                Err(error) => {
                    if failure.is_news(&error) {
                        tracing::warn!(%error, "cannot commit a verdict");
                    }
                    Some(now.plus(LOOK_AGAIN))
                }
            };
            // All arms only wait; the next pass examines everything that is due.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = worlds.changed() => if changed.is_err() { return },
                () = self.leadership.changed() => {}
                () = sleep_until(self.transactor.clock(), wake) => {}
            }
        }
    }

    /// One pass over all namespaces.
    async fn pass(
        &self,
        world: &Arc<World>,
        inputs: PassInputs,
        agendas: &mut Agendas,
    ) -> Result<PassResult, CommitError> {
        agendas.retain(|namespace, _| world.fleets.contains_key(namespace));
        let mut pass = PassResult::default();
        for namespace in world.fleets.keys() {
            let agenda = agendas.entry(namespace.clone()).or_default();
            // Each decider sees the results of those before it.
            for decider in &DECIDERS {
                let done = self.decide(decider, namespace, inputs, agenda).await;
                pass.add(self.settle(decider, namespace, done)?);
            }
        }
        Ok(pass)
    }

    /// A pass in which the commits of one decider failed is a pass all the same, unless the next commit would fail, too.
    fn settle(
        &self,
        decider: &Decider,
        namespace: &Namespace,
        done: Result<PassResult, CommitError>,
    ) -> Result<PassResult, CommitError> {
        let (failed, pass) = match done {
            Ok(pass) => (None, pass),
            // Another server, or a person, was first: nothing to tell.
            Err(CommitError::Conflict { .. }) => (None, PassResult { failed: true, ..PassResult::default() }),
            // A decider is no node, and has no quota.
            Err(error @ (CommitError::TooLarge | CommitError::Shape(_) | CommitError::NodeQuota { .. })) => {
                (Some(error.to_string()), PassResult { failed: true, ..PassResult::default() })
            }
            Err(error @ (CommitError::LostTerm | CommitError::Closed | CommitError::Store(_))) => {
                return Err(error);
            }
        };
        if failed.is_some() {
            let at = DeciderPass { decider: decider.name, namespace: namespace.to_string() };
            self.metrics.decider_failures.get_or_create(&at).inc();
        }
        let reason = failed.clone();
        if self.failures.note(namespace, decider.name, failed) {
            tracing::warn!(decider = decider.name, %namespace, error = reason, "cannot commit a verdict");
        }
        Ok(pass)
    }

    /// Runs one decider on the world as it is now, with everything that the deciders before it wrote.
    async fn decide(
        &self,
        decider: &Decider,
        namespace: &Namespace,
        inputs: PassInputs,
        agenda: &mut Agenda,
    ) -> Result<PassResult, CommitError> {
        let world = self.transactor.world();
        let Some(fleet) = world.fleets.get(namespace) else { return Ok(PassResult::default()) };
        let decision = Pending { world: &world, namespace, inputs, kept: self.settings.kept };
        match decider.decide {
            Decide::Namespace(decide) => {
                let verdict = decision.compute(count(fleet.targets.size()), decide).await?;
                self.commit_between(decider, &decision, as_decider(inputs.term), verdict).await
            }
            Decide::Cluster(decide) => self.decide_views(decider, &decision, decide, agenda).await,
            Decide::Ensemble(decide) => self.decide_ensembles(decider, &decision, decide, agenda).await,
            Decide::Entity(decide) => {
                let context = decision.context(fleet);
                let (basis, due) = (Basis::of(&context), agenda.due(&context));
                let boards = due.iter().filter_map(|entity| fleet.boards.get(entity));
                let targets = boards.map(|board| board.counts().targets).sum();
                let each = move |context: DeciderContext<'_>| {
                    let verdict = |entity: EntityName| (decide(context, &entity), entity);
                    due.into_iter().map(verdict).collect::<Vec<_>>()
                };
                let (mut pass, mut result) = (PassResult::default(), Ok(()));
                for (verdict, entity) in decision.compute(targets, each).await? {
                    let wake = if verdict.changesets.is_empty() { verdict.wake } else { Some(inputs.now) };
                    let by = CommitContext {
                        seen: vec![Key::Entity(entity.clone()).into()],
                        ..as_decider(inputs.term)
                    };
                    match self.commit_between(decider, &decision, by, verdict).await {
                        Ok(done) => pass.wrote |= done.wrote,
                        Err(error) if error.is_its_own() => result = result.and(Err(error)),
                        Err(error) => return Err(error),
                    }
                    agenda.decided(&entity, wake);
                }
                agenda.complete(basis);
                debug_assert_eq!(
                    agenda.overlooked(&context, decide),
                    None,
                    "{}: an entity was due",
                    decider.name
                );
                result.map(|()| PassResult { wake: agenda.wake(), ..pass })
            }
        }
    }

    /// Commits a verdict, passing the decider's fail points before and after if it changes anything.
    async fn commit_between(
        &self,
        decider: &Decider,
        decision: &Pending<'_>,
        by: CommitContext,
        verdict: Verdict,
    ) -> Result<PassResult, CommitError> {
        let wake = verdict.wake;
        if verdict.changesets.is_empty() {
            return Ok(PassResult { wake, ..PassResult::default() });
        }
        let points = fail_points(decider);
        points.iter().for_each(|[before, _]| fail::pass(*before));
        let (world, namespace) = (decision.world, decision.namespace);
        self.transactor.commit_in_line(world, namespace, by, verdict.changesets).await?;
        points.iter().for_each(|[_, after]| fail::pass(*after));
        Ok(PassResult { wrote: true, failed: false, wake })
    }
}

/// What all decisions of a pass share.
#[derive(Debug, Clone, Copy)]
struct PassInputs {
    term: Term,
    watch: Watch,
    now: Timestamp,
}

/// The agenda of each namespace.
type Agendas = BTreeMap<Namespace, Agenda>;

/// A decision on one namespace of a world.
struct Pending<'a> {
    world: &'a Arc<World>,
    namespace: &'a Namespace,
    inputs: PassInputs,
    kept: RetentionLimits,
}

impl Pending<'_> {
    fn context<'a>(&'a self, fleet: &'a Fleet) -> DeciderContext<'a> {
        let PassInputs { term, watch, now } = self.inputs;
        let (world, namespace, kept) = (self.world, self.namespace, self.kept);
        DeciderContext { world, namespace, fleet, term, watch, kept, now }
    }

    /// Computes it: on this task, or on a thread of its own if it reads many targets.
    async fn compute<T: Default + Send + 'static>(
        &self,
        targets: u64,
        decide: impl FnOnce(DeciderContext<'_>) -> T + Send + 'static,
    ) -> Result<T, CommitError> {
        if targets <= DECIDED_INLINE {
            return Ok(self.compute_here(decide));
        }
        let (world, namespace) = (self.world.clone(), self.namespace.clone());
        let (inputs, kept) = (self.inputs, self.kept);
        let elsewhere =
            move || Pending { world: &world, namespace: &namespace, inputs, kept }.compute_here(decide);
        match tokio::task::spawn_blocking(elsewhere).await {
            Ok(decided) => Ok(decided),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The server ends.
            Err(_) => Err(CommitError::Closed),
        }
    }

    fn compute_here<T: Default>(&self, decide: impl FnOnce(DeciderContext<'_>) -> T) -> T {
        let fleet = self.world.fleets.get(self.namespace);
        fleet.map(|fleet| decide(self.context(fleet))).unwrap_or_default()
    }
}

fn count(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// The points at which tests kill the process, before and after a decider's commits.
fn fail_points(decider: &Decider) -> Option<[FailPoint; 2]> {
    match decider.name {
        "rollout" => Some([FailPoint::VerdictReached, FailPoint::VerdictCommitted]),
        "views" => Some([FailPoint::ViewDecided, FailPoint::ViewCommitted]),
        "ensembles" => Some([FailPoint::MembersDecided, FailPoint::MembersCommitted]),
        "order" => Some([FailPoint::OrdersDecided, FailPoint::OrdersCommitted]),
        _ => None,
    }
}

/// Result of a pass, or of a part of one.
#[derive(Debug, Default)]
struct PassResult {
    wrote: bool,
    /// Some commits failed: it is looked at again soon.
    failed: bool,
    wake: Option<Timestamp>,
}

impl PassResult {
    fn add(&mut self, other: Self) {
        self.wrote |= other.wrote;
        self.failed |= other.failed;
        self.wake = [self.wake, other.wake].into_iter().flatten().min();
    }
}

/// The context of a decider's commit in this term.
pub(crate) fn as_decider(term: Term) -> CommitContext {
    CommitContext { term: Some(term), ..CommitContext::decider() }
}
