//! The law of observable time: whatever is away, and for however long, no good version is ever condemned and no bad one is
//! ever promoted; and once nothing is away any more, every rollout ends.
//!
//! Machines apply what they are assigned, behind a control plane, a network and a controller that come and go. The engine
//! sees what it would see of them, and nothing else.

use bellwether_core::records::entity::{Entity, TargetSource};
use bellwether_core::records::external::{ExternalTarget, StalenessLimits};
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::records::report::{TargetActivity, TargetHealth};
use bellwether_core::records::target::TargetState;
use bellwether_core::rollout::environment::Watch;
use bellwether_core::rollout::external::{TargetReport, absorb, is_news, observation};
use bellwether_core::rollout::observation::PresenceState;
use bellwether_core::rollout::operations;
use bellwether_core::words::counter::AssignmentNumber;
use bellwether_core::words::label::Labels;
use bellwether_core::words::name::TargetName;
use bellwether_core::words::time::{Span, Timestamp};
use proptest::prelude::*;

use crate::world::{World, evidence, newcomer};

/// Seconds between two looks at the world.
const STEP: u64 = 5;

/// Silence after which a node is suspect, and after which it is unreachable, in seconds.
const SUSPECT: u64 = 19;
const UNREACHABLE: u64 = 29;

/// How long a node that lost its server may be shown as up: as a server's default limits have it.
const GRACE: u64 = 20;

/// Something that is away for a while.
#[derive(Debug, Clone, Copy)]
enum Outage {
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
enum Truth {
    /// It runs, once the machine has worked on it for long enough.
    Good,
    /// It runs, and its checks fail.
    Sick,
    /// It is never done.
    Hangs,
}

/// One machine, as it really is.
#[derive(Debug, Clone, Default)]
struct Machine {
    /// The assignment it has received.
    assignment: AssignmentNumber,
    /// The version of that assignment, while it works on it.
    pending: Option<String>,
    running: String,
    worked: u64,
    healthy_since: Option<Timestamp>,
    /// Seconds without contact.
    quiet: u64,
    /// What it last reported successfully.
    reported: Option<(AssignmentNumber, String, bool)>,
    external: ExternalTarget,
}

#[derive(Debug, Clone)]
struct OutageHistory {
    external: bool,
    truth: Truth,
    /// Whether the work goes on only while the control plane answers, as that of a controller's does.
    needs_server: bool,
    work: u64,
    /// Seconds between two reports of a controller.
    every: u64,
    outages: Vec<(Outage, u64, u64)>,
    policy: Policy,
    machines: usize,
}

struct Play {
    history: OutageHistory,
    world: World,
    machines: Vec<Machine>,
    second: u64,
    servers_were_away: bool,
}

fn name(index: usize) -> TargetName {
    format!("web-{index}").parse().unwrap()
}

impl Play {
    fn new(history: OutageHistory) -> Self {
        let mut world = World::new();
        if history.external {
            let source = TargetSource::External(StalenessLimits::default());
            let entity = Entity { source, ..world.entity.clone() };
            world.operate(Ok(entity));
        }
        world.set_policy(history.policy.clone());
        world.environment.watch =
            Watch { since: world.now, grace: Span::from_secs(GRACE), detection: Span::from_secs(SUSPECT) };
        let v1 = "v1".parse().unwrap();
        for index in 0..history.machines {
            world.see(&name(index), Some(newcomer(Some(&v1), world.now)));
        }
        let machine = Machine { running: "v1".into(), healthy_since: Some(world.now), ..Machine::default() };
        let machines = vec![machine; history.machines];
        let mut play = Self { history, world, machines, second: 0, servers_were_away: false };
        play.start("v1");
        // The first version is there already.
        (0..60).for_each(|_| play.step(&[]));
        assert_eq!(play.world.progress.last_known_good, Some(v1), "{:?}", play.world.newest());
        play
    }

    fn start(&mut self, version: &str) {
        let (entity, progress) = (&self.world.entity, &self.world.progress);
        let intent = self.world.intent("");
        let result = operations::start(entity, progress, version.parse().unwrap(), intent);
        assert_eq!(self.world.operate(result), None);
    }

