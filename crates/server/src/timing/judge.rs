//! Whether a server's time is right, and where to steer it: from what it measured of the others. Reads no clock.

use bellwether_core::decide::slots::CLOCK_BOUND;
use bellwether_core::words::time::Span;

/// Smallest difference that is worth steering by: calls between servers are not answered in an even time.
const WORTH_STEERING_MS: u64 = 20;

/// What is known of another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedPeer {
    /// Whether it leads.
    pub leads: bool,
    /// By how much its time is ahead of one's own, in milliseconds.
    pub ahead_ms: i64,
    /// By how much its system clock is ahead of one's own time, in milliseconds.
    pub wall_ms: i64,
}

/// Whether a server takes part in what needs the right time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Standing {
    /// Its time is that of the others.
    #[default]
    TakesPart,
    /// Its time is ahead of that of the others by so many milliseconds, or behind it if negative: more than the bound.
    Beyond {
        /// By how much.
        by_ms: i64,
    },
}

/// The outcome for one server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Whether it takes part.
    pub standing: Standing,
    /// What its time is to gain little by little, in milliseconds; negative if it is to lose.
    pub steer_ms: i64,
    /// What its time is to gain at once, in milliseconds.
    pub step_ms: u64,
    /// By how much what most system clocks show is ahead of its time, in milliseconds.
    pub target_ms: i64,
}

/// Judges a server by its system clock, in milliseconds ahead of its time, and by the others.
///
/// Most servers are right, or at least two others that agree. Otherwise the leader is, so that of two servers one always is. The time to steer to is
/// the median of all system clocks, of two the one that is nearer to the time that they have.
#[must_use]
pub fn judge(own_wall_ms: i64, peers: &[JudgedPeer]) -> Judgement {
    let right_ms = right(peers);
    let walls = peers.iter().map(|peer| peer.wall_ms).chain([own_wall_ms]).collect();
    let target_ms = median(walls, right_ms).unwrap_or_default();
    if right_ms.unsigned_abs() > CLOCK_BOUND.as_millis() {
        let standing = Standing::Beyond { by_ms: right_ms.saturating_neg() };
        // Time is never set back: one that is ahead goes slower until it is right.
        return Judgement {
            standing,
            steer_ms: right_ms.min(0),
            step_ms: u64::try_from(right_ms).unwrap_or_default(),
            target_ms,
        };
    }
    let steer_ms = if target_ms.unsigned_abs() < WORTH_STEERING_MS { 0 } else { target_ms };
    Judgement { standing: Standing::TakesPart, steer_ms, step_ms: 0, target_ms }
}

/// "3h ahead of", "2s behind".
pub(super) fn apart(ms: i64) -> String {
    // Of two measurements of the same clock one is 3h and the other 2ms less.
    let step = if ms.unsigned_abs() < 60_000 { 1 } else { 1_000 };
    let span = Span::from_millis(ms.unsigned_abs().saturating_add(step / 2) / step * step);
    if ms >= 0 { format!("{} ahead of", span.brief()) } else { format!("{} behind", span.brief()) }
}

/// By how much the right time is ahead of one's own.
fn right(peers: &[JudgedPeer]) -> i64 {
    let near_own =
        peers.iter().filter(|peer| peer.ahead_ms.unsigned_abs() <= CLOCK_BOUND.as_millis()).count();
    // With this server, most of them have its time.
    if near_own >= peers.len().div_ceil(2) {
        return 0;
    }
    if let Some(middle) = median(peers.iter().map(|peer| peer.ahead_ms).collect(), 0) {
        let near = |peer: &&JudgedPeer| peer.ahead_ms.abs_diff(middle) <= CLOCK_BOUND.as_millis();
        let agreeing = peers.iter().filter(near).count();
        if agreeing >= 2 && agreeing > peers.len() / 2 {
            return middle;
        }
    }
    peers.iter().find(|peer| peer.leads).map_or(0, |peer| peer.ahead_ms)
}

