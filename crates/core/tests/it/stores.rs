//! Rollouts over clusters of data stores: followers first, and never fewer voters than a quorum by our own hand, in random histories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_core::records::policy::ordering::TargetOrder;
use bellwether_core::records::policy::{Policy, PolicyDraft};
use bellwether_core::records::probes::StoreState;
use bellwether_core::records::rollout::{RolloutState, RolloutWait};
use bellwether_core::records::target::AssignmentPurpose;
use bellwether_core::rollout::stores::{StoreEnvironment, StoreRole, StoreStanding, quorum};
use bellwether_core::words::name::{ClusterName, NodeName, TargetName};
use bellwether_core::words::percent::{Amount, Percent};
use bellwether_core::words::time::Span;
use proptest::prelude::*;

use crate::acts::Act;
use crate::world::World;

const TARGETS: u8 = 8;

/// Two clusters of four stores each, with the policy's world; a store restarts while its target is in flight.
struct Play {
    world: World,
    stores: BTreeMap<u8, (StoreState, StoreRole)>,
}

fn name(target: u8) -> TargetName {
    format!("web-{target}").parse().unwrap()
}

const fn cluster(target: u8) -> u8 {
    target / 4
}

fn policy(batch: u32, order: TargetOrder, quorum: bool) -> Policy {
    Policy::new(PolicyDraft {
        batch: Some(Amount::Count(batch)),
        store: "db".parse().ok(),
        order: Some(order),
        quorum: Some(quorum),
        soak: Some(Span::ZERO),
        deadline: Some(Span::from_secs(100_000)),
        unreachable: Some(Amount::Share(Percent::ALL)),
        ..PolicyDraft::default()
    })
    .unwrap()
}

impl Play {
    fn new(policy: Policy) -> Self {
        let mut world = World::new();
        world.set_policy(policy);
        let mut play = Self { world, stores: BTreeMap::new() };
        for target in 0..TARGETS {
            let role = if target % 4 == 0 { StoreRole::Primary } else { StoreRole::Replica };
            play.stores.insert(target, (StoreState::Up, role));
            play.world.act(&Act::Join(target, 1));
        }
        play.decide();
        play
    }

    fn is_in_flight(&self, target: u8) -> bool {
        self.world.states.get(&name(target)).is_some_and(|state| state.is_in_flight())
    }

    fn environment(&self) -> StoreEnvironment {
        let mut environment = StoreEnvironment { probe: "db".parse().ok(), ..StoreEnvironment::default() };
        for (target, (state, role)) in &self.stores {
            let of: ClusterName = format!("c-{}", cluster(*target)).parse().unwrap();
            environment.clusters.insert(name(*target), of.clone());
            let node: NodeName = name(*target).as_str().parse().unwrap();
            let standing = StoreStanding {
                state: *state,
                role: *role,
                is_counted: *state == StoreState::Up,
                is_foreign: false,
            };
            environment.members.entry(of).or_default().insert(node, standing);
        }
        environment
    }

    /// Decides, and checks what was started against what was known.
    fn decide(&mut self) {
        self.world.environment.stores = Some(Arc::new(self.environment()));
        let before: BTreeSet<u8> = (0..TARGETS).filter(|target| self.is_in_flight(*target)).collect();
        self.world.decide();
        let started: Vec<u8> =
            (0..TARGETS).filter(|target| self.is_in_flight(*target) && !before.contains(target)).collect();
        let policy = self.world.entity.policy.clone();
        for target in &started {
            if policy.quorum {
                self.check_quorum(*target);
            }
            // What is bad is rolled back in any order.
            let is_update = self.world.states[&name(*target)].purpose == AssignmentPurpose::Update;
            if is_update && policy.order == TargetOrder::FollowersFirst {
                self.check_order(*target, &before);
            }
        }
    }

