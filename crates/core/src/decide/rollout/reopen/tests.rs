use crate::decide::run_play::{NODES, RunPlay, run};
use crate::records::key::Key;
use crate::records::report::TargetActivity;
use crate::records::rollout::RolloutState;
use crate::records::target::AssignmentOutcome;
use crate::words::counter::RolloutNumber;
use crate::words::name::{NodeName, TargetName};

const fn has_failed(outcome: &AssignmentOutcome) -> bool {
    matches!(outcome, AssignmentOutcome::Failed { .. })
}

#[test]
fn a_run_that_fails_on_a_node_keeps_others_from_it_until_a_person_says_otherwise() {
    let mut play = RunPlay::new();
    play.start("work-1", "work@1");
    play.fails("work-1");
    let mark = play.fleet().not_runnable.get(&"web-1".parse::<NodeName>().unwrap()).unwrap().value.clone();
    assert_eq!((mark.run.clone(), mark.reason.as_str()), (Some(run("work-1")), "task two: exit code 3"));
    play.start("work-2", "work@2");
    assert!(play.assigned("work-2", "web-1").is_none());
    assert!(play.assigned("work-2", "web-2").is_some(), "the other node is runnable");
    let board = play.fleet().boards.get(&run("work-2")).unwrap();
    let target = board.target(&TargetName::parse("web-1").unwrap()).unwrap();
    let held = target.observation.unwrap().held.clone().unwrap();
    assert!(held.contains("run work-1 failed: task two: exit code 3"), "{held}");
    assert!(held.contains("bellwether node runnable web-1"), "{held}");
    play.delete(&Key::NotRunnable("web-1".parse().unwrap()));
    play.settle("work-2");
    assert!(play.assigned("work-2", "web-1").is_some());
    play.settle("work-1");
    assert!(play.fleet().not_runnable.is_empty(), "it is said once for each failure");
}

#[test]
fn a_failed_target_is_assigned_again_once_for_each_time_that_a_person_asks() {
    let mut play = RunPlay::new();
    play.start("work-1", "work@1");
    play.retry("work-1", 1);
    assert_eq!(play.assigned("work-1", "web-1"), Some((1, AssignmentOutcome::InFlight)), "nothing failed");
    play.fails("work-1");
    let (number, outcome) = play.assigned("work-1", "web-1").unwrap();
    // What was asked for came true with the failure.
    assert_eq!((number, outcome), (2, AssignmentOutcome::InFlight));
    assert_eq!(play.told("work-1"), Some(1));
    play.fails("work-1");
    let (number, outcome) = play.assigned("work-1", "web-1").unwrap();
    assert!(number == 2 && has_failed(&outcome), "it is not tried again by itself");
    let rollout = play.fleet().rollouts.get(&(run("work-1"), RolloutNumber::new(1))).unwrap();
    assert!(matches!(rollout.value.state, RolloutState::Paused(_)), "{:?}", rollout.value.state);
    play.retry("work-1", 2);
    assert_eq!(play.assigned("work-1", "web-1"), Some((3, AssignmentOutcome::InFlight)));
    assert_eq!(play.told("work-1"), Some(2));
    play.retry("work-1", 2);
    assert_eq!(play.assigned("work-1", "web-1"), Some((3, AssignmentOutcome::InFlight)), "asked twice");
}

#[test]
fn an_abort_withdraws_a_run_where_its_job_goes_on_though_it_failed_there() {
    let mut play = RunPlay::new();
    play.start("work-1", "work@1");
    play.fails("work-1");
    // As after a deadline: the target is given up, and the job goes on.
    play.says("work-1", TargetActivity::Applying { attempt: 1, waiting_for: None });
    assert!(play.assigned("work-1", "web-1").is_some_and(|(_, outcome)| has_failed(&outcome)));
    play.abort("work-1");
    assert_eq!(play.assigned("work-1", "web-1"), None);
    play.delete(&Key::NotRunnable("web-1".parse().unwrap()));
    play.start("work-2", "work@2");
    play.fails("work-2");
    play.abort("work-2");
    assert!(
        play.assigned("work-2", "web-1").is_some_and(|(_, outcome)| has_failed(&outcome)),
        "its job is over"
    );
}

#[test]
fn the_nodes_that_a_run_failed_on_are_found_while_it_goes_on_and_when_it_has_ended() {
    let mut play = RunPlay::new();
    play.start("work-1", "work@1");
    let failed = |play: &RunPlay| play.fleet().failed_nodes(&run("work-1"));
    assert!(failed(&play).is_empty());
    play.fails("work-1");
    assert_eq!(failed(&play), [NodeName::parse("web-1").unwrap()]);
    play.retry("work-1", 1);
    assert!(failed(&play).is_empty());
    play.abort("work-1");
    assert_eq!(failed(&play), NODES.map(|node| NodeName::parse(node).unwrap()), "it ended without them");
}
