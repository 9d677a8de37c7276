use std::format;
use std::string::ToString;
use std::vec;

use proptest::prelude::*;

use super::*;

fn node(number: usize) -> NodeName {
    format!("n-{number}").parse().unwrap()
}

fn disk(number: usize) -> DeviceSerial {
    format!("disk-{number}").parse().unwrap()
}

fn number(number: u64) -> MemberNumber {
    MemberNumber::new(number)
}

/// Nodes with one free and allowed device each.
fn free(nodes: usize) -> DevicesView {
    let found =
        |of: usize| (disk(of), vec![FoundDevice { node: node(of), path: String::new(), used_by: vec![] }]);
    DevicesView {
        allowed: (0..nodes).map(disk).collect(),
        found: (0..nodes).map(found).collect(),
        ..DevicesView::default()
    }
}

/// Does what is decided, as a store would; the step.
fn act(view: &mut DevicesView) -> DeviceStep {
    let step = next_step(view);
    assert_eq!(step, next_step(view), "it decides the same again");
    match &step {
        DeviceStep::Add { node, serial } => {
            let device = &view.found[serial];
            assert!(view.allowed.contains(serial) && device.len() == 1 && device[0].used_by.is_empty());
            assert!(view.members.values().all(|member| member.serial != *serial));
            let next = view.members.last_key_value().map_or(number(1), |(last, _)| last.next());
            let member =
                DeviceMember { node: node.clone(), serial: serial.clone(), state: DeviceState::Joining };
            view.members.insert(next, member);
        }
        DeviceStep::Empty(of) => view.members.get_mut(of).unwrap().state = DeviceState::Out,
        DeviceStep::Fill(of) => view.members.get_mut(of).unwrap().state = DeviceState::In,
        DeviceStep::Remove(of) => {
            assert!(view.unwanted.contains(of), "only a person gives a device up");
            let never_in = matches!(view.members[of].state, DeviceState::Joining | DeviceState::Refused);
            assert!(never_in || view.safe.get(of) == Some(&StoreAnswer::Yes));
            view.members.get_mut(of).unwrap().state = DeviceState::Removed;
        }
        DeviceStep::Rest | DeviceStep::Wait(_) => {}
    }
    step
}

/// What was ordered has joined, and is written to.
fn join(view: &mut DevicesView) {
    for member in view.members.values_mut().filter(|member| member.state == DeviceState::Joining) {
        member.state = DeviceState::In;
        let used = vec!["ceph_bluestore".to_string()];
        view.found.insert(
            member.serial.clone(),
            vec![FoundDevice { node: member.node.clone(), path: String::new(), used_by: used }],
        );
    }
}

fn settle(view: &mut DevicesView) -> DeviceStep {
    for _ in 0..100 {
        join(view);
        let step = act(view);
        if matches!(step, DeviceStep::Rest | DeviceStep::Wait(DeviceWait::Emptied(..))) {
            return step;
        }
    }
    panic!("it does not come to rest: {view:?}");
}

#[test]
fn every_node_that_comes_brings_what_it_has_one_after_the_other() {
    let mut view = free(3);
    let added = DeviceStep::Add { node: node(0), serial: disk(0) };
    assert_eq!((act(&mut view), act(&mut view)), (added, DeviceStep::Wait(DeviceWait::Joining(number(1)))));
    assert_eq!(settle(&mut view), DeviceStep::Rest);
    assert_eq!(view.members.len(), 3);
    assert_eq!(taken(&view, &disk(1)), Ok(None));
}

#[test]
fn a_device_with_anything_on_it_in_two_nodes_or_not_allowed_is_never_taken() {
    let mut view = free(4);
    let used = vec!["a mounted file system, ext4".to_string()];
    view.found.get_mut(&disk(0)).unwrap()[0].used_by = used.clone();
    view.found.get_mut(&disk(1)).unwrap().push(FoundDevice {
        node: node(9),
        path: String::new(),
        used_by: vec![],
    });
    view.allowed.remove(&disk(2));
    view.refused.insert(node(3), "it is unreachable".to_string());
    assert_eq!(settle(&mut view), DeviceStep::Rest);
    assert!(view.members.is_empty());
    let why = |number: usize| taken(&view, &disk(number)).unwrap_err();
    assert_eq!(
        why(0),
        DeviceRefusal::Used(FoundDevice { node: node(0), path: String::new(), used_by: used })
    );
    assert_eq!(why(1), DeviceRefusal::InSeveral(vec![node(1), node(9)]));
    assert_eq!(why(3), DeviceRefusal::Node(node(3), "it is unreachable".to_string()));
    assert_eq!(why(7), DeviceRefusal::NotFound);
}

