//! The task that keeps a server's time: measures the others, judges, steers, and publishes what it found.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::words::name::ServerName;
use bellwether_core::words::time::Span;
use bellwether_core::world::World;
use bellwether_rt::clock::{Clock, Pace, difference_ms};
use bellwether_rt::tasks::Tasks;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::judge::{JudgedPeer, Judgement, Standing, apart, judge};
use super::peers::{Measured, PeerAddress, PeerTimes, measure};
use crate::leadership::Leadership;
use crate::ops;
use crate::store_rules::StoreRules;
use crate::transactor::Transactor;

/// Interval of measurements: a system clock that was set is noticed within it.
const EVERY: Duration = Duration::from_secs(5);

/// How long the last good measurement of a server counts while better ones fail.
const COUNTS_FOR: Duration = Duration::from_secs(20);

/// Difference of a system clock from the control plane's time above which people are warned.
pub const WORTH_WARNING: Span = Span::from_secs(1);

/// The clocks of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerClock {
    /// By how much its system clock is ahead of what most system clocks show, in milliseconds.
    pub skew_ms: i64,
    /// By how much its time is ahead of the measuring server's, in milliseconds.
    pub ahead_ms: i64,
    /// Whether it takes part in what needs the right time.
    pub takes_part: bool,
}

/// What a server knows of all clocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClockTable {
    /// Whether this server takes part in what needs the right time.
    pub standing: Standing,
    /// By how much this server's time is ahead of what most system clocks show, in milliseconds.
    pub ahead_ms: i64,
    /// The clocks of the live servers that answered, this one included.
    pub servers: BTreeMap<ServerName, ServerClock>,
}

impl ClockTable {
    /// What a person should do about clocks.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.ahead_ms.unsigned_abs() >= WORTH_WARNING.as_millis() {
            let apart = apart(self.ahead_ms);
            let takes = Span::from_millis(brought_in_ms(self.ahead_ms)).brief();
            warnings.push(format!(
                "the control plane's time is {apart} most system clocks; it is brought there little by little, which takes {takes} or \
                 more; if that is too long, stop all servers, then start them, with --accept-clock if it is more than a day: time goes on from the newest event, and if that is too \
                 late as well, restore a backup from before"
            ));
        }
        for (name, clock) in &self.servers {
            if clock.skew_ms.unsigned_abs() >= WORTH_WARNING.as_millis() {
                let apart = apart(clock.skew_ms);
                warnings
                    .push(format!("the system clock of server {name} is {apart} the right time; correct it"));
            }
            if !clock.takes_part {
                warnings.push(format!(
                    "the time of server {name} differs from that of the others: until it is right, or the server is restarted, it \
                     neither leads nor gives locks"
                ));
            }
        }
        warnings
    }
}

/// How long it takes at least until a time that is so far ahead, or behind if negative, is right: one that is ahead loses an eighth, one
/// that is behind gains 1/64.
const fn brought_in_ms(ahead_ms: i64) -> u64 {
    let share = if ahead_ms > 0 { 8 } else { 64 };
    ahead_ms.unsigned_abs().saturating_mul(share)
}

/// The task that keeps the time.
pub(crate) struct TimeKeeper {
    /// This server's name.
    pub(crate) name: ServerName,
    /// The clock that it steers.
    pub(crate) clock: Clock,
    /// How others are asked.
    pub(crate) peers: Arc<dyn PeerTimes>,
    /// Knows who they are and who leads, and records what changes.
    pub(crate) transactor: Transactor,
    /// Left to others while the time is not right.
    pub(crate) leadership: Leadership,
    /// Where it publishes what it found.
    pub(crate) table: watch::Sender<ClockTable>,
}

/// The last good measurements.
type Known = BTreeMap<ServerName, (Instant, Measured)>;

impl TimeKeeper {
    /// Starts to keep the time, unless the rules say otherwise. The receiver has what it found last.
    pub(crate) fn start(self, rules: StoreRules, tasks: &Tasks) -> watch::Receiver<ClockTable> {
        let found = self.table.subscribe();
        if rules.bounds_clocks {
            tasks.spawn("clock", self.run(tasks.token()));
        }
        found
    }