    fn of(&self, of: u8) -> impl Iterator<Item = (u8, StoreState, StoreRole)> + '_ {
        let own = self.stores.iter().filter(move |(target, _)| cluster(**target) == of);
        own.map(|(target, (state, role))| (*target, *state, *role))
    }

    fn check_quorum(&self, target: u8) {
        let (state, role) = self.stores[&target];
        if state != StoreState::Up || !role.votes() {
            return;
        }
        let voters = self.of(cluster(target)).filter(|(_, _, role)| role.votes()).count();
        let left = self.of(cluster(target)).filter(|(other, state, role)| {
            role.votes() && *state == StoreState::Up && !self.is_in_flight(*other)
        });
        let left = left.count();
        assert!(left >= quorum(voters), "web-{target} was started, and {left} of {voters} are left");
    }

    fn check_order(&self, target: u8, before: &BTreeSet<u8>) {
        let class = |state, role| if state == StoreState::Down { None } else { Some(role) };
        let (state, role) = self.stores[&target];
        assert_ne!(state, StoreState::Unknown, "web-{target} was started");
        let Some(rolling) = self.world.progress.rolling.clone() else { return };
        for (other, state, role_of) in self.of(cluster(target)).filter(|(other, _, _)| *other != target) {
            let is_behind = self.world.states.get(&name(other)).is_none_or(|of| of.version != rolling);
            let waits = is_behind || (before.contains(&other) && self.is_in_flight(other));
            let lower =
                state != StoreState::Unknown && class(state, role_of) < class(self.stores[&target].0, role);
            assert!(!(waits && lower), "web-{target} is {role:?} and was started before web-{other}");
        }
    }

    /// The targets in flight restart their stores, or have done so.
    fn restarts(&mut self, is_done: bool) {
        for target in 0..TARGETS {
            if !self.is_in_flight(target) {
                continue;
            }
            if is_done {
                let primary = self.of(cluster(target)).any(|(other, state, role)| {
                    other != target && state == StoreState::Up && role == StoreRole::Primary
                });
                let role = if primary { StoreRole::Replica } else { StoreRole::Primary };
                self.stores.insert(target, (StoreState::Up, role));
                self.world.act(&Act::Comply(target));
            } else {
                let role = self.stores[&target].1;
                self.stores.insert(target, (StoreState::Down, role));
            }
        }
        for of in 0..TARGETS / 4 {
            self.elect(of);
        }
    }

    /// A cluster without a primary that is up has another one.
    fn elect(&mut self, of: u8) {
        let up: Vec<(u8, StoreRole)> = self
            .of(of)
            .filter(|(_, state, _)| *state == StoreState::Up)
            .map(|(target, _, role)| (target, role))
            .collect();
        let has_one = up.iter().any(|(_, role)| *role == StoreRole::Primary);
        if let (false, Some((first, _))) = (has_one, up.first()) {
            for (target, (_, role)) in &mut self.stores {
                if cluster(*target) == of && *role == StoreRole::Primary {
                    *role = StoreRole::Replica;
                }
            }
            self.stores.insert(*first, (StoreState::Up, StoreRole::Primary));
        }
    }

    fn start(&mut self, version: u8) {
        self.world.act(&Act::Start(version));
        self.decide();
    }

    fn state(&self) -> Option<RolloutState> {
        self.world.newest().map(|rollout| rollout.state.clone())
    }

    /// Lets everything come up and comply until the rollout is over.
    fn ends(&mut self) {
        for _ in 0..60 {
            self.restarts(false);
            self.decide();
            self.restarts(true);
            for (state, _) in self.stores.values_mut() {
                *state = StoreState::Up;
            }
            for of in 0..TARGETS / 4 {
                self.elect(of);
            }
            self.world.pass_time(Span::from_secs(1));
            self.decide();
        }
        assert_eq!(self.state(), Some(RolloutState::Succeeded));
    }
}

#[test]
fn followers_are_updated_before_the_primary_of_their_own_cluster() {
    let mut play = Play::new(policy(8, TargetOrder::FollowersFirst, false));
    play.ends_first_rollout();
    play.start(2);
    let in_flight: Vec<u8> = (0..TARGETS).filter(|target| play.is_in_flight(*target)).collect();
    assert_eq!(in_flight, [1, 2, 3, 5, 6, 7], "the primaries wait");
    play.ends();
}

