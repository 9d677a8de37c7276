use alloc::vec;

use super::*;
use crate::records::job::{MAX_OUTPUT_BYTES, OutputsTooLarge};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn memory() -> WorkMemory {
    WorkMemory::new(Version::parse("install@7").unwrap())
}

fn running(idempotent: bool) -> WorkMemory {
    let mut memory = memory();
    memory.created("install-db".parse().unwrap(), idempotent);
    assert_eq!(memory.next("a", NOW), WorkStep::Begin(0));
    memory.begins(NOW);
    memory
}

#[test]
fn tasks_are_created_and_begun_in_order_until_none_follows() {
    let mut memory = memory();
    for index in 0..2 {
        assert_eq!(memory.next("a", NOW), WorkStep::Create(index));
        memory.created("install-db".parse().unwrap(), false);
        assert_eq!(memory.next("a", NOW), WorkStep::Begin(index));
        memory.begins(NOW);
        memory.completes(NOW);
    }
    assert_eq!(
        memory.next("a", NOW),
        WorkStep::Create(2),
        "only the control plane knows whether there is one"
    );
}

#[test]
fn a_job_that_ran_when_its_agent_ended_is_lost_unless_it_is_idempotent() {
    let mut once = running(false);
    once.started("a");
    assert!(matches!(once.next("a", NOW), WorkStep::Fail(reason) if reason.contains("is lost")));
    let mut again = running(true);
    again.started("b");
    assert_eq!(again.next("b", NOW), WorkStep::Begin(0));
}

#[test]
fn a_job_that_had_not_begun_begins_after_a_restart() {
    let mut memory = memory();
    memory.created("install-db".parse().unwrap(), false);
    memory.started("b");
    assert_eq!(memory.next("b", NOW), WorkStep::Begin(0));
}

#[test]
fn an_exit_code_says_how_the_run_goes_on() {
    let exits = [
        (0, ScriptExit::Complete),
        (1, ScriptExit::Failed(1)),
        (16, ScriptExit::Stop { again: false }),
        (32, ScriptExit::Boot { how: BootEnd::PowerOff, again: false }),
        (64, ScriptExit::Boot { how: BootEnd::Reboot, again: false }),
        (128, ScriptExit::Incomplete),
        (144, ScriptExit::Stop { again: true }),
        (160, ScriptExit::Boot { how: BootEnd::PowerOff, again: true }),
        (192, ScriptExit::Boot { how: BootEnd::Reboot, again: true }),
        (208, ScriptExit::Failed(208)),
    ];
    for (code, exit) in exits {
        assert_eq!(ScriptExit::of(code), exit, "{code}");
        assert_eq!(exit.code(), Some(code));
    }
}

#[test]
fn a_stop_goes_on_with_the_next_task_and_an_incomplete_one_with_the_same() {
    for (again, next) in [(false, WorkStep::Create(1)), (true, WorkStep::Begin(0))] {
        let mut memory = running(false);
        memory.pauses(ScriptExit::Stop { again }, "a", NOW, 7);
        assert!(matches!(memory.next("a", NOW), WorkStep::WaitForStart(_)));
        memory.started("a");
        assert_eq!(memory.next("a", NOW), next);
    }
}

#[test]
fn a_reboot_goes_on_in_another_boot_only() {
    for (again, next) in [(false, WorkStep::Create(1)), (true, WorkStep::Begin(0))] {
        let mut memory = running(false);
        memory.pauses(ScriptExit::Boot { how: BootEnd::Reboot, again }, "a", NOW, 7);
        memory.started("a");
        assert_eq!(memory.next("a", NOW), WorkStep::EndBoot(BootEnd::Reboot));
        memory.started("b");
        assert_eq!(memory.next("b", NOW), next);
    }
}

#[test]
fn a_task_that_always_asks_for_a_reboot_fails_at_last() {
    let mut memory = running(false);
    for boot in 0..=MAX_BOOTS {
        memory.pauses(ScriptExit::Boot { how: BootEnd::Reboot, again: true }, &boot.to_string(), NOW, 7);
        let step = memory.next(&boot.to_string(), NOW);
        let last = boot == MAX_BOOTS;
        assert_eq!(matches!(step, WorkStep::Fail(_)), last, "{boot}: {step:?}");
        if !last {
            memory.started(&(boot + 1).to_string());
            memory.begins(NOW);
        }
    }
}

#[test]
fn an_incomplete_task_begins_again_later_each_time() {
    let mut memory = running(false);
    let mut waits = alloc::vec::Vec::new();
    for _ in 0..4 {
        memory.pauses(ScriptExit::Incomplete, "a", NOW, 7);
        let WorkStep::WaitUntil(at) = memory.next("a", NOW) else { panic!("it waits") };
        waits.push(at.since(NOW));
        assert_eq!(memory.next("a", at), WorkStep::Begin(0));
        memory.begins(NOW);
    }
    assert!(waits.is_sorted() && waits.first() < waits.last(), "{waits:?}");
    memory.pauses(ScriptExit::Incomplete, "a", Timestamp::from_millis(u64::MAX / 2), 7);
    memory.started("a");
    assert_eq!(memory.next("a", NOW), WorkStep::Begin(0), "the clock was wrong in the life before");
}

/// Index, state, exit, exit code and attempts of a job.
type Known = (u32, job::JobState, Option<JobExit>, Option<i32>, u32);

fn told(memory: &WorkMemory) -> alloc::vec::Vec<Known> {
    memory.jobs.iter().map(|job| (job.index, job.state, job.exit, job.exit_code, job.attempts)).collect()
}

