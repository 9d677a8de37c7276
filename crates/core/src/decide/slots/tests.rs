use alloc::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::records::slot::LEASE;
use crate::words::counter::Revision;
use crate::words::name::Namespace;
use crate::world::World;

/// A namespace, everything that was told of it, and what time it is.
struct Setup {
    world: World,
    events: Vec<EventDraft>,
    revision: u64,
    now: Timestamp,
}

fn ns() -> Namespace {
    "default".parse().unwrap()
}

fn reboot() -> SlotName {
    "reboot".parse().unwrap()
}

fn machine(index: u8) -> HolderName {
    format!("machine-{index}").parse().unwrap()
}

fn wish(index: u8) -> SlotRequest {
    let (by, reason) = ("fleet".parse().unwrap(), "group default".to_string());
    SlotRequest { holder: machine(index), by, reason, lease: None, capacity: None }
}

impl Setup {
    fn new() -> Self {
        Self { world: World::default(), events: vec![], revision: 0, now: Timestamp::from_millis(1_000) }
    }

    fn fleet(&self) -> Fleet {
        self.world.fleets.get(&ns()).cloned().unwrap_or_default()
    }

    fn write(&mut self, changeset: Changeset) {
        for write in changeset.writes {
            self.revision += 1;
            write.apply_to(&mut self.world, &ns(), Revision::new(self.revision));
        }
        self.events.extend(changeset.events);
    }

    fn acquire(&mut self, index: u8) -> Result<SlotGrant, SlotRefusal> {
        self.acquire_as(wish(index))
    }

    fn acquire_as(&mut self, wish: SlotRequest) -> Result<SlotGrant, SlotRefusal> {
        let (changeset, grant) = acquire(&self.fleet(), &reboot(), wish, self.now)?;
        self.write(changeset);
        Ok(grant)
    }

    fn renew(&mut self, index: u8, fence: FenceNumber) -> Result<SlotGrant, SlotLost> {
        let (changeset, grant) =
            renew(&self.fleet(), &reboot(), SlotHold { holder: &machine(index), fence }, None, self.now)?;
        self.write(changeset);
        Ok(grant)
    }

    fn release(&mut self, index: u8) {
        let changeset = release(&self.fleet(), &reboot(), &machine(index), None);
        changeset.unwrap().into_iter().for_each(|changeset| self.write(changeset));
    }

    fn decide(&mut self) -> Option<Timestamp> {
        let verdict = decide(&self.fleet(), self.now);
        let wrote = !verdict.changesets.is_empty();
        verdict.changesets.into_iter().for_each(|changeset| self.write(changeset));
        if wrote {
            assert_eq!(decide(&self.fleet(), self.now).changesets, vec![], "deciding again changes nothing");
        }
        verdict.wake
    }

    fn slot(&self) -> Slot {
        slot_of(&self.fleet(), &reboot())
    }

    fn holders(&self) -> BTreeSet<HolderName> {
        self.slot().holders.into_keys().collect()
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.events.iter().map(|draft| draft.kind).collect()
    }
}

#[test]
fn the_second_machine_waits_until_the_first_releases() {
    let mut place = Setup::new();
    place.acquire(1).unwrap();
    let full = place.acquire(2).unwrap_err();
    assert_eq!(full.to_string(), "1 of 1 held, by machine-1");
    place.release(2);
    assert_eq!(place.holders(), BTreeSet::from([machine(1)]), "only a holder can release it");
    place.release(1);
    place.acquire(2).unwrap();
    assert_eq!(place.kinds(), ["slot.acquired", "slot.released", "slot.acquired"]);
}

#[test]
fn asking_again_is_holding_longer_and_no_news() {
    let mut place = Setup::new();
    place.acquire(1).unwrap();
    let since = place.now;
    place.now = place.now.plus(Span::from_secs(60));
    place.acquire(1).unwrap();
    let holder = place.slot().holders.remove(&machine(1)).unwrap();
    assert_eq!((holder.since, holder.ends), (since, place.now.plus(LEASE)));
    assert_eq!(place.kinds(), ["slot.acquired"]);
}

#[test]
fn a_lease_ends_at_its_wake_and_nothing_but_its_number_is_left_of_a_slot_that_says_nothing() {
    let mut place = Setup::new();
    place.acquire(1).unwrap();
    let wake = place.decide().unwrap();
    assert_eq!(wake, place.now.plus(LEASE).plus(SLACK));
    place.now = wake;
    assert_eq!(place.decide(), None);
    assert_eq!(place.kinds(), ["slot.acquired", "slot.expired"]);
    assert!(place.slot().is_idle() && place.slot().fence == FenceNumber::new(1));
    let changeset = forget(&place.fleet(), &reboot()).unwrap();
    place.write(changeset);
    assert!(place.fleet().slots.is_empty());
}

