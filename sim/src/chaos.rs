//! What goes wrong, and when: drawn from the seed, each thing mended after a while.

use bellwether_core::rollout::rehearsal::chance::Chance;
use bellwether_store::testing::line::Trouble;

/// One thing that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blow {
    /// A server is killed.
    Kill(usize),
    /// A server stands still.
    Stand(usize),
    /// A server is cut off from the store, not from agents.
    Cut(usize),
    /// A server's line to the store makes trouble.
    Trouble(usize, Trouble),
    /// An agent is cut off from one server.
    Apart(usize, usize),
    /// An agent is cut off from all servers.
    Alone(usize),
    /// An agent is killed.
    KillAgent(usize),
    /// An agent stands still.
    StandAgent(usize),
    /// Every server is killed.
    KillAll,
    /// The store forgets its history.
    Compact,
}

/// What may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mood {
    /// Everything, etcd's known misbehaviours among it.
    Everything,
    /// What every network and every machine does; the store keeps its word.
    Honest,
    /// Servers stand still for long while their lines to the store are slow.
    Standing,
    /// Watches do not tell everything.
    Forgetful,
}

/// The next blow: how long until it falls, what it is, and how long it lasts, in milliseconds.
pub fn next(chance: &mut Chance, servers: usize, agents: usize, mood: Mood) -> (u64, Blow, u64) {
    let pause = 500 + chance.below(9_000);
    let longest = if chance.below(3) == 0 { 30_000 } else { 4_000 };
    let lasts = 200 + chance.below(longest);
    let server = pick(chance, servers);
    let agent = pick(chance, agents);
    let blow = match (mood, chance.below(20)) {
        (Mood::Standing, 0..=9) => {
            return (pause, Blow::Stand(server), 6_000 + chance.below(6_000));
        }
        (Mood::Standing, _) => Blow::Trouble(server, Trouble { slow_ms: 3_000, ..Trouble::default() }),
        (Mood::Forgetful, 0..=14) => {
            Blow::Trouble(server, Trouble { lost_commits: 200_000, ..Trouble::default() })
        }
        (Mood::Everything | Mood::Honest | Mood::Forgetful, of) => any(chance, mood, (server, agent), of),
    };
    (pause, blow, lasts)
}

fn any(chance: &mut Chance, mood: Mood, (server, agent): (usize, usize), of: u64) -> Blow {
    match of {
        0..=3 => Blow::Kill(server),
        4..=6 => Blow::Stand(server),
        7..=8 => Blow::Cut(server),
        9..=11 => Blow::Trouble(server, trouble(chance, mood)),
        12..=13 => Blow::Apart(agent, server),
        14 => Blow::Alone(agent),
        15..=16 => Blow::KillAgent(agent),
        17 => Blow::StandAgent(agent),
        18 => Blow::KillAll,
        _ => Blow::Compact,
    }
}

fn pick(chance: &mut Chance, of: usize) -> usize {
    usize::try_from(chance.below(u64::try_from(of).unwrap_or(1))).unwrap_or_default()
}

fn trouble(chance: &mut Chance, mood: Mood) -> Trouble {
    let mut share = |most: u64| u32::try_from(chance.below(most)).unwrap_or_default();
    let mut trouble = Trouble {
        slow_ms: u64::from(share(3_000)),
        refused: share(200_000),
        unanswered: share(200_000),
        repeated: share(300_000),
        ..Trouble::default()
    };
    if mood == Mood::Everything {
        trouble.lost_deletes = share(800_000);
        trouble.lost_commits = share(30_000);
        trouble.stale = share(200_000);
        trouble.renews_what_ended = share(2) == 1;
    }
    trouble
}