#[test]
fn the_jobs_of_a_run_are_told_as_they_ended() {
    let mut memory = running(false);
    assert_eq!(told(&memory), [(0, job::JobState::Running, None, None, 1)]);
    memory.pauses(ScriptExit::Incomplete, "a", NOW, 7);
    assert_eq!(told(&memory), [(0, job::JobState::Incomplete, Some(JobExit::Complete), Some(128), 1)]);
    memory.begins(NOW);
    memory.pauses(ScriptExit::Boot { how: BootEnd::Reboot, again: false }, "a", NOW, 7);
    let first = (0, job::JobState::Finished, Some(JobExit::Reboot), Some(64), 2);
    assert_eq!(told(&memory), [first]);
    memory.started("b");
    memory.created("next".parse().unwrap(), false);
    assert_eq!(told(&memory), [first, (1, job::JobState::Created, None, None, 0)]);
    memory.begins(NOW);
    memory.fails(Some(3), NOW);
    assert_eq!(told(&memory), [first, (1, job::JobState::Failed, Some(JobExit::Failed), Some(3), 1)]);
}

#[test]
fn a_task_that_is_retried_begins_again_after_the_tasks_before_it() {
    let mut memory = running(false);
    memory.completes(NOW);
    memory.created("next".parse().unwrap(), false);
    memory.begins(NOW);
    memory.fails(Some(3), NOW);
    memory.retried();
    assert_eq!(memory.next("a", NOW), WorkStep::Create(1));
    memory.created("next".parse().unwrap(), false);
    memory.begins(NOW);
    assert_eq!(told(&memory).last(), Some(&(1, job::JobState::Running, None, None, 2)));
}

#[test]
fn a_job_that_is_lost_is_told_as_lost_and_one_that_ended_is_not() {
    let mut lost = running(false);
    lost.started("b");
    lost.gives_up();
    assert_eq!(told(&lost), [(0, job::JobState::Lost, None, None, 1)]);
    let mut ended = running(false);
    ended.pauses(ScriptExit::Boot { how: BootEnd::Reboot, again: true }, "a", NOW, 7);
    ended.gives_up();
    assert_eq!(told(&ended), [(0, job::JobState::Incomplete, Some(JobExit::Reboot), Some(192), 1)]);
}

#[test]
fn a_run_has_begun_with_its_first_job_and_not_before() {
    let mut memory = memory();
    assert!(!memory.has_begun());
    memory.created("install-db".parse().unwrap(), false);
    assert!(!memory.has_begun());
    memory.begins(NOW);
    assert!(memory.has_begun());
    memory.fails(Some(3), NOW);
    memory.retried();
    assert!(memory.has_begun(), "another run does not hold what is to begin again");
    let mut complete = running(false);
    complete.completes(NOW);
    assert!(complete.has_begun());
}

#[test]
fn the_outputs_of_a_task_are_kept_with_its_job_until_it_begins_again() {
    let mut memory = running(false);
    memory.writes(r#"{"port":1}"#.into()).unwrap();
    memory.completes(NOW);
    memory.created("next".parse().unwrap(), false);
    memory.begins(NOW);
    memory.writes(r#"{"port":2}"#.into()).unwrap();
    let told = |memory: &WorkMemory| {
        let complete = memory.complete_jobs().filter_map(|job| job.outputs.clone());
        complete.map(|outputs| outputs.to_string()).collect::<alloc::vec::Vec<_>>()
    };
    assert_eq!(told(&memory), [r#"{"port":1}"#], "the other is not complete");
    memory.begins(NOW);
    memory.completes(NOW);
    assert_eq!(told(&memory), [r#"{"port":1}"#], "those of an attempt that was not the last are forgotten");
}

#[test]
fn outputs_beyond_the_limit_of_a_task_or_a_run_are_refused() {
    let text = |bytes: usize| alloc::sync::Arc::<str>::from("x".repeat(bytes));
    let mut memory = running(false);
    assert_eq!(memory.writes(text(MAX_OUTPUT_BYTES + 1)), Err(OutputsTooLarge::OfTask));
    for _ in 0..4 {
        memory.writes(text(MAX_OUTPUT_BYTES)).unwrap();
        memory.completes(NOW);
        memory.created("next".parse().unwrap(), false);
        memory.begins(NOW);
    }
    assert_eq!(memory.writes(text(1)), Err(OutputsTooLarge::OfRun));
    assert_eq!(memory.jobs.last().unwrap().outputs, None);
}

#[test]
fn a_task_whose_condition_does_not_hold_is_skipped_without_a_beginning_and_the_next_one_follows() {
    let mut memory = memory();
    memory.created("install-db".parse().unwrap(), false);
    memory.skips(NOW);
    assert_eq!(told(&memory), [(0, job::JobState::Skipped, None, None, 0)]);
    assert_eq!(memory.jobs.first().unwrap().ended, Some(NOW));
    memory.started("b");
    assert_eq!(memory.next("b", NOW), WorkStep::Create(1));
    memory.gives_up();
    assert_eq!(told(&memory), [(0, job::JobState::Skipped, None, None, 0)]);
}

#[test]
fn a_run_that_goes_on_elsewhere_recalls_the_jobs_that_are_complete_and_no_others() {
    let named = |index: u32, outputs: Option<&str>| {
        let outputs = outputs.map(Into::into);
        Job { state: job::JobState::Finished, outputs, ..Job::created(index, "one".parse().unwrap()) }
    };
    let mut memory = WorkMemory::after(Version::parse("install@7").unwrap(), 2);
    memory.recalls(vec![named(0, Some("{}")), named(1, None), named(2, None)]);
    assert_eq!(memory.complete_jobs().map(|job| job.index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(memory.next("boot", Timestamp::EPOCH), WorkStep::Create(2));
    memory.recalls(vec![named(0, None)]);
    assert!(memory.jobs.first().is_some_and(|job| job.outputs.is_some()), "what this ledger has stays");
}