#[test]
fn a_hold_that_a_clock_behind_granted_is_not_expired_before_its_lease_by_one_that_is_ahead() {
    let mut place = Setup::new();
    let real = place.now;
    // The granting server is behind by the bound, and the one that looks afterwards is ahead by it.
    place.now = real.minus(CLOCK_BOUND);
    place.acquire(1).unwrap();
    let just_before = real.plus(LEASE).minus(Span::from_millis(1));
    place.now = just_before.plus(CLOCK_BOUND);
    place.decide();
    assert_eq!(place.holders(), BTreeSet::from([machine(1)]));
    assert!(place.acquire(2).is_err(), "nor is it given to another");
    place.now = place.now.plus(Span::from_millis(1));
    place.acquire(2).unwrap();
}

#[test]
fn a_holding_that_is_over_is_never_one_again() {
    let mut place = Setup::new();
    let first = place.acquire(1).unwrap();
    place.now = place.now.plus(Span::from_secs(60));
    let renewed = place.renew(1, first.fence).unwrap();
    assert_eq!((renewed.fence, renewed.ends), (first.fence, place.now.plus(LEASE)));
    assert_eq!(place.renew(2, first.fence), Err(SlotLost { fence: first.fence }), "it is somebody else's");
    // Over in time, before anybody looked.
    place.now = renewed.ends.plus(SLACK);
    assert_eq!(
        place.renew(1, first.fence).unwrap_err().to_string(),
        "the hold with fencing number 1 has ended"
    );
    // The same name takes it anew, and another number; a release with the old number does not affect it.
    let second = place.acquire(1).unwrap();
    assert_eq!(second.fence, first.fence.next());
    assert_eq!(place.renew(1, first.fence), Err(SlotLost { fence: first.fence }));
    let refused = release(&place.fleet(), &reboot(), &machine(1), Some(first.fence)).unwrap_err();
    assert_eq!(refused.to_string(), "machine-1 holds it with fencing number 2");
    assert!(forget(&place.fleet(), &reboot()).is_none(), "somebody holds it");
    for (index, fence) in [(2, second.fence), (2, second.fence.next()), (2, FenceNumber::ZERO)] {
        let wrong = release(&place.fleet(), &reboot(), &machine(index), Some(fence));
        assert_eq!(wrong, Err(SlotMismatch { holder: machine(1), fence: second.fence }), "{index} {fence}");
    }
    let ended = release(&place.fleet(), &reboot(), &machine(2), Some(first.fence));
    assert_eq!(ended, Ok(None), "it may be of a hold that ended, whose release is repeated");
    assert!(release(&place.fleet(), &reboot(), &machine(1), Some(second.fence)).unwrap().is_some());
    place.release(1);
    assert_eq!(release(&place.fleet(), &reboot(), &machine(1), Some(second.fence)), Ok(None), "repeated");
}

#[test]
fn whoever_comes_first_says_how_many_may_hold_it_and_the_others_agree() {
    let mut place = Setup::new();
    let of = |index, capacity| SlotRequest {
        capacity: Some(capacity),
        lease: Some(Span::from_secs(5)),
        ..wish(index)
    };
    let grant = place.acquire_as(of(1, 2)).unwrap();
    assert_eq!(grant.ends, place.now.plus(Span::from_secs(5)));
    assert_eq!(place.acquire_as(of(2, 3)).unwrap_err().to_string(), "capacity is 2, not 3");
    place.acquire_as(of(2, 2)).unwrap();
    assert_eq!(place.acquire(3).unwrap_err().to_string(), "2 of 2 held, by machine-1 and 1 more");
    assert_eq!(place.kinds(), ["slot.changed", "slot.acquired", "slot.acquired"]);
}

#[test]
fn whoever_asks_need_not_wait_for_the_decider() {
    let mut place = Setup::new();
    place.acquire(1).unwrap();
    place.now = place.now.plus(LEASE).plus(SLACK);
    place.acquire(2).unwrap();
    assert_eq!(place.kinds(), ["slot.acquired", "slot.expired", "slot.acquired"]);
    assert_eq!(place.holders(), BTreeSet::from([machine(2)]));
}

#[test]
fn a_slot_of_no_capacity_is_taken_by_nobody_and_its_holders_stay() {
    let mut place = Setup::new();
    place.acquire(1).unwrap();
    let changeset = set(&place.fleet(), &reboot(), SlotLimits { capacity: 0, lease: LEASE }).unwrap();
    place.write(changeset);
    assert_eq!(set(&place.fleet(), &reboot(), SlotLimits { capacity: 0, lease: LEASE }), None);
    assert_eq!(place.holders().len(), 1);
    place.release(1);
    assert_eq!(place.acquire(1).unwrap_err().to_string(), "capacity is 0");
}

