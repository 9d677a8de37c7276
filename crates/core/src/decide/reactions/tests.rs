use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::records::annotation::Annotation;
use crate::records::cluster_view::{ClusterCondition, ClusterView, ConditionId};
use crate::records::entity::{Entity, EntityKind, TargetSource};
use crate::records::key::{AnyRecord, Key, Record};
use crate::records::policy::Policy;
use crate::records::probes::{DataStore, NodeProbes, StoreFacts, StoreState};
use crate::records::reaction::{COOLDOWN, ReactionNodes};
use crate::records::run::{Run, RunPlan};
use crate::verdict::Write;
use crate::words::counter::{ReactionRevision, Sequence};
use crate::words::filter::Filter;
use crate::words::filter::conditions::CONDITIONS;
use crate::words::label::Labels;
use crate::words::name::Namespace;
use crate::words::selector::Selector;
use crate::world::World;

fn at(second: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Span::from_secs(1_000_000 + second))
}

fn namespace() -> Namespace {
    "default".parse().unwrap()
}

fn reaction(on: &str) -> Reaction {
    Reaction {
        name: "restart".parse().unwrap(),
        revision: ReactionRevision::new(1),
        on: Filter::parse(on, &CONDITIONS).unwrap(),
        hold: Span::from_secs(10),
        cooldown: COOLDOWN,
        max_per_hour: 3,
        workflow: "restart".parse().unwrap(),
        nodes: ReactionNodes::Subject,
        suspended: false,
        policy: Policy::default(),
        labels: Labels::default(),
        annotation: Annotation::of("kim".parse().unwrap(), at(0)),
        firings: Vec::new(),
        limited_since: None,
    }
}

/// A namespace with one reaction, which does what it is to do after each change.
struct Play {
    world: World,
    reaction: Reaction,
    runs: Vec<String>,
    now: u64,
}

impl Play {
    fn new(reaction: Reaction) -> Self {
        let mut play = Self { world: World::default(), reaction, runs: Vec::new(), now: 0 };
        play.store("db-9", StoreState::Up);
        play
    }

    fn fleet(&self) -> &Fleet {
        self.world.fleets.get(&namespace()).unwrap()
    }

    fn write(&mut self, write: Write) {
        let revision = self.world.revision.next();
        write.apply_to(&mut self.world, &namespace(), revision);
    }

    fn store(&mut self, node: &str, state: StoreState) {
        let node: crate::words::name::NodeName = node.parse().unwrap();
        let before = self.world.fleets.get(&namespace()).and_then(|fleet| fleet.probes.get(&node));
        let before = before.and_then(|kept| kept.value.stores.values().next().cloned());
        let same = before.filter(|store| store.state == state).map(|store| store.since);
        let since = same.unwrap_or(at(self.now));
        let store = DataStore { state, since, reason: String::new(), facts: StoreFacts::default() };
        let stores = BTreeMap::from([("db".parse().unwrap(), store)]);
        let probes = NodeProbes { node, received_at: at(self.now), sequence: 0, stores };
        self.write(Write::put(AnyRecord::from(Record::Probes(probes))));
    }

    /// Does what the reaction is to do at this time; when it is to be looked at next.
    fn look(&mut self) -> Option<Timestamp> {
        loop {
            match turn(&self.reaction, self.fleet(), Watch::default(), at(self.now)) {
                Turn::Wait(wake) => return wake,
                Turn::Limit(after) => {
                    self.runs.push("limited".into());
                    self.reaction = *after;
                }
                Turn::Fire(DueCondition { condition, subject, since }) => {
                    self.runs.push(subject.to_string());
                    let (at, result) = (at(self.now), FiringResult::Started);
                    let firing = ReactionFiring { condition, subject, since, at, result, text: "run".into() };
                    self.reaction = fired(&self.reaction, self.fleet(), firing);
                }
            }
        }
    }