    /// Runs until `stop`.
    async fn run(self, stop: CancellationToken) {
        let mut known = Known::new();
        loop {
            // Dropping the future loses a measurement.
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.look(&mut known) => {}
            }
            // Both arms only wait.
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    async fn look(&self, known: &mut Known) {
        let world = self.transactor.world();
        let others =
            world.servers.values().map(|kept| &*kept.value).filter(|server| server.name != self.name);
        let others: Vec<PeerAddress> = others
            .map(|server| PeerAddress { name: server.name.clone(), address: server.address.clone() })
            .collect();
        let measured = join_all(others.iter().map(|peer| measure(&self.clock, &*self.peers, peer))).await;
        for (peer, measured) in others.iter().zip(measured) {
            if let Some(measured) = measured.filter(Measured::is_fine) {
                known.insert(peer.name.clone(), (Instant::now(), measured));
            }
        }
        known.retain(|name, (at, _)| {
            at.elapsed() < COUNTS_FOR && others.iter().any(|peer| peer.name == *name)
        });
        let leader = world.leader.as_ref().map(|kept| &kept.value.server);
        let judged = known.iter().map(|(name, (_, measured))| JudgedPeer {
            leads: leader == Some(name),
            ahead_ms: measured.ahead_ms,
            wall_ms: measured.wall_ms,
        });
        let own_wall_ms = difference_ms(self.clock.now(), self.clock.wall());
        let judgement = judge(own_wall_ms, &judged.collect::<Vec<_>>());
        let before = self.publish(known, own_wall_ms, judgement);
        self.leadership.take_part(judgement.standing == Standing::TakesPart);
        self.apply(&world, judgement);
        let takes_part = |standing| standing == Standing::TakesPart;
        if takes_part(before) != takes_part(judgement.standing) {
            self.record(judgement.standing).await;
        }
        if judgement.step_ms > 0 {
            // What was measured before is about another time.
            known.clear();
        }
    }

    fn apply(&self, world: &World, judgement: Judgement) {
        let is_held = |slot: &bellwether_core::records::slot::Slot| !slot.holders.is_empty();
        let mut slots = world.fleets.values().flat_map(|fleet| fleet.slots.values());
        let pace = match judgement.standing {
            Standing::Beyond { .. } => Pace::Apart,
            Standing::TakesPart if slots.any(|kept| is_held(&kept.value)) => Pace::Careful,
            Standing::TakesPart => Pace::Brisk,
        };
        // A leader that is to be set forward ends its leadership first.
        if judgement.step_ms > 0 && self.leadership.term().is_some() {
            return;
        }
        if judgement.step_ms > 0 {
            tracing::warn!(
                behind_ms = judgement.step_ms,
                "the time of this server is behind that of the others; set forward"
            );
            self.clock.set(self.clock.now().plus(Span::from_millis(judgement.step_ms)));
        } else {
            self.clock.steer(judgement.steer_ms, pace);
        }
    }

    /// Tells people that this server takes part again, or no longer does.
    async fn record(&self, standing: Standing) {
        let cause = match standing {
            Standing::TakesPart => "its time is that of the others; it takes part again".to_owned(),
            Standing::Beyond { by_ms } => {
                let apart = apart(by_ms);
                format!(
                    "its time is {apart} that of the others; it neither leads nor gives locks until it is right"
                )
            }
        };
        tracing::warn!("{cause}");
        if let Err(error) = ops::server::clock_judged(&self.transactor, &self.name, &cause).await {
            tracing::warn!(%error, "cannot record what became of the clock");
        }
    }

    /// Publishes what was found, and returns the standing before.
    fn publish(&self, known: &Known, own_wall_ms: i64, judgement: Judgement) -> Standing {
        let Judgement { standing, target_ms, .. } = judgement;
        let takes_part = standing == Standing::TakesPart;
        let skew = |wall_ms: i64| wall_ms.saturating_sub(target_ms);
        let own = ServerClock { skew_ms: skew(own_wall_ms), ahead_ms: 0, takes_part };
        let other = |(name, (_, measured)): (&ServerName, &(Instant, Measured))| {
            let Measured { wall_ms, ahead_ms, takes_part, .. } = *measured;
            (name.clone(), ServerClock { skew_ms: skew(wall_ms), ahead_ms, takes_part })
        };
        let servers = known.iter().map(other).chain([(self.name.clone(), own)]).collect();
        let ahead_ms = target_ms.saturating_neg();
        self.table.send_replace(ClockTable { standing, ahead_ms, servers }).standing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_brought_to_the_clocks_is_warned_of_with_how_long_it_takes_and_what_else_there_is() {
        let table = |ahead_ms| ClockTable { ahead_ms, ..ClockTable::default() };
        assert!(table(999).warnings().is_empty());
        let ahead = table(3 * 3_600_000).warnings().concat();
        assert!(ahead.contains("is 3h ahead of most") && ahead.contains("takes 1d or more"), "{ahead}");
        assert!(
            ahead.contains("stop all servers, then start them") && ahead.contains("restore a backup"),
            "{ahead}"
        );
        let behind = table(-3_600_000).warnings().concat();
        assert!(behind.contains("is 1h behind most") && behind.contains("takes 2d"), "{behind}");
    }
}