#[test]
fn a_slot_that_was_set_to_its_defaults_exists_until_it_is_deleted() {
    let mut place = Setup::new();
    let changeset = set(&place.fleet(), &reboot(), SlotLimits { capacity: 1, lease: LEASE }).unwrap();
    let event = changeset.events.first().unwrap();
    assert_eq!((&event.before, event.after.as_deref()), (&None, Some("capacity 1, lease 1h")));
    place.write(changeset);
    assert_eq!(
        set(&place.fleet(), &reboot(), SlotLimits { capacity: 1, lease: LEASE }),
        None,
        "it is set so already"
    );
    assert!(!place.slot().is_idle());
    let of_two = SlotRequest { capacity: Some(2), ..wish(1) };
    assert_eq!(place.acquire_as(of_two).unwrap_err().to_string(), "capacity is 1, not 2");
    place.acquire(1).unwrap();
    place.release(1);
    assert!(!place.slot().is_idle());
    let changeset = forget(&place.fleet(), &reboot()).unwrap();
    place.write(changeset);
    assert!(place.fleet().slots.is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Acquire(u8),
    Release(u8),
    Renew(u8, u64),
    Force(u8),
    Set(u32, u64),
    Pass(u64),
    Decide,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u8..6).prop_map(Step::Acquire),
        2 => (0_u8..6).prop_map(Step::Release),
        2 => (0_u8..6, 0_u64..3).prop_map(|(index, back)| Step::Renew(index, back)),
        1 => (0_u8..6).prop_map(Step::Force),
        1 => (0_u32..4, 1_u64..100).prop_map(|(capacity, secs)| Step::Set(capacity, secs)),
        2 => (1_u64..60).prop_map(Step::Pass),
        2 => Just(Step::Decide),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn never_do_more_hold_a_slot_than_may_and_every_change_of_holders_is_told(steps in steps()) {
        let mut place = Setup::new();
        let mut newest = FenceNumber::ZERO;
        for step in steps {
            let (before, events) = (place.holders(), place.events.len());
            match &step {
                Step::Acquire(index) => {
                    let held = place.slot().holders.get(&machine(*index)).is_some_and(|held| !is_over(held, place.now));
                    let got = place.acquire(*index);
                    prop_assert!(!held || got.is_ok(), "who holds it holds it longer");
                    prop_assert!(got.is_err() || place.holders().contains(&machine(*index)));
                    prop_assert!(got.is_ok() || place.holders() == before, "a refusal changes nothing");
                    if let Ok(grant) = got {
                        prop_assert!(held || grant.fence > newest, "numbers only grow: {:?}", grant);
                        newest = newest.max(grant.fence);
                    }
                }
                Step::Renew(index, back) => {
                    let fence = FenceNumber::new(newest.get().saturating_sub(*back));
                    let held = place.slot().holders.get(&machine(*index)).cloned();
                    let held = held.filter(|held| held.fence == fence && !is_over(held, place.now));
                    prop_assert_eq!(place.renew(*index, fence).is_ok(), held.is_some(), "only who holds it renews it");
                    prop_assert_eq!(&place.holders(), &before, "a renewal takes nothing");
                }
                Step::Release(index) => place.release(*index),
                Step::Force(index) => {
                    let changeset = force(&place.fleet(), &reboot(), &machine(*index), "it is gone");
                    changeset.into_iter().for_each(|changeset| place.write(changeset));
                }
                Step::Set(capacity, secs) => {
                    let changeset = set(&place.fleet(), &reboot(), SlotLimits { capacity: *capacity, lease: Span::from_secs(*secs) });
                    changeset.into_iter().for_each(|changeset| place.write(changeset));
                    prop_assert_eq!(&place.holders(), &before, "nobody is thrown out");
                }
                Step::Pass(secs) => place.now = place.now.plus(Span::from_secs(*secs)),
                Step::Decide => {
                    let wake = place.decide();
                    let next = place.slot().holders.values().map(|holder| holder.ends.plus(SLACK)).min();
                    prop_assert_eq!(wake, next);
                    prop_assert!(next.is_none_or(|next| next > place.now), "nobody is left whose time is over");
                }
            }
            let (slot, after) = (place.slot(), place.holders());
            let came = after.difference(&before).count();
            prop_assert!(came == 0 || after.len() <= usize::try_from(slot.capacity).unwrap(), "{:?}", step);
            prop_assert_eq!(slot.fence, newest);
            let numbers: BTreeSet<FenceNumber> = slot.holders.values().map(|holder| holder.fence).collect();
            prop_assert_eq!(numbers.len(), slot.holders.len(), "no two holdings have one number");
            // What is told adds up to what is there.
            let news = place.events.get(events..).unwrap();
            let taken = news.iter().filter(|draft| draft.kind == "slot.acquired").count();
            let ended = news.iter().filter(|draft| !["slot.acquired", "slot.changed"].contains(&draft.kind)).count();
            prop_assert_eq!(before.len() + taken, after.len() + ended);
            prop_assert!(taken >= came && ended >= before.difference(&after).count());
            prop_assert!(!place.fleet().slots.contains_key(&reboot()) || !slot.says_nothing());
        }
    }
}