    /// Puts a run in progress.
    fn begin(&mut self, name: &str) {
        let plan = RunPlan {
            workflow: "restart".parse().unwrap(),
            digest: String::new(),
            tasks: Vec::new(),
            contents: "{}".into(),
            features: BTreeSet::new(),
        };
        let annotation = Annotation::of("kim".parse().unwrap(), at(0));
        let run =
            Run { name: name.parse().unwrap(), ..Run::new(plan, Sequence::new(1), annotation).unwrap() };
        let nodes = BTreeSet::from(["db-1".parse().unwrap()]);
        let entity = Entity {
            kind: EntityKind::Workflow(run.workflow.clone()),
            source: TargetSource::Listed(Arc::new(nodes)),
            ..Entity::new(run.name.clone(), Selector::all(), Policy::default())
        };
        self.write(Write::put(AnyRecord::from(Record::Run(run))));
        self.write(Write::put(AnyRecord::from(Record::Entity(entity))));
    }

    fn pass(&mut self, seconds: u64) -> Option<Timestamp> {
        self.now += seconds;
        self.look()
    }
}

#[test]
fn it_fires_once_for_an_episode_after_the_hold_time_and_again_after_the_cooldown() {
    let mut play = Play::new(reaction("condition = store_down"));
    assert_eq!(play.look(), None);
    play.store("db-1", StoreState::Down);
    assert_eq!(play.look(), Some(at(10)), "not before it was down for ten seconds");
    play.now = 5;
    play.store("db-1", StoreState::Up);
    assert_eq!((play.pass(20), play.runs.len()), (None, 0), "it recovered in time");
    play.store("db-1", StoreState::Down);
    assert_eq!((play.pass(10), play.runs.clone()), (None, ["store/db-1/db".to_string()].into()));
    assert_eq!((play.pass(10_000), play.runs.len()), (None, 1), "one run for one episode");
    play.store("db-1", StoreState::Up);
    play.store("db-1", StoreState::Down);
    play.pass(10);
    assert_eq!(play.runs.len(), 2, "another episode");
    play.store("db-1", StoreState::Up);
    play.store("db-1", StoreState::Down);
    let fired = play.now;
    assert_eq!((play.pass(10), play.runs.len()), (Some(at(fired).plus(COOLDOWN)), 2), "it cools down");
    play.store("db-2", StoreState::Down);
    play.pass(10);
    assert_eq!(
        play.runs.last().map(String::as_str),
        Some("store/db-2/db"),
        "another one is not held back by that"
    );
    play.pass(600);
    assert_eq!(play.runs.len(), 4);
}

#[test]
fn a_reaction_that_causes_what_it_reacts_to_is_limited_and_goes_on_after_an_hour() {
    let mut play = Play::new(Reaction { cooldown: Span::ZERO, hold: Span::ZERO, ..reaction("all") });
    for _ in 0..10 {
        play.store("db-1", StoreState::Down);
        play.look();
        play.pass(60);
        play.store("db-1", StoreState::Up);
        play.look();
    }
    assert_eq!(play.runs, ["store/db-1/db", "store/db-1/db", "store/db-1/db", "limited"], "told once");
    let limit = explain_limit(&play.reaction, at(play.now));
    assert!(limit.contains("3 times for store/db-1/db: its run may cause"), "{limit}");
    play.store("db-1", StoreState::Down);
    let wake = play.look().unwrap();
    assert_eq!(wake, at(3_600), "an hour after the first");
    play.pass(3_600);
    assert_eq!(play.runs.len(), 5);
}