    fn away(&self, from: u64) -> Vec<Outage> {
        let at = self.second - from;
        let now = |(_, begin, lasts): &&(Outage, u64, u64)| *begin <= at && at < begin + lasts;
        self.history.outages.iter().filter(now).map(|(outage, ..)| *outage).collect()
    }

    fn step(&mut self, away: &[Outage]) {
        self.world.pass_time(Span::from_secs(STEP));
        self.second += STEP;
        let has = |wanted: fn(&Outage) -> bool| away.iter().any(wanted);
        let servers = has(|outage| matches!(outage, Outage::Servers));
        let controller = has(|outage| matches!(outage, Outage::Controller));
        let renewed = has(|outage| matches!(outage, Outage::NewLeader));
        if !servers && (self.servers_were_away || renewed) {
            self.world.environment.watch.since = self.world.now;
        }
        for index in 0..self.machines.len() {
            let cut = away.iter().any(|outage| matches!(outage, Outage::Network(at) if *at == index));
            let off = away.iter().any(|outage| matches!(outage, Outage::Machine(at) if *at == index));
            let heard = !servers && !off && if self.history.external { !controller } else { !cut };
            let idle = off || self.history.external && controller || self.history.needs_server && !heard;
            if off {
                // It reports where it stands as soon as it goes on.
                self.machines[index].reported = None;
            }
            self.work(index, !idle);
            if self.history.external {
                self.controller_calls(index, heard);
            } else {
                self.agent_talks(index, heard, servers);
            }
        }
        if !servers {
            self.world.decide();
        }
        self.servers_were_away = servers;
    }

    fn work(&mut self, index: usize, works: bool) {
        let (now, truth, needed) = (self.world.now, self.history.truth, self.history.work);
        let machine = &mut self.machines[index];
        let Some(version) = machine.pending.clone().filter(|_| works) else { return };
        machine.worked += STEP;
        let new = version == "v2";
        if machine.worked >= needed && !(new && truth == Truth::Hangs) {
            machine.running = version;
            machine.pending = None;
            machine.healthy_since = (!new || truth == Truth::Good).then_some(now);
        }
    }

    fn accept(machine: &mut Machine, state: Option<&TargetState>) {
        let Some(state) = state.filter(|state| state.assignment > machine.assignment) else { return };
        machine.assignment = state.assignment;
        machine.worked = 0;
        let version = state.version.to_string();
        machine.pending = (version != machine.running).then_some(version);
    }

    fn agent_talks(&mut self, index: usize, heard: bool, servers_away: bool) {
        let (name, now) = (name(index), self.world.now);
        let state = self.world.states.get(&name).cloned();
        let machine = &mut self.machines[index];
        if servers_away {
            return;
        }
        if !heard {
            machine.quiet += STEP;
            // After the servers' own absence silence counts from their return, and they allow time to reconnect.
            let watched = now.since(self.world.environment.watch.since).as_millis() / 1_000;
            let quiet = machine.quiet.min(watched.saturating_sub(GRACE - SUSPECT.min(GRACE)));
            let contact = match quiet {
                quiet if quiet >= UNREACHABLE => PresenceState::Unreachable,
                quiet if quiet >= SUSPECT => PresenceState::Suspect,
                _ => return,
            };
            if self.world.observations[&name].contact != contact {
                self.world.change(&name, |seen| seen.contact = contact);
            }
            return;
        }
        machine.quiet = 0;
        Self::accept(machine, state.as_ref());
        let healthy = machine.healthy_since.is_some() || machine.pending.is_some();
        let report = (machine.assignment, machine.running.clone(), healthy);
        let machine = machine.clone();
        if self.world.observations[&name].contact != PresenceState::Up {
            self.world.change(&name, |seen| seen.contact = PresenceState::Up);
        }
        if machine.reported.as_ref() != Some(&report) {
            self.machines[index].reported = Some(report);
            self.world.change(&name, |seen| {
                seen.reported_at = now;
                seen.answering = machine.assignment;
                seen.running = machine.running.parse().ok();
                seen.activity = match machine.pending {
                    Some(_) => TargetActivity::Applying { attempt: 1 },
                    None => TargetActivity::Nothing,
                };
                seen.healthy_since = machine.healthy_since;
                seen.health = if healthy {
                    TargetHealth::Healthy
                } else {
                    TargetHealth::Failing { evidence: evidence("it is sick") }
                };
            });
        }
    }

