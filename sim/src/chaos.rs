//! Faults and their times, drawn from the seed; each is repaired after a while.

use bellwether_core::words::random::RandomStream;
use bellwether_store::testing::faulty::FaultInjection;

/// Number of agents that offer to host logical nodes: the first ones.
pub const HOSTS: usize = 3;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disruption {
    /// A server is killed.
    Kill(usize),
    /// A server is paused.
    Stand(usize),
    /// A server cannot reach the store, while agents can reach it.
    Cut(usize),
    /// A server's connection to the store misbehaves.
    StoreFaults(usize, FaultInjection),
    /// An agent cannot reach one server.
    Apart(usize, usize),
    /// An agent cannot reach any server.
    Alone(usize),
    /// An agent is killed.
    KillAgent(usize),
    /// An agent is paused.
    StandAgent(usize),
    /// The machine of an agent is suspended, with its clocks.
    SuspendAgent(usize),
    /// An agent is killed, and loses everything that it kept.
    WipeAgent(usize),
    /// All servers are killed.
    KillAll,
    /// The store compacts its history.
    Compact,
    /// The system clock of a server is set by so many milliseconds.
    ClockStep(usize, i64),
    /// Somebody deletes the key of the leader from the store.
    DeleteLeader,
    /// Somebody deletes the key of a server's membership from the store.
    DeleteMembership(usize),
}

/// Which faults may occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FaultMix {
    /// All faults, including etcd's known defects.
    Everything,
    /// Faults of networks and machines; the store is correct.
    Honest,
    /// Long pauses of servers while their connections to the store are slow.
    Standing,
    /// Watches that miss changes.
    Forgetful,
    /// Faults of agents above all, which run workflows and host the manager of a cluster; some lose their ledger.
    Work,
    /// Data stores that die, start, take over and are upgraded, and reactions to that, under faults of networks and machines.
    Stores,
    /// Hosts of logical nodes that are cut off, or stand still, for longer than another one waits.
    Hosts,
    /// Outages of up to ten minutes of servers, agents and the network between them. Runs on nodes fail for bad versions
    /// only, so that no good one may be found bad.
    Outages,
    /// System clocks that differ, go at different speeds, stand still while their machine is suspended, and are set by up to hours, also while
    /// their servers restart. Of three
    /// servers two answer at any time.
    Clocks,
    /// Keys of the leader and of servers that are deleted while their leases are renewed.
    Deletes,
}

/// The next fault: the time until it starts, what it is, and how long it lasts, in milliseconds.
pub fn next(
    chance: &mut RandomStream,
    servers: usize,
    agents: usize,
    mix: FaultMix,
) -> (u64, Disruption, u64) {
    let pause = 500 + chance.below(9_000);
    let longest = if chance.below(3) == 0 { 30_000 } else { 4_000 };
    let lasts = 200 + chance.below(longest);
    let server = pick(chance, servers);
    let agent = pick(chance, agents);
    let blow = match (mix, chance.below(20)) {
        (FaultMix::Standing, 0..=9) => {
            return (pause, Disruption::Stand(server), 6_000 + chance.below(6_000));
        }
        (FaultMix::Standing, _) => {
            Disruption::StoreFaults(server, FaultInjection { slow_ms: 3_000, ..FaultInjection::default() })
        }
        (FaultMix::Forgetful, 0..=14) => Disruption::StoreFaults(
            server,
            FaultInjection { lost_commits: 200_000, ..FaultInjection::default() },
        ),
        (FaultMix::Outages, of) => {
            let longest = if chance.below(4) == 0 { 600_000 } else { 90_000 };
            return (10_000 + chance.below(60_000), outage(server, agent, of), 2_000 + chance.below(longest));
        }
        (FaultMix::Hosts, of) => {
            let host = pick(chance, HOSTS);
            let blow = if of < 10 { Disruption::Alone(host) } else { Disruption::StandAgent(host) };
            return (5_000 + chance.below(20_000), blow, 40_000 + chance.below(80_000));
        }
        (FaultMix::Clocks, of) => return clocks(chance, server, agent, of),
        (FaultMix::Deletes, of) => {
            let blow = match of {
                0..=7 => Disruption::DeleteLeader,
                8..=15 => Disruption::DeleteMembership(server),
                16..=17 => Disruption::Stand(server),
                _ => Disruption::Cut(server),
            };
            return (5_000 + chance.below(20_000), blow, lasts);
        }
        (FaultMix::Work, of) => {
            let longest = if chance.below(3) == 0 { 150_000 } else { 6_000 };
            let blow = work(chance, server, agent, of);
            return (pause, blow, 200 + chance.below(longest));
        }
        (FaultMix::Everything | FaultMix::Honest | FaultMix::Forgetful | FaultMix::Stores, of) => {
            any(chance, mix, server, agent, of)
        }
    };
    (pause, blow, lasts)
}