#[test]
fn it_starts_no_other_run_for_a_subject_while_the_one_before_has_not_ended() {
    let mut play = Play::new(Reaction { cooldown: Span::ZERO, ..reaction("probe = db") });
    play.store("db-1", StoreState::Down);
    play.pass(10);
    play.begin("run");
    assert_eq!(play.runs, ["store/db-1/db"]);
    // Other episodes, also of another condition; however long it takes.
    for state in [StoreState::Unknown, StoreState::Down] {
        play.now += 100_000;
        play.store("db-1", StoreState::Up);
        play.store("db-1", state);
        assert_eq!((play.pass(10), play.runs.len()), (None, 1));
        let standings = matches(&play.reaction, play.fleet(), Watch::default(), at(play.now));
        let run = "run".parse().unwrap();
        assert_eq!(standings.into_iter().next().unwrap().1, Standing::Running { run });
    }
    play.store("db-2", StoreState::Down);
    play.pass(10);
    assert_eq!(play.runs.last().map(String::as_str), Some("store/db-2/db"), "another one is not held back");
    let changes = play.fleet().reaction_changes;
    play.write(Write::delete(Key::Run("run".parse().unwrap())));
    assert_ne!(play.fleet().reaction_changes, changes, "its end has the reaction looked at");
    play.pass(0);
    assert_eq!(play.runs.len(), 3, "its condition is still true");
}

#[test]
fn what_is_recorded_is_not_believed_before_the_leader_has_listened() {
    let mut play = Play::new(reaction("condition = store_down"));
    play.store("db-1", StoreState::Down);
    let now = at(1_000);
    let listens = Watch { since: at(1_030), ..Watch::default() };
    assert_eq!(turn(&play.reaction, play.fleet(), listens, now), Turn::Wait(Some(at(1_030))));
    assert!(matches!(turn(&play.reaction, play.fleet(), listens, at(1_030)), Turn::Fire(_)));
}

#[test]
fn that_there_is_no_primary_is_believed_once_a_silent_store_would_have_been_noticed() {
    let mut play = Play::new(reaction("condition = no_primary or condition = store_down"));
    let id = ConditionId { probe: "db".parse().unwrap(), kind: ConditionKind::NoPrimary };
    let condition = ClusterCondition { since: at(0), reason: String::new() };
    play.write(Write::put(AnyRecord::from(Record::ClusterView(ClusterView {
        cluster: "shop".parse().unwrap(),
        number: 1,
        changed_at: at(0),
        conditions: BTreeMap::from([(id, condition)]),
        primaries: BTreeMap::new(),
    }))));
    let watch = Watch { detection: Span::from_secs(20), ..Watch::default() };
    let turn = |play: &Play, second| turn(&play.reaction, play.fleet(), watch, at(second));
    assert_eq!(turn(&play, 1), Turn::Wait(Some(at(20))));
    assert!(matches!(turn(&play, 20), Turn::Fire(_)));
    // What a store says of itself needs no such time.
    play.store("db-1", StoreState::Down);
    assert!(matches!(turn(&play, 19), Turn::Fire(_)));
}

#[test]
fn a_clock_that_was_years_ahead_holds_back_nothing() {
    let mut play = Play::new(reaction("condition = store_down"));
    play.now = 100_000_000;
    play.store("db-1", StoreState::Down);
    play.pass(10);
    assert_eq!(play.runs.len(), 1);
    play.now = 50;
    play.store("db-1", StoreState::Up);
    play.store("db-1", StoreState::Down);
    play.pass(10);
    assert_eq!(play.runs.len(), 2, "neither the cooldown nor the hold time is one of years");
}

#[test]
fn what_cannot_be_started_is_tried_again_without_haste_and_takes_no_place_of_others() {
    let mut play =
        Play::new(Reaction { hold: Span::ZERO, cooldown: Span::ZERO, max_per_hour: 1, ..reaction("all") });
    play.store("db-1", StoreState::Down);
    for minute in 0..5_u64 {
        play.now = minute * 60;
        let Turn::Fire(DueCondition { condition, subject, since }) =
            turn(&play.reaction, play.fleet(), Watch::default(), at(play.now))
        else {
            panic!("minute {minute}");
        };
        let (result, text) = (FiringResult::Failed, "no such workflow".into());
        let firing = ReactionFiring { condition, subject, since, at: at(play.now), result, text };
        play.reaction = fired(&play.reaction, play.fleet(), firing);
        let again = turn(&play.reaction, play.fleet(), Watch::default(), at(play.now));
        assert_eq!(again, Turn::Wait(Some(at(play.now + 60))), "though there is no cooldown");
    }
    assert_eq!(play.reaction.firings.len(), 1, "the last one is enough");
    play.pass(60);
    assert_eq!(play.runs, ["store/db-1/db"], "the one run that it may start within an hour");
}