    fn controller_calls(&mut self, index: usize, heard: bool) {
        let (name, now) = (name(index), self.world.now);
        let limits = StalenessLimits::default();
        let known = self.machines[index].external.clone();
        if heard && self.second % self.history.every < STEP {
            let expected =
                self.world.board.expected(&name).map(|(version, number)| (version.clone(), number));
            let machine = &mut self.machines[index];
            let error =
                (machine.healthy_since.is_none() && machine.pending.is_none()).then(|| "sick".to_owned());
            let report = TargetReport {
                target: name.clone(),
                running: machine.running.parse().ok(),
                error,
                assignment: None,
            };
            let known = Some(&known).filter(|known| known.reported_at > Timestamp::EPOCH);
            let expect = expected.as_ref().map(|(version, number)| (version, *number));
            let new = absorb(known, &report, expect, limits, now);
            if is_news(known, &new, limits.grain()) {
                machine.external = new;
            }
            // The answer carries what is to run.
            Self::accept(machine, self.world.states.get(&name));
            if machine.external.assigned != machine.assignment {
                machine.external.assigned = machine.assignment;
                machine.external.contact_since = now;
            }
        } else if !self.servers_were_away {
            let watched = now.since(self.world.environment.watch.since);
            let quiet = now.since(known.reported_at);
            if !known.silent && quiet >= limits.unreachable_after && watched >= limits.unreachable_after {
                self.machines[index].external = known.turned_silent(now).unwrap();
            }
        }
        if self.machines[index].external != known {
            let seen = observation(&self.machines[index].external, Labels::default(), None);
            self.world.see(&name, Some(seen));
        }
    }
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

fn history(truth: impl Strategy<Value = Truth> + 'static) -> impl Strategy<Value = OutageHistory> {
    let shape = (any::<bool>(), any::<bool>(), 1..5_usize, 1..30_u64, 0..25_u64, 1..18_u64);
    (truth, shape, any::<bool>(), 1..4_u32).prop_flat_map(
        |(truth, (external, needs_server, machines, work, soak, every), fail_fast, batch)| {
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
                    every: every * STEP,
                    outages,
                    policy: policy.clone(),
                    machines,
                },
            )
        },
    )
}

/// Plays a history to its end, which must come.
fn play(history: OutageHistory) -> Play {
    let mut play = Play::new(history);
    play.start("v2");
    let begin = play.second;
    for _ in 0..8_000 {
        let away = play.away(begin);
        play.step(&away);
        let quiet = play.history.outages.iter().all(|(_, at, lasts)| at + lasts < play.second - begin);
        let over = play.world.newest().is_some_and(|rollout| rollout.number.get() == 2 && rollout.is_over());
        if quiet && over {
            return play;
        }
    }
    panic!("it never ends: {:?}\n{:#?}", play.world.newest(), play.world.states);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_good_version_is_never_condemned_whatever_is_away(history in history(Just(Truth::Good))) {
        let play = play(history);
        prop_assert_eq!(&play.world.progress.bad, &[], "{:#?}", play.world.newest());
        prop_assert_eq!(play.world.progress.last_known_good.as_ref().map(|good| good.as_str()), Some("v2"));
    }

    #[test]
    fn a_bad_version_is_never_promoted_whatever_is_away(
        history in history(prop_oneof![Just(Truth::Sick), Just(Truth::Hangs)]),
    ) {
        let play = play(history);
        prop_assert_eq!(play.world.progress.last_known_good.as_ref().map(|good| good.as_str()), Some("v1"));
    }
}