/// The median; of the two in the middle the one that is nearer to `to`.
fn median(mut of: Vec<i64>, to: i64) -> Option<i64> {
    of.sort_unstable();
    let upper = *of.get(of.len() / 2)?;
    if of.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *of.get((of.len() / 2).checked_sub(1)?)?;
    Some(if lower.abs_diff(to) <= upper.abs_diff(to) { lower } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(ahead_ms: i64, wall_ms: i64) -> JudgedPeer {
        JudgedPeer { leads: false, ahead_ms, wall_ms }
    }

    fn leader(ahead_ms: i64, wall_ms: i64) -> JudgedPeer {
        JudgedPeer { leads: true, ..peer(ahead_ms, wall_ms) }
    }

    const HOUR: i64 = 3_600_000;

    #[test]
    fn a_difference_is_told_to_the_second() {
        assert_eq!([apart(3 * HOUR - 4), apart(-3 * HOUR - 400)], ["3h ahead of", "3h behind"]);
    }

    #[test]
    fn a_server_alone_follows_its_system_clock_little_by_little() {
        let right = |target_ms| Judgement { steer_ms: target_ms, target_ms, ..Judgement::default() };
        assert_eq!(judge(0, &[]), right(0));
        assert_eq!(judge(10, &[]), Judgement { steer_ms: 0, ..right(10) }, "that is not worth it");
        assert_eq!(judge(-3 * HOUR, &[]), right(-3 * HOUR));
        assert_eq!(judge(HOUR, &[]), right(HOUR));
    }

    #[test]
    fn of_three_servers_the_median_of_their_system_clocks_is_steered_to() {
        let steered = |own, peers: &[JudgedPeer]| judge(own, peers).steer_ms;
        assert_eq!(steered(HOUR, &[peer(0, 100), peer(0, -50)]), 100);
        assert_eq!(steered(-100, &[peer(0, 3 * HOUR), peer(0, 0)]), 0);
        // All have the time of the one that is hours ahead: it is the others that are right.
        assert_eq!(steered(0, &[leader(0, -3 * HOUR), peer(0, -3 * HOUR)]), -3 * HOUR);
    }

    #[test]
    fn of_two_servers_the_leader_has_the_time_and_the_nearer_system_clock_is_steered_to() {
        let other = judge(HOUR, &[leader(0, 60)]);
        assert_eq!(other, Judgement { steer_ms: 60, target_ms: 60, ..Judgement::default() });
        let behind = judge(0, &[leader(10_000, 10_000)]);
        let beyond = Standing::Beyond { by_ms: -10_000 };
        assert_eq!(behind, Judgement { standing: beyond, steer_ms: 0, step_ms: 10_000, target_ms: 10_000 });
        let the_leader = judge(0, &[peer(-10_000, 0)]);
        assert_eq!(the_leader.standing, Standing::TakesPart);
    }

    #[test]
    fn one_that_two_others_contradict_takes_no_part_though_it_leads() {
        let ahead = judge(0, &[peer(-10_000, 0), peer(-9_800, 0)]);
        let beyond = Standing::Beyond { by_ms: 9_800 };
        assert_eq!(ahead, Judgement { standing: beyond, steer_ms: -9_800, step_ms: 0, target_ms: 0 });
        // Others that contradict each other prove nothing.
        assert_eq!(judge(0, &[peer(-10_000, 0), peer(10_000, 0)]).standing, Standing::TakesPart);
    }

    #[test]
    fn two_that_take_part_are_never_further_apart_than_the_slack() {
        let slack_ms = i64::try_from(CLOCK_BOUND.as_millis() * 2).unwrap();
        let all = [-900, -500, -200, 0, 300, 500, 800];
        for times in all.iter().flat_map(|one| all.iter().map(|two| [0, *one, *two])) {
            let takes_part = |own: &usize| {
                let others = (0..3).filter(|other| other != own);
                let seen =
                    |other: usize| JudgedPeer { leads: other == 0, ..peer(times[other] - times[*own], 0) };
                judge(0, &others.map(seen).collect::<Vec<_>>()).standing == Standing::TakesPart
            };
            let part: Vec<i64> = (0..3).filter(takes_part).map(|own| times[own]).collect();
            assert!(!part.is_empty(), "{times:?}");
            let apart = part.iter().max().unwrap() - part.iter().min().unwrap();
            assert!(apart <= slack_ms, "{times:?}: {part:?}");
        }
    }
}