#[test]
fn a_quorum_is_kept_and_the_wait_says_who_is_missing() {
    let mut play = Play::new(policy(8, TargetOrder::FollowersFirst, true));
    play.ends_first_rollout();
    play.stores.insert(3, (StoreState::Unknown, StoreRole::Replica));
    play.stores.insert(7, (StoreState::Unknown, StoreRole::Replica));
    play.start(2);
    assert_eq!(
        (0..TARGETS).filter(|target| play.is_in_flight(*target)).count(),
        0,
        "three of four are needed"
    );
    let Some(RolloutState::Waiting(RolloutWait::Stores { reason })) = play.state() else {
        panic!("{:?}", play.state());
    };
    assert_eq!(reason, "cluster c-0 has 3 of 4 voting stores up and needs 3; not counted: web-3 (unknown)");
    play.stores.insert(3, (StoreState::Up, StoreRole::Replica));
    play.decide();
    assert_eq!(
        (0..4).filter(|target| play.is_in_flight(*target)).count(),
        1,
        "one at a time in a cluster of four"
    );
    play.ends();
}

#[test]
fn a_store_that_is_down_is_updated_first_without_a_quorum() {
    let mut play = Play::new(policy(8, TargetOrder::FollowersFirst, true));
    play.ends_first_rollout();
    play.stores.insert(2, (StoreState::Down, StoreRole::Replica));
    play.stores.insert(3, (StoreState::Down, StoreRole::Replica));
    play.start(2);
    let in_flight: Vec<u8> = (0..4).filter(|target| play.is_in_flight(*target)).collect();
    assert_eq!(in_flight, [2, 3], "their update costs nothing");
    play.ends();
}

#[derive(Debug, Clone)]
enum Event {
    Restart(bool),
    Store(u8, u8),
    Elect(u8, u8),
    Start(u8),
    Undo,
    Time,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => any::<bool>().prop_map(Event::Restart),
        4 => (0..TARGETS, 0..3_u8).prop_map(|(target, state)| Event::Store(target, state)),
        2 => (0..2_u8, 0..4_u8).prop_map(|(of, target)| Event::Elect(of, target)),
        1 => (2..5_u8).prop_map(Event::Start),
        1 => Just(Event::Undo),
        1 => Just(Event::Time),
    ]
}

impl Play {
    fn ends_first_rollout(&mut self) {
        self.start(1);
        self.ends();
    }

    fn is_primary(&mut self, of: u8, primary: u8) {
        for (other, (_, role)) in self.stores.iter_mut().filter(|(other, _)| cluster(**other) == of) {
            *role = if *other == primary { StoreRole::Primary } else { StoreRole::Replica };
        }
    }

    fn happens(&mut self, event: &Event) {
        match event {
            Event::Restart(is_done) => self.restarts(*is_done),
            Event::Store(target, state) => {
                let role = self.stores[target].1;
                let state = [StoreState::Up, StoreState::Down, StoreState::Unknown][usize::from(*state)];
                self.stores.insert(*target, (state, role));
            }
            Event::Elect(of, target) => self.is_primary(*of, of * 4 + target),
            Event::Start(version) => self.world.act(&Act::Start(*version)),
            Event::Undo => self.world.act(&Act::Undo),
            Event::Time => self.world.pass_time(Span::from_secs(5)),
        }
        self.decide();
    }
}

proptest! {
    #[test]
    fn no_quorum_is_lost_by_our_own_hand_and_no_primary_is_updated_before_its_followers(
        batch in 1..9_u32,
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut play = Play::new(policy(batch, TargetOrder::FollowersFirst, true));
        play.ends_first_rollout();
        for event in &events {
            play.happens(event);
        }
        play.start(9);
        play.ends();
    }
}
