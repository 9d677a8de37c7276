mod site;

use std::collections::BTreeSet;
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;

use self::site::{NODES, NOW, Site, disk, node};
use super::explain::{lines, of_node, refused};
use super::known::known;
use crate::decide::ensembles::failing::{EnsemblePart, counts, failing};
use crate::decide::ensembles::plan::plan;
use crate::decide::ensembles::reports::absorb;
use crate::records::ensemble::{CephSettings, EnsembleService};
use crate::records::key::{AnyRecord, Record};
use crate::records::member::MemberState;
use crate::records::node::PresenceState;
use crate::records::osd::{Osd, OsdPhase, StoreAnswer, StoreOsd};
use crate::verdict::Write;
use crate::words::counter::MemberNumber;
use crate::words::time::{Span, Timestamp};

#[test]
fn each_device_becomes_an_osd_and_one_with_data_does_not() {
    let mut site = Site::new();
    site.used.insert(3);
    site.settle();
    assert_eq!(site.phases(), [OsdPhase::In; 3]);
    let members = site.members();
    let devices = refused(site.fleet(), &site.ensemble, &members, NOW);
    let reasons: Vec<&str> = devices.iter().map(|device| device.reason.as_str()).collect();
    assert_eq!(reasons, ["it is not free: ext4 (/dev/sdb on node n-3)"]);
    let said = lines(site.fleet(), &site.ensemble, &members, NOW).join("\n");
    assert!(said.contains("OSD 1 (osd.0) with device disk-1 on node n-1 is in"), "{said}");
}

#[test]
fn osds_of_the_store_that_are_not_recorded_are_named_and_left_as_they_are() {
    let mut site = Site::new();
    site.settle();
    let said = |site: &Site| lines(site.fleet(), &site.ensemble, &site.members(), NOW).join("\n");
    assert!(!said(&site).contains("not recorded"), "{}", said(&site));
    let of_other = StoreOsd {
        number: 7,
        is_up: true,
        is_in: true,
        safe: StoreAnswer::Unknown,
        ok_to_stop: StoreAnswer::Unknown,
    };
    site.store.insert("of another record".to_string(), of_other);
    site.settle();
    assert!(said(&site).contains("OSDs that are not recorded: osd.7; they are left"), "{}", said(&site));
    assert!(site.store.contains_key("of another record") && site.members().osds.change.is_none());
}

#[test]
fn since_when_an_osd_does_not_work_is_known_however_often_it_is_started_again() {
    let mut site = Site::new();
    site.settle();
    let mut last = site.fleet().node_members.get(&node(2)).unwrap().value.as_ref().clone();
    let mut says = |state, now| {
        let mut said = last.clone();
        for osd in said.osds.values_mut().flat_map(|osds| osds.values_mut()) {
            (osd.state, osd.since) = (state, Timestamp::EPOCH);
        }
        let changeset = absorb(site.fleet(), Some(&last), said, NOW.plus(Span::from_secs(now))).unwrap();
        let Some(Write::Put(record)) = changeset.writes.into_iter().next() else { panic!("it is written") };
        let AnyRecord::Namespaced(Record::NodeMembers(kept)) = *record else { panic!("it is not its node") };
        let since = kept.osds.values().flat_map(|osds| osds.values()).map(|osd| osd.since).max();
        last = kept;
        since.unwrap()
    };
    let failed = NOW.plus(Span::from_secs(50));
    assert_eq!(says(MemberState::Failed, 50), failed);
    assert_eq!(says(MemberState::Starting, 60), failed);
    assert_eq!(says(MemberState::Failed, 70), failed);
    assert_eq!(says(MemberState::Working, 80), NOW.plus(Span::from_secs(80)));
}

#[test]
fn an_osd_is_believed_by_what_is_known_now_and_silence_is_no_failure() {
    let mut site = Site::new();
    site.settle();
    let up = |site: &Site| -> Vec<Option<bool>> {
        known(site.fleet(), &site.members()).iter().map(|known| known.is_up()).collect()
    };
    assert_eq!(up(&site), [Some(true); 4]);
    assert_eq!(failing(site.fleet(), &site.members(), NOW), []);
    // Its node knows before the store does.
    site.broken.insert(2);
    let members = site.members();
    site.report(2, &members);
    assert_eq!(up(&site), [Some(true), Some(false), Some(true), Some(true)]);
    let failed = failing(site.fleet(), &members, NOW);
    assert!(failed.len() == 1 && failed[0].part == EnsemblePart::Osd(MemberNumber::new(2)), "{failed:?}");
    assert_eq!((counts(site.fleet(), &members).osds, counts(site.fleet(), &members).working_osds), (4, 3));
    // The monitor that read the store is lost.
    let mut lost = members.clone();
    lost.osds.reader = None;
    assert_eq!(counts(site.fleet(), &lost).working_osds, 3, "their nodes know");
    // One that is gone from the store does not work for it, whatever its node says.
    let uuid = Osd::uuid(&members.identity, MemberNumber::new(3));
    let gone = site.store.remove(&uuid).unwrap();
    site.report(1, &members);
    assert_eq!(up(&site), [Some(true), Some(false), None, Some(true)]);
    site.store.insert(uuid, gone);
    site.report(1, &members);
    // What the store said of one before nobody heard of its node is old.
    site.broken.clear();
    site.report(2, &members);
    site.hear(2, PresenceState::Unreachable);
    assert_eq!(up(&site), [Some(true), None, Some(true), Some(true)]);
    assert_eq!(failing(site.fleet(), &members, NOW), [], "it is not known to fail");
    assert_eq!(counts(site.fleet(), &members).working_osds, 3);
    let said = of_node(site.fleet(), &members, &node(2), NOW).concat();
    assert!(said.contains("is in for") && said.contains("its node is unreachable for"), "{said}");
}

