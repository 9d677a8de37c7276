//! The soak of an entity: healthy time that this agent observed itself, then every check asked again. A machine or an agent that
//! stood still observed nothing.

use bellwether_core::local::soak::SoakMeter;
use bellwether_core::records::order::Assignment;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::check::EntityChecks;

/// Longest time between two looks. Twice as much counts at most: what is longer was not observed.
const LOOK: Span = Span::from_secs(1);

/// Shortest time between two looks.
const SHORTEST_LOOK: Span = Span::from_millis(50);

/// How often what was observed is stored.
const STORED: Span = Span::from_secs(1);

/// The soak of the assignment in force.
#[derive(Debug, Default)]
pub(crate) struct Soak {
    meter: SoakMeter,
    /// Counts time while some is missing.
    watch: Option<ObservedTime>,
    /// The request to every check at the end of the soak.
    request: u64,
    /// The assignment in whose soak health was lost, and why, the first time.
    failure: Option<(AssignmentNumber, String)>,
}

impl Soak {
    /// Continues what the agent before observed.
    pub(super) fn restored(
        observed: Option<(AssignmentNumber, Span)>,
        failure: Option<(AssignmentNumber, String)>,
    ) -> Self {
        let meter = observed.map(|(number, observed)| SoakMeter::restored(number, observed));
        Self { meter: meter.unwrap_or_default(), failure, ..Self::default() }
    }

    /// Why health was lost in the soak of its assignment, the first time.
    pub(super) fn failure(&self) -> Option<&(AssignmentNumber, String)> {
        self.failure.as_ref()
    }

    /// Remembers that health was lost in the soak of this assignment, for a server that is away; forgets it with the assignment.
    pub(super) fn note_failure(&mut self, assigned: Option<&Assignment>, failing: Option<&str>) {
        let number = assigned.map_or(AssignmentNumber::ZERO, |assigned| assigned.number);
        self.failure.take_if(|(of, _)| *of != number);
        let is_soaking = self.meter.observed().0 == number && self.meter.confirmed().is_none();
        if let Some(reason) = failing.filter(|_| is_soaking && number != AssignmentNumber::ZERO) {
            self.failure.get_or_insert_with(|| (number, reason.to_owned()));
        }
    }

    /// What must be stored to continue after a restart.
    pub(super) fn observed(&self) -> Option<(AssignmentNumber, Span)> {
        Some(self.meter.observed()).filter(|(number, _)| *number != AssignmentNumber::ZERO)
    }

    /// The soak that was confirmed; `None` until it was.
    pub(super) fn confirmed(&self) -> Option<Span> {
        self.meter.confirmed()
    }

    /// Whether every check is being asked again.
    pub(super) fn is_asking(&self) -> bool {
        self.meter.is_asking()
    }

    /// Waits until the soak is over, or what was observed is to be stored; for ever while nothing is measured. Cancel safe.
    pub(super) async fn advanced(&mut self) {
        match (&mut self.watch, self.meter.missing()) {
            (Some(watch), Some(missing)) => watch.reaches(missing.min(STORED)).await,
            (_, _) => std::future::pending().await,
        }
    }

    /// Counts nothing until it is known whether the version is healthy, and keeps what was observed of this assignment.
    pub(super) fn waits_for_checks(&mut self, assigned: &Assignment) {
        self.watch = None;
        if self.meter.observed().0 != assigned.number {
            self.meter.follow(None);
        }
    }

    /// Counts the healthy time since the last call, and asks every check again at the end of the soak. `healthy_on` is the
    /// assignment in force if its version is healthy here.
    pub(super) fn observe(
        &mut self,
        healthy_on: Option<&Assignment>,
        checks: Option<&EntityChecks>,
        clock: &Clock,
        tasks: &Tasks,
    ) {
        let (before, _) = self.meter.observed();
        self.meter.follow(healthy_on);
        if self.meter.observed().0 != before {
            self.watch = None;
        }
        self.count(clock, tasks);
        if self.meter.asks() {
            self.watch = None;
            self.request = checks.map_or(0, EntityChecks::ask_again);
        }
        let passed = || checks.is_none_or(|checks| checks.have_passed_since(self.request));
        if self.meter.is_asking() && passed() {
            self.meter.confirm();
        }
    }

    /// Counts what was observed since the last call.
    fn count(&mut self, clock: &Clock, tasks: &Tasks) {
        let Some(missing) = self.meter.missing() else {
            self.watch = None;
            return;
        };
        match &mut self.watch {
            Some(watch) => self.meter.add(watch.take()),
            None => self.watch = Some(ObservedTime::start(missing, clock, tasks)),
        }
    }
}

/// Time that this process observed: it looks often, and a longer gap between two looks counts as a short one. Dropping it ends it.
#[derive(Debug)]
struct ObservedTime {
    observed: watch::Receiver<Span>,
    taken: Span,
    task: Tasks,
}

impl Drop for ObservedTime {
    fn drop(&mut self) {
        self.task.cancel();
    }
}

impl ObservedTime {
    /// Counts from now on, precisely enough for a soak of that length.
    fn start(soak: Span, clock: &Clock, tasks: &Tasks) -> Self {
        let (sender, observed) = watch::channel(Span::ZERO);
        let look = Span::from_millis(soak.as_millis() / 10).max(SHORTEST_LOOK).min(LOOK);
        let (task, clock) = (tasks.child(), clock.clone());
        let token = task.token();
        task.spawn("soak", async move {
            let mut before = clock.now();
            loop {
                tokio::select! {
                    () = token.cancelled() => return,
                    () = tokio::time::sleep(look.to_duration()) => {}
                }
                let now = clock.now();
                let more = now.since(before).min(look.plus(look));
                before = now;
                sender.send_modify(|observed| *observed = observed.plus(more));
            }
        });
        Self { observed, taken: Span::ZERO, task }
    }

    /// The time since the last call.
    fn take(&mut self) -> Span {
        let observed = *self.observed.borrow();
        observed.minus(std::mem::replace(&mut self.taken, observed))
    }

    /// Waits until so much time was observed since it was last taken; for ever once the agent stops. Cancel safe.
    async fn reaches(&mut self, more: Span) {
        let until = self.taken.plus(more);
        if self.observed.wait_for(|observed| *observed >= until).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