/// A fault that takes something away for as long as it lasts.
const fn outage(server: usize, agent: usize, of: u64) -> Disruption {
    match of {
        0..=4 => Disruption::KillAll,
        5..=6 => Disruption::Kill(server),
        7..=8 => Disruption::Stand(server),
        9..=10 => Disruption::Cut(server),
        11 => Disruption::Apart(agent, server),
        12..=14 => Disruption::Alone(agent),
        15..=17 => Disruption::KillAgent(agent),
        18 => Disruption::SuspendAgent(agent),
        _ => Disruption::StandAgent(agent),
    }
}

/// A fault of a host of runs, or of what tells it what to run.
fn work(chance: &mut RandomStream, server: usize, agent: usize, of: u64) -> Disruption {
    match of {
        0..=1 => Disruption::Kill(server),
        2 => Disruption::Stand(server),
        3 => Disruption::Cut(server),
        4 => Disruption::StoreFaults(server, trouble(chance, FaultMix::Work)),
        5..=8 => Disruption::Alone(agent),
        9..=12 => Disruption::KillAgent(agent),
        13..=14 => Disruption::StandAgent(agent),
        15 => Disruption::SuspendAgent(agent),
        16..=17 => Disruption::WipeAgent(agent),
        18 => Disruption::KillAll,
        _ => Disruption::Compact,
    }
}

fn any(chance: &mut RandomStream, mix: FaultMix, server: usize, agent: usize, of: u64) -> Disruption {
    match of {
        0..=3 => Disruption::Kill(server),
        4..=6 => Disruption::Stand(server),
        7..=8 => Disruption::Cut(server),
        9..=11 => Disruption::StoreFaults(server, trouble(chance, mix)),
        12..=13 => Disruption::Apart(agent, server),
        14 => Disruption::Alone(agent),
        15..=16 => Disruption::KillAgent(agent),
        17 if chance.below(2) == 0 => Disruption::SuspendAgent(agent),
        17 => Disruption::StandAgent(agent),
        18 => Disruption::KillAll,
        _ => Disruption::Compact,
    }
}

/// A clock that is set or stands still, or a fault beside it; the next one begins when it is over.
fn clocks(chance: &mut RandomStream, server: usize, agent: usize, of: u64) -> (u64, Disruption, u64) {
    let pause = 9_000 + chance.below(9_000);
    let (blow, longest) = match of {
        0..=6 => (Disruption::ClockStep(server, clock_step(chance)), 3_000),
        7..=12 => (Disruption::Kill(server), 3_000),
        13..=14 => (Disruption::Cut(server), 3_000),
        _ => (Disruption::SuspendAgent(agent), 90_000),
    };
    (pause, blow, 200 + chance.below(longest))
}

/// By how much a system clock is set: minutes or hours, ahead or behind.
fn clock_step(chance: &mut RandomStream) -> i64 {
    let longest = if chance.below(2) == 0 { 120_000 } else { 10_800_000 };
    let step = i64::try_from(1_000 + chance.below(longest)).unwrap_or_default();
    if chance.below(2) == 0 { step } else { step.saturating_neg() }
}

fn pick(chance: &mut RandomStream, of: usize) -> usize {
    usize::try_from(chance.below(u64::try_from(of).unwrap_or(1))).unwrap_or_default()
}

fn trouble(chance: &mut RandomStream, mix: FaultMix) -> FaultInjection {
    let mut share = |most: u64| u32::try_from(chance.below(most)).unwrap_or_default();
    let mut trouble = FaultInjection {
        slow_ms: u64::from(share(3_000)),
        refused: share(200_000),
        unanswered: share(200_000),
        repeated: share(300_000),
        ..FaultInjection::default()
    };
    if mix == FaultMix::Everything {
        trouble.lost_deletes = share(800_000);
        trouble.lost_commits = share(30_000);
        trouble.stale = share(200_000);
        trouble.renews_what_ended = share(2) == 1;
    }
    trouble
}