#[test]
fn a_suspended_reaction_starts_nothing_and_says_so() {
    let mut play = Play::new(Reaction { suspended: true, ..reaction("probe = db and node = db-1") });
    play.store("db-1", StoreState::Unknown);
    assert_eq!((play.pass(100), play.runs.len()), (None, 0));
    let standings = matches(&play.reaction, play.fleet(), Watch::default(), at(play.now));
    assert!(
        matches!(standings.as_slice(), [(condition, Standing::Suspended)] if condition.name == "store_unknown")
    );
}

#[test]
fn what_a_reaction_would_do_is_what_it_does() {
    let mut play =
        Play::new(Reaction { max_per_hour: 1, ..reaction("condition = store_down and probe = db") });
    let subject: ConditionSubject = "store/db-1/db".parse().unwrap();
    let would = |play: &Play, name: &str| {
        rehearse(&play.reaction, play.fleet(), (name, &subject), (Watch::default(), at(play.now)))
    };
    assert_eq!(would(&play, "store_unknown"), None);
    assert_eq!(would(&play, "store_down"), Some(Standing::Due));
    play.store("db-1", StoreState::Down);
    play.pass(10);
    assert_eq!(play.runs.len(), 1);
    assert_eq!(would(&play, "store_down"), Some(Standing::Fired), "it is true now");
    let until = at(play.now).plus(COOLDOWN);
    play.now += 1;
    play.store("db-1", StoreState::Up);
    assert_eq!(would(&play, "store_down"), Some(Standing::CoolsDown { until }));
    play.now += 1_000;
    let limited = would(&play, "store_down");
    assert!(matches!(limited, Some(Standing::Limited { .. })), "{limited:?}");
    play.reaction.suspended = true;
    assert_eq!(would(&play, "store_down"), Some(Standing::Suspended));
}

proptest! {
    /// Whatever happens, no episode gets two runs, no hour more than the limit, no subject two within the cooldown.
    #[test]
    fn no_episode_gets_two_runs(acts in prop::collection::vec((0..3_u8, any::<bool>(), 0..400_u64), 1..80)) {
        let mut play = Play::new(reaction("condition = store_down"));
        let mut told: Vec<ReactionFiring> = Vec::new();
        for (node, is_up, seconds) in acts {
            play.store(&format!("db-{node}"), if is_up { StoreState::Up } else { StoreState::Down });
            play.pass(seconds);
            for firing in &play.reaction.firings {
                if !told.contains(firing) {
                    told.push(firing.clone());
                }
            }
        }
        let episodes: BTreeSet<_> = told.iter().map(|firing| (firing.subject.clone(), firing.since)).collect();
        prop_assert_eq!(episodes.len(), told.len());
        for (index, firing) in told.iter().enumerate() {
            let within = |span: Span| told.iter().take(index).filter(move |other| other.at.plus(span) > firing.at);
            prop_assert!(within(RATE_WINDOW).count() < 3);
            prop_assert!(within(COOLDOWN).all(|other| other.subject != firing.subject));
            prop_assert!(firing.since.plus(Span::from_secs(10)) <= firing.at);
        }
        let write = Write::delete(Key::Probes("db-1".parse().unwrap()));
        play.write(write);
        prop_assert!(play.fleet().true_conditions().all(|condition| condition.subject.node().unwrap().as_str() != "db-1"));
    }
}
