//! Random histories of outages: what the new version really does, and what is away when.

use bellwether_core::records::external::StalenessLimits;
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::words::time::Span;
use proptest::prelude::*;

use crate::outages::{STEP, SUSPECT};

/// Something that is away for a while.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outage {
    /// Nobody decides, and nobody can report: all servers, the store, or the time between two leaders.
    Servers,
    /// A leader ends and another one begins at once.
    NewLeader,
    /// The network of one machine; it goes on working.
    Network(usize),
    /// One machine: it stops working and forgets nothing.
    Machine(usize),
    /// The controllers of all external targets, with what they do.
    Controller,
}

/// What the new version does on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    /// It runs, once the machine has worked on it for long enough.
    Good,
    /// It runs, and its checks fail.
    Sick,
    /// It runs and is healthy, and fails its checks before the soak is over.
    Sickens,
    /// It is never done.
    Hangs,
}

/// A rollout, and what is away during it.
#[derive(Debug, Clone)]
pub(crate) struct OutageHistory {
    pub(crate) external: bool,
    pub(crate) truth: Truth,
    /// Whether the work goes on only while the control plane answers, as that of a controller's does.
    pub(crate) needs_server: bool,
    pub(crate) work: u64,
    /// Whether the agents measure soaks themselves.
    pub(crate) measures: bool,
    /// After how many seconds a version that sickens does.
    pub(crate) sick_after: u64,
    /// Seconds between two reports of a controller.
    pub(crate) every: u64,
    pub(crate) outages: Vec<(Outage, u64, u64)>,
    pub(crate) policy: Policy,
    pub(crate) machines: usize,
}

fn outage(machines: usize) -> impl Strategy<Value = (Outage, u64, u64)> {
    let what = prop_oneof![
        3 => Just(Outage::Servers),
        1 => Just(Outage::NewLeader),
        2 => (0..machines).prop_map(Outage::Network),
        2 => (0..machines).prop_map(Outage::Machine),
        2 => Just(Outage::Controller),
    ];
    (what, 0..600_u64, prop_oneof![Just(5_u64), Just(15), 10..60_u64, 60..4_000_u64])
}

/// Without all but the first outage of each machine that is too short to be noticed: a deadline allows for one of them.
fn once_unnoticed(mut outages: Vec<(Outage, u64, u64)>) -> Vec<(Outage, u64, u64)> {
    let mut unnoticed = Vec::new();
    outages.retain(|(outage, _, lasts)| match outage {
        Outage::Network(machine) | Outage::Machine(machine) if *lasts <= SUSPECT => {
            let is_first = !unnoticed.contains(machine);
            unnoticed.push(*machine);
            is_first
        }
        Outage::Network(_)
        | Outage::Machine(_)
        | Outage::Servers
        | Outage::NewLeader
        | Outage::Controller => true,
    });
    outages
}

pub(crate) fn history(truth: impl Strategy<Value = Truth> + 'static) -> impl Strategy<Value = OutageHistory> {
    let shape = (any::<bool>(), any::<bool>(), 1..5_usize, 1..30_u64, 0..25_u64, 1..18_u64);
    (truth, shape, any::<(bool, bool)>(), (1..4_u32, 0..25_u64)).prop_flat_map(
        |(truth, (external, needs_server, machines, work, soak, every), (fail_fast, measures), rest)| {
            let (batch, sick_after) = rest;
            let soak = if truth == Truth::Sickens { soak.max(2) } else { soak };
            let gap = if external { StalenessLimits::default().longest_gap() } else { Span::ZERO };
            // A node reports at once.
            let slack = if external { 2 * every + 4 } else { 2 };
            let draft = PolicyDraft {
                batch: batch.to_string().parse().ok(),
                soak: Some(Span::from_secs(soak * STEP)),
                fail_fast: Some(fail_fast),
                unreachable: "100%".parse().ok(),
                // Enough for the work, the way of the reports and the soak, and not a step more; of external targets also
                // for the longest time between reports that still counts as contact.
                deadline: Some(Span::from_secs((work + soak + slack) * STEP).plus(gap)),
                ..PolicyDraft::default()
            };
            let policy = Policy::new(draft).unwrap();
            proptest::collection::vec(outage(machines), 0..6).prop_map(once_unnoticed).prop_map(
                move |outages| OutageHistory {
                    external,
                    truth,
                    needs_server,
                    work: work * STEP,
                    // Contact alone cannot tell a sickness from a moment that nobody noticed.
                    measures: measures || truth == Truth::Sickens,
                    sick_after: sick_after % soak.saturating_sub(1).max(1) * STEP,
                    every: every * STEP,
                    outages,
                    policy: policy.clone(),
                    machines,
                },
            )
        },
    )
}
