use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::local::member::MemberKey;
use crate::words::counter::MemberNumber;

fn order(task: OsdTask) -> OsdOrder {
    OsdOrder {
        serial: "S1".parse().unwrap(),
        uuid: "u".into(),
        task,
        takes: None,
        restart: None,
        only_made: false,
    }
}

fn own(number: u32) -> OsdLabel {
    OsdLabel { fsid: "f".into(), uuid: "u".into(), number, is_whole: true }
}

fn plan(device: OsdDevice, noted: &NotedOsd, process: MemberProcess) -> OsdStep {
    let order = order(OsdTask::Run);
    OsdSight { order: &order, fsid: "f", device, noted, process, is_restart_due: false }.plan()
}

fn running() -> MemberProcess {
    MemberProcess::Running(MemberKey { identity: "disks-1".into(), number: MemberNumber::new(1) })
}

fn ended(code: i32) -> MemberProcess {
    MemberProcess::Ended { code: Some(code), summary: "it ended".into(), is_due: true }
}

#[test]
fn a_device_is_registered_made_seen_with_its_label_and_then_started() {
    let mut noted = NotedOsd::default();
    assert_eq!(plan(OsdDevice::Empty, &noted, MemberProcess::Stopped), OsdStep::Register);
    noted.number = Some(4);
    assert_eq!(plan(OsdDevice::Empty, &noted, MemberProcess::Stopped), OsdStep::Make(4));
    let half = OsdDevice::Labelled(OsdLabel { is_whole: false, ..own(4) });
    assert_eq!(plan(half.clone(), &noted, MemberProcess::Stopped), OsdStep::Make(4), "it was broken off");
    let whole = OsdDevice::Labelled(own(4));
    assert_eq!(plan(whole.clone(), &noted, MemberProcess::Stopped), OsdStep::NoteMade);
    noted.was_made = true;
    assert_eq!(plan(whole.clone(), &noted, MemberProcess::Stopped), OsdStep::Start(4));
    assert_eq!(plan(whole.clone(), &noted, running()), OsdStep::Serve);
    assert_eq!(plan(whole, &noted, ended(1)), OsdStep::Start(4));
    assert!(matches!(plan(half, &noted, MemberProcess::Stopped), OsdStep::Rest(MemberState::Failed, _)));
}

#[test]
fn one_that_is_to_restart_is_stopped_and_started_also_after_it_gave_up() {
    let noted = NotedOsd { number: Some(4), was_made: true };
    let due = |device, process| {
        let order = order(OsdTask::Run);
        OsdSight { order: &order, fsid: "f", device, noted: &noted, process, is_restart_due: true }.plan()
    };
    assert_eq!(due(OsdDevice::Absent, running()), OsdStep::Stop, "one that runs is not looked at");
    for process in [MemberProcess::Stopped, ended(0), ended(1)] {
        assert_eq!(due(OsdDevice::Labelled(own(4)), process), OsdStep::Start(4));
    }
    assert!(matches!(due(OsdDevice::Empty, ended(0)), OsdStep::Rest(MemberState::Failed, _)));
}

#[test]
fn one_that_gave_up_stays_down_with_a_reason() {
    let noted = NotedOsd { number: Some(4), was_made: true };
    let step = plan(OsdDevice::Labelled(own(4)), &noted, ended(0));
    assert!(
        matches!(step, OsdStep::Rest(MemberState::Failed, reason) if reason.contains("without an error"))
    );
}

