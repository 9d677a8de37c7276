use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::*;
use crate::decide::run_play::{RunPlay, run};
use crate::decide::runs::{RUNS_KEPT, decide};
use crate::records::job::{Job, NodeJobs};
use crate::records::key::Key;
use crate::records::policy::OnFailure;
use crate::records::report::TargetActivity;
use crate::records::rollout::RolloutState;
use crate::records::run::{RunPlan, RunTask};
use crate::words::counter::{RolloutNumber, Sequence};

fn node(name: &str) -> NodeName {
    name.parse().unwrap()
}

fn plan(workflow: &str) -> RunPlan {
    let task = RunTask {
        stage: "one".parse().unwrap(),
        task: "two".parse().unwrap(),
        digest: String::new(),
        profiles: Vec::new(),
        idempotent: false,
    };
    let (tasks, contents) = (vec![task], "{}".to_string());
    RunPlan {
        workflow: workflow.parse().unwrap(),
        digest: String::new(),
        tasks,
        contents,
        features: BTreeSet::new(),
    }
}

/// A run of a workflow that another one undoes, in progress on both nodes.
fn started() -> RunPlay {
    let mut play = RunPlay::new();
    let annotation = crate::decide::run_play::annotation();
    let run = Run::new(plan("work"), Sequence::new(1), annotation).unwrap();
    play.put(Record::Run(Run { rollback: Some(plan("unwork").into()), ..run }));
    play.start_with("work-1", "work@1", OnFailure::Rollback);
    play
}

/// A node begins the first task of a run.
fn begins(play: &mut RunPlay, name: &str) {
    let jobs = vec![Job::created(0, "two".parse().unwrap())];
    let jobs = NodeJobs {
        run: run("work-1"),
        node: node(name),
        ledger: None,
        jobs,
        closed: false,
        forgotten: false,
        failed_for: Default::default(),
    };
    play.put(Record::Jobs(jobs));
}

/// Everything is decided about runs; the name of the one that undoes, if one does.
fn decided(play: &mut RunPlay) -> Option<String> {
    for _ in 0..5 {
        let verdict = decide(play.fleet(), RUNS_KEPT, Timestamp::EPOCH);
        for write in verdict.changesets.into_iter().flat_map(|changeset| changeset.writes) {
            play.write(write);
        }
    }
    play.fleet().undo_of(&run("work-1")).map(ToString::to_string)
}

fn state(play: &RunPlay, name: &str) -> RolloutState {
    play.fleet().rollouts.get(&(run(name), RolloutNumber::new(1))).unwrap().value.state.clone()
}

#[test]
fn a_run_that_fails_is_withdrawn_and_undone_on_the_nodes_that_began_it_and_no_others() {
    let mut play = started();
    begins(&mut play, "web-1");
    play.fails("work-1");
    assert_eq!(state(&play, "work-1"), RolloutState::RolledBack);
    assert_eq!(play.assigned("work-1", "web-2"), None, "it is withdrawn where it was in flight");
    let undo = decided(&mut play).unwrap();
    let entity = play.fleet().entities.get(&run(&undo)).unwrap().value.clone();
    assert_eq!(entity.source, TargetSource::Listed(Arc::new(BTreeSet::from([node("web-1")]))));
    let started = play.fleet().runs.get(&run(&undo)).unwrap().value.clone();
    let undoes = started.undoes.clone();
    assert_eq!((started.workflow.as_str(), undoes), ("unwork", Some(run("work-1"))));
    let why =
        |play: &RunPlay, name: &str| play.fleet().why_rollout(play.fleet().boards.get(&run(name)).unwrap());
    let told = format!("; run {undo} undoes it");
    assert!(why(&play, "work-1").contains(&told), "{}", why(&play, "work-1"));
    assert!(why(&play, &undo).ends_with("; it undoes run work-1"), "{}", why(&play, &undo));
    assert_eq!(decided(&mut play), Some(undo), "it is undone once");
}

#[test]
fn what_undoes_a_run_begins_though_its_node_is_not_runnable_and_makes_it_runnable_again() {
    let mut play = started();
    begins(&mut play, "web-1");
    play.start("other-2", "other@2");
    play.fails("work-1");
    play.settle("other-2");
    let undo = decided(&mut play).unwrap();
    play.settle(&undo);
    let content = play.fleet().contents.get(&node("web-1")).unwrap();
    assert_eq!(content.undo, Some(run(&undo)));
    assert!(content.not_runnable.is_some(), "others wait for it");
    assert!(play.assigned(&undo, "web-1").is_some());
    let version = play.fleet().runs.get(&run(&undo)).unwrap().value.version().unwrap().to_string();
    play.node_says(("web-1", &undo), (Some(&version), TargetActivity::Nothing));
    decided(&mut play);
    assert_eq!(state(&play, &undo), RolloutState::Succeeded);
    assert!(play.fleet().not_runnable.is_empty());
    let content = play.fleet().contents.get(&node("web-1")).unwrap();
    assert_eq!((&content.undo, &content.not_runnable), (&None, &None));
}