#[test]
fn a_list_that_shrinks_and_nodes_that_are_gone_remove_nothing() {
    let mut view = free(3);
    settle(&mut view);
    (view.allowed, view.found) = (BTreeSet::new(), BTreeMap::new());
    (0..3).for_each(|of| drop(view.refused.insert(node(of), "it is unreachable".to_string())));
    assert_eq!(settle(&mut view), DeviceStep::Rest);
    assert!(view.members.values().all(|member| member.state == DeviceState::In));
}

#[test]
fn a_drained_node_is_emptied_and_filled_again_and_keeps_its_devices() {
    let mut view = free(2);
    settle(&mut view);
    view.drained.insert(node(0));
    assert_eq!(act(&mut view), DeviceStep::Empty(number(1)));
    assert_eq!(act(&mut view), DeviceStep::Wait(DeviceWait::Emptied(number(1), false)), "it is not known");
    view.safe.insert(number(1), StoreAnswer::No);
    assert_eq!(act(&mut view), DeviceStep::Wait(DeviceWait::Emptied(number(1), true)));
    view.safe.insert(number(1), StoreAnswer::Yes);
    assert_eq!(act(&mut view), DeviceStep::Rest);
    view.drained.clear();
    assert_eq!((act(&mut view), settle(&mut view)), (DeviceStep::Fill(number(1)), DeviceStep::Rest));
}

#[test]
fn who_is_unwanted_is_removed_once_the_store_says_yes_and_not_taken_again() {
    let mut view = free(3);
    settle(&mut view);
    view.unwanted.insert(number(2));
    assert_eq!(act(&mut view), DeviceStep::Empty(number(2)));
    for answer in [StoreAnswer::Unknown, StoreAnswer::No] {
        view.safe.insert(number(2), answer);
        assert!(matches!(act(&mut view), DeviceStep::Wait(DeviceWait::Emptied(..))));
    }
    view.safe.insert(number(2), StoreAnswer::Yes);
    assert_eq!(act(&mut view), DeviceStep::Remove(number(2)));
    // Somebody wiped it.
    view.found.get_mut(&disk(1)).unwrap()[0].used_by.clear();
    assert_eq!(settle(&mut view), DeviceStep::Rest);
    assert_eq!(taken(&view, &disk(1)), Err(DeviceRefusal::RemovedBefore(number(2))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1_000), ..ProptestConfig::default() })]

    /// Whatever is found, asked for and answered, a device that is used is never taken, and none is given up that nobody wanted removed.
    #[test]
    fn no_history_takes_what_is_used_or_gives_up_what_is_needed(
        acts in proptest::collection::vec((0_u8..9, 0_usize..5), 1..80),
    ) {
        let mut view = free(5);
        for (act_number, of) in acts {
            let (serial, member) = (disk(of), number(of as u64 + 1));
            let answer = [StoreAnswer::Yes, StoreAnswer::No, StoreAnswer::Unknown][of % 3];
            match act_number {
                0 => drop(view.drained.insert(node(of))),
                1 => drop(view.drained.remove(&node(of))),
                2 => drop(view.unwanted.insert(member)),
                3 => drop(view.allowed.remove(&serial)),
                4 => drop(view.allowed.insert(serial)),
                5 => drop(view.found.remove(&serial)),
                6 => drop(view.safe.insert(member, answer)),
                7 => join(&mut view),
                _ => drop(act(&mut view)),
            }
        }
        let removed = view.members.iter().filter(|(_, member)| member.state == DeviceState::Removed);
        prop_assert!(removed.into_iter().all(|(number, _)| view.unwanted.contains(number)));
    }
}