#[test]
fn what_is_of_somebody_else_is_refused_and_what_was_there_and_is_gone_is_lost() {
    let foreign = OsdDevice::Labelled(OsdLabel { fsid: "g".into(), ..own(4) });
    let other = OsdDevice::Labelled(OsdLabel { uuid: "v".into(), ..own(4) });
    let used = OsdDevice::Used(vec!["ext4".to_string()]);
    let (new, made) =
        (NotedOsd { number: Some(4), was_made: false }, NotedOsd { number: Some(4), was_made: true });
    for device in
        [foreign, other, used, OsdDevice::Labelled(own(5)), OsdDevice::Absent, OsdDevice::Several(vec![])]
    {
        let step = plan(device.clone(), &new, MemberProcess::Stopped);
        assert!(matches!(step, OsdStep::Rest(MemberState::Refused, _)), "{device:?}: {step:?}");
        let step = plan(device.clone(), &made, MemberProcess::Stopped);
        assert!(matches!(step, OsdStep::Rest(MemberState::Failed, _)), "{device:?}: {step:?}");
    }
    assert!(matches!(
        plan(OsdDevice::Empty, &made, MemberProcess::Stopped),
        OsdStep::Rest(MemberState::Failed, _)
    ));
}

#[derive(Debug, Clone)]
enum Act {
    Step,
    /// The step is made, and its agent is killed before it notes that.
    Killed,
    Wipe,
    Format,
    Swap,
    Pull(bool),
    Leave(bool),
    End(i32),
    Restart,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => Just(Act::Step),
        3 => Just(Act::Killed),
        1 => Just(Act::Wipe),
        1 => Just(Act::Format),
        1 => Just(Act::Swap),
        1 => any::<bool>().prop_map(Act::Pull),
        1 => any::<bool>().prop_map(Act::Leave),
        1 => (0_i32..2).prop_map(Act::End),
        1 => Just(Act::Restart),
    ]
}

proptest! {
    /// Whatever happens to a node and its device, nothing is written over anything but a device that is empty or was begun for this very OSD, and
    /// nothing is started but what is whole, its own, and was seen.
    #[test]
    fn nothing_is_overwritten_and_nothing_starts_without_its_data(acts in prop::collection::vec(act(), 1..60)) {
        let (mut device, mut noted, mut process) = (OsdDevice::Empty, NotedOsd::default(), MemberProcess::Stopped);
        let (mut is_there, mut task, mut has_had_data, mut is_due) = (true, OsdTask::Run, false, false);
        for act in acts {
            match act {
                Act::Wipe => device = OsdDevice::Empty,
                Act::Format => device = OsdDevice::Used(Vec::from(["ext4".to_string()])),
                Act::Swap => device = OsdDevice::Labelled(OsdLabel { uuid: "v".into(), ..own(4) }),
                Act::Pull(is_out) => is_there = !is_out,
                Act::Leave(is_left) => task = if is_left { OsdTask::Leave } else { OsdTask::Run },
                Act::End(code) if process == running() => process = ended(code),
                Act::End(_) => {}
                Act::Restart => is_due = true,
                Act::Step | Act::Killed => {
                    let seen = if is_there { device.clone() } else { OsdDevice::Absent };
                    let order = order(task);
                    let step = OsdSight { order: &order, fsid: "f", device: seen, noted: &noted, process: process.clone(), is_restart_due: is_due }.plan();
                    let is_noted = matches!(act, Act::Step);
                    match step {
                        OsdStep::Rest(..) | OsdStep::Serve => {}
                        OsdStep::Register => if is_noted { noted.number = Some(4) },
                        OsdStep::Make(number) => {
                            let is_begun = device == OsdDevice::Labelled(OsdLabel { is_whole: false, ..own(4) });
                            prop_assert!(is_there && (device == OsdDevice::Empty || is_begun), "{device:?}");
                            prop_assert!(!has_had_data, "it would come back without its data");
                            device = OsdDevice::Labelled(OsdLabel { is_whole: is_noted, ..own(number) });
                        }
                        OsdStep::NoteMade => if is_noted { noted.was_made = true },
                        OsdStep::Start(number) => {
                            prop_assert!(is_there && device == OsdDevice::Labelled(own(number)), "{device:?}");
                            (process, has_had_data) = (running(), true);
                        }
                        OsdStep::Stop => process = MemberProcess::Stopped,
                    }
                }
            }
        }
    }
}