#[test]
fn a_run_that_no_node_began_has_nothing_to_undo_and_is_forgotten_in_time() {
    let mut play = started();
    play.fails("work-1");
    assert_eq!(decided(&mut play), None);
    assert_eq!(play.fleet().runs.get(&run("work-1")).unwrap().value.undo, Some(UndoState::Nothing));
    let verdict = decide(play.fleet(), RUNS_KEPT, Timestamp::EPOCH.plus(RUNS_KEPT));
    let deletes = Write::delete(Key::Run(run("work-1")));
    assert!(verdict.changesets.iter().any(|changeset| changeset.writes.contains(&deletes)));
}

#[test]
fn a_run_that_undoes_another_and_fails_waits_for_a_person() {
    let mut play = started();
    begins(&mut play, "web-1");
    play.fails("work-1");
    let undo = decided(&mut play).unwrap();
    play.settle(&undo);
    play.fails(&undo);
    assert!(matches!(state(&play, &undo), RolloutState::Paused(_)), "a person looks at it");
    let mark = play.fleet().not_runnable.get(&node("web-1")).unwrap().value.clone();
    assert_eq!(mark.run, Some(run(&undo)));
    decided(&mut play);
    assert!(!play.fleet().not_runnable.is_empty());
}

/// Starts a run in batches of one, with its record.
fn queued(play: &mut RunPlay, workflow: &str, number: u64) -> String {
    let annotation = crate::decide::run_play::annotation();
    let run = Run::new(plan(workflow), Sequence::new(number), annotation).unwrap();
    let (name, version) = (run.name.to_string(), run.version().unwrap().to_string());
    play.put(Record::Run(run));
    play.start_in((&name, &version), OnFailure::Pause, 1);
    name
}

#[test]
fn a_run_comes_to_a_node_after_those_that_were_started_before_it() {
    let mut play = RunPlay::new();
    let first = queued(&mut play, "work", 1);
    let second = queued(&mut play, "other", 2);
    let at = |play: &RunPlay, name: &str| ["web-1", "web-2"].map(|node| play.assigned(name, node).is_some());
    assert_eq!(at(&play, &first), [true, false]);
    assert_eq!(at(&play, &second), [true, false], "its agent knows the order of those that have come");
    play.node_says(("web-1", &second), (Some("other@2"), TargetActivity::Nothing));
    assert_eq!(at(&play, &second), [true, false], "the first has not come to web-2 yet");
    let board = play.fleet().boards.get(&run(&second)).unwrap();
    let target = board.target(&"web-2".parse().unwrap()).unwrap();
    let held = target.observation.unwrap().held.clone().unwrap();
    assert!(held.contains("run work-1 was started before it"), "{held}");
    play.node_says(("web-1", &first), (Some("work@1"), TargetActivity::Nothing));
    play.settle(&second);
    assert_eq!([at(&play, &first), at(&play, &second)], [[true, true]; 2]);
}

#[test]
fn a_run_that_is_aborted_or_gone_makes_way_for_those_behind_it() {
    let mut play = RunPlay::new();
    let first = queued(&mut play, "work", 1);
    let second = queued(&mut play, "other", 2);
    play.node_says(("web-1", &second), (Some("other@2"), TargetActivity::Nothing));
    assert!(play.assigned(&second, "web-2").is_none());
    play.abort(&first);
    play.settle(&second);
    assert!(play.assigned(&second, "web-2").is_some());
    play.delete(&Key::Run(run(&first)));
    play.delete(&Key::Entity(run(&first)));
    assert!(play.fleet().run_index.open_on(&node("web-2")).eq([&run(&second)]));
}

#[test]
fn what_two_undos_did_is_not_done_by_a_third() {
    let mut play = RunPlay::new();
    let first = queued(&mut play, "work", 1);
    let annotation = crate::decide::run_play::annotation;
    let with_plan = |run: &Run| Run { rollback: Some(plan("unwork").into()), ..run.clone() };
    let stored = |play: &RunPlay, name: &str| Run::clone(&play.fleet().runs.get(&run(name)).unwrap().value);
    play.put(Record::Run(with_plan(&stored(&play, &first))));
    for name in ["web-1", "web-2"] {
        begins(&mut play, name);
    }
    play.abort(&first);
    let undo_of = |play: &RunPlay| undo(play.fleet(), &stored(play, &first), annotation()).unwrap();
    for (number, done) in [(8, "web-1"), (9, "web-2")] {
        let before = undo_of(&play);
        assert!(before.nodes.contains(&node(done)), "{:?}", before.nodes);
        let started = Run::new(plan("unwork"), Sequence::new(number), annotation()).unwrap();
        play.put(Record::Run(started.clone()));
        let entity = requested(&started, before.nodes.clone(), policy(play.fleet(), &run(&first))).unwrap();
        play.put(Record::Entity(entity));
        play.settle(started.name.as_str());
        let version = started.version().unwrap().to_string();
        play.node_says((done, started.name.as_str()), (Some(&version), TargetActivity::Nothing));
        play.put(Record::Run(with(&stored(&play, &first), UndoState::By(started.name.clone()))));
    }
    assert_eq!(undo_of(&play).nodes, BTreeSet::new());
}