#[test]
fn one_is_emptied_before_it_is_removed_and_its_device_is_taken_again_once_its_name_was_taken_out() {
    let mut site = Site::new();
    site.settle();
    site.remove(2);
    let planned: Vec<String> = plan(site.fleet(), &site.ensemble, None, (NOW, Timestamp::EPOCH))
        .steps
        .iter()
        .map(|step| step.line())
        .collect();
    assert_eq!(
        planned,
        [
            "OSD 2 on node n-2 is emptied: its data go to others",
            "OSD 2 on node n-2 is stopped and forgotten; what is on its device stays there",
        ]
    );
    site.settle();
    assert_eq!(site.phases(), [OsdPhase::In, OsdPhase::Out, OsdPhase::In, OsdPhase::In]);
    assert_eq!(site.store.values().filter(|osd| osd.is_in).count(), 3);
    site.safe = StoreAnswer::Yes;
    site.settle();
    assert_eq!(site.phases(), [OsdPhase::In, OsdPhase::Removed, OsdPhase::In, OsdPhase::In]);
    assert_eq!(site.store.len(), 3, "the store has forgotten it");
    // Whoever wiped it did not say that it may be taken.
    site.made.clear();
    site.settle();
    assert_eq!(site.members().osds.last, MemberNumber::new(4));

    let of = |devices: &[u64]| {
        let devices = devices.iter().copied().map(disk).collect();
        EnsembleService::Ceph(CephSettings { port: 3300, replicas: 2, devices })
    };
    site.ensemble.service = of(&[1, 3, 4]);
    site.put(Record::Ensemble(site.ensemble.clone()));
    site.settle();
    assert_eq!(site.phases(), [OsdPhase::In; 3], "it is forgotten");
    site.ensemble.service = of(&[1, 2, 3, 4]);
    site.put(Record::Ensemble(site.ensemble.clone()));
    site.settle();
    let numbers: Vec<u64> = site.members().osds.osds.keys().map(|number| number.get()).collect();
    assert_eq!(numbers, [1, 3, 4, 5], "it is another OSD");
    let ids: BTreeSet<String> =
        numbers.iter().map(|of| Osd::uuid(&site.members().identity, MemberNumber::new(*of))).collect();
    assert_eq!(ids, site.store.keys().cloned().collect());
}

#[test]
fn one_that_is_replaced_is_emptied_first_and_its_number_goes_to_the_one_with_the_other_device() {
    let mut site = Site::new();
    site.settle();
    let number = |site: &Site, osd: u64| {
        site.store.get(&Osd::uuid(&site.members().identity, MemberNumber::new(osd))).map(|of| of.number)
    };
    let replaced = number(&site, 2);
    site.spares.insert(2);
    site.act();
    site.replace(2);
    site.settle();
    assert_eq!(site.phases()[1], OsdPhase::Out, "it has data that nobody else has");
    let members = site.members();
    let devices = refused(site.fleet(), &site.ensemble, &members, NOW);
    let reasons: Vec<&str> = devices.iter().map(|device| device.reason.as_str()).collect();
    assert_eq!(reasons, ["it takes the place of OSD 2, once that is empty, and the store has forgotten it"]);
    site.safe = StoreAnswer::Yes;
    site.settle();
    let members = site.members();
    let numbers: Vec<u64> = members.osds.osds.keys().map(|number| number.get()).collect();
    assert_eq!(numbers, [1, 3, 4, 5]);
    assert_eq!((number(&site, 5), number(&site, 2)), (replaced, None));
    assert!(site.store.values().all(|osd| osd.is_up && osd.is_in), "it has data");
    assert_eq!(site.phases(), [OsdPhase::In; 4]);
}

#[test]
fn osds_are_restarted_one_after_the_other_where_the_store_says_that_each_may_stop() {
    let (mut site, at) = (Site::new(), NOW);
    site.settle();
    site.restart(at);
    for answer in [StoreAnswer::Unknown, StoreAnswer::No] {
        site.ok_to_stop = answer;
        site.settle();
        assert_eq!(site.restarts, [], "{answer:?} is not yes");
    }
    let said = crate::decide::ensembles::requests::lines(&site.members(), NOW).join("\n");
    assert!(said.contains("left are OSDs 1, 2, 3, 4"), "{said}");
    assert!(said.contains("OSD 1 (osd.0) with device disk-1 on node n-1 is restarted once"), "{said}");
    site.ok_to_stop = StoreAnswer::Yes;
    // Nobody hears of the third one.
    site.hear(3, PresenceState::Unreachable);
    site.settle();
    assert_eq!(site.restarts, [], "one that may be down takes the place of each other one");
    site.hear(3, PresenceState::Up);
    // The fourth one does not work, which the restart may mend.
    site.broken.insert(4);
    site.settle();
    assert_eq!(
        site.members().requests.rolling.and_then(|request| request.osd_under_way),
        Some(MemberNumber::new(4))
    );
    assert_eq!(site.restarts, []);
    site.broken.clear();
    site.settle();
    assert_eq!(site.restarts, [4, 1, 2, 3].map(|osd| (osd, at)));
    assert_eq!(site.members().requests.rolling, None);
}

#[test]
fn a_drained_node_is_emptied_and_has_data_again_afterwards() {
    let mut site = Site::new();
    site.settle();
    site.drained.insert(3);
    site.put_node(3);
    site.safe = StoreAnswer::Yes;
    site.settle();
    assert_eq!(site.phases()[2], OsdPhase::Out, "and it is not removed, since nobody asked for that");
    site.drained.clear();
    site.put_node(3);
    site.settle();
    assert!(site.store.values().all(|osd| osd.is_in && osd.is_up));
    assert_eq!(site.phases(), [OsdPhase::In; 4]);
}

#[test]
fn one_that_cannot_be_made_holds_up_no_other_one_and_is_removed_at_once() {
    let mut site = Site::new();
    site.broken.insert(1);
    site.settle();
    assert_eq!(site.phases(), [OsdPhase::Joining, OsdPhase::In, OsdPhase::In, OsdPhase::In]);
    site.remove(1);
    site.settle();
    assert_eq!(site.phases()[0], OsdPhase::Removed);
}

#[test]
fn what_is_on_a_node_that_is_gone_is_emptied_and_not_filled_again() {
    let mut site = Site::new();
    site.settle();
    site.decommission(3);
    site.silent.insert(3);
    site.settle();
    assert_eq!(site.phases()[2], OsdPhase::Out);
    site.safe = StoreAnswer::Yes;
    site.settle();
    assert_eq!(site.phases()[2], OsdPhase::Out, "and nobody asked for its removal");
}

#[test]
fn a_device_that_turns_out_to_be_used_holds_up_no_other_one() {
    let mut site = Site::new();
    site.act();
    assert!(site.decide(), "the reader is named");
    site.act();
    assert!(site.decide(), "the first device is taken");
    // Somebody was faster.
    site.used.insert(1);
    site.settle();
    assert_eq!(site.phases(), [OsdPhase::Joining, OsdPhase::In, OsdPhase::In, OsdPhase::In]);
    site.remove(1);
    site.settle();
    assert_eq!(site.phases()[0], OsdPhase::Removed, "it had no data");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(200), ..ProptestConfig::default() })]

    /// Whatever is found, drained, silent, asked for and answered, no OSD is given up that nobody wanted removed, none is made of a device that
    /// is used, no number is used again, and a second pass writes nothing.
    #[test]
    fn no_history_gives_up_what_is_needed(acts in proptest::collection::vec((0_u8..11, 1_u64..=NODES), 1..60)) {
        let mut site = Site::new();
        for (act, of) in acts {
            match act {
                0 => drop(site.drained.insert(of)),
                1 => drop(site.drained.remove(&of)),
                2 => drop(site.silent.insert(of)),
                3 => drop(site.silent.remove(&of)),
                4 => drop(site.used.insert(of)),
                5 => site.safe = [StoreAnswer::Yes, StoreAnswer::No, StoreAnswer::Unknown][(of % 3) as usize],
                6 => site.remove(of),
                7 => site.act(),
                8 => site.replace(of),
                9 => site.restart(NOW),
                _ => drop(site.decide()),
            }
            site.put_node(of);
        }
        site.silent.clear();
        site.settle();
        let members = site.members();
        for (number, osd) in &members.osds.osds {
            let uuid = Osd::uuid(&members.identity, *number);
            prop_assert!(osd.phase == OsdPhase::Removed || osd.phase == OsdPhase::Joining || site.store.contains_key(&uuid));
        }
    }
}
