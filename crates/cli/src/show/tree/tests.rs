use bellwether_api::v1::entity::RequestKind;
use bellwether_api::v1::progress::Progress;
use bellwether_api::v1::rollout::{Direction, RolloutBatch, StageProgress, TargetCounts, VersionJudgement};
use serde_json::json;

use super::*;

fn target(name: &str, phase: &str, rollout: u64, told_at_ms: u64) -> TargetView {
    TargetView {
        name: name.to_owned(),
        phase: phase.parse().unwrap(),
        since_ms: Some(told_at_ms),
        assigned: Some("v2".to_owned()),
        assigned_at_ms: Some(told_at_ms),
        assignment: None,
        running: Some("v1".to_owned()),
        rollout: Some(rollout),
        presence: PresenceState::Up,
        reason: format!("{name}: assigned v2, no answer yet"),
        evidence: None,
    }
}

pub(crate) fn view() -> RolloutView {
    let batch = |number: u64, opened_ms| RolloutBatch {
        number,
        opened_ms,
        assigned_total: number,
        counts: TargetCounts::default(),
    };
    let rollout = Rollout {
        number: 2,
        request: 2,
        version: "v2".to_owned(),
        from: Some("v1".to_owned()),
        kind: RequestKind::Start,
        by: "kim".to_owned(),
        reason: String::new(),
        policy: serde_json::from_value(json!({})).unwrap(),
        started_ms: 1_000,
        ended_ms: None,
        status: RolloutState::InProgress.into(),
        direction: Direction::Forward,
        undone: None,
        judgement: VersionJudgement::Open,
        waived_failed: 0,
        waived_unreachable: 0,
        waived_monitor: false,
        stage: StageProgress::default(),
        enrolled: 0,
        peak: None,
        counts: TargetCounts::default(),
        batches: vec![batch(1, 1_000), batch(2, 5_000)],
        failures: vec![],
    };
    RolloutView {
        entity: serde_json::from_value(
            json!({"name": "web", "selector": "all", "kind": "version", "policy": {}}),
        )
        .unwrap(),
        progress: Progress::default(),
        desired: Some("v2".to_owned()),
        rollout: Some(rollout),
        counts: TargetCounts { targets: 4, in_flight: 1, succeeded: 1, failed: 1, ..TargetCounts::default() },
        needed: 4,
        tolerated: 0,
        batch: 1,
        reason: "rollout 2 to v2 is in progress".to_owned(),
        now_ms: 9_000,
        revision: 1,
    }
}

#[test]
fn a_rollout_reads_as_a_tree_with_failed_targets_first() {
    let targets = [
        target("web-1", "succeeded", 2, 1_000),
        target("web-2", "failed", 2, 1_000),
        target("web-3", "assigned", 2, 5_000),
        target("web-4", "succeeded", 1, 500),
    ];
    let drawn = lines(&view(), &targets, Paint::new(false)).join("\n");
    // Times of day depend on the zone of the machine.
    let drawn = drawn.replace(&clock(1_000), "TIME-1").replace(&clock(5_000), "TIME-2");
    insta::assert_snapshot!(drawn, @r"
    web  v1 → v2  in progress  rollout 2 by kim, 8s
    │ ██████████▒▒▒▒▒░░░░░ 1/4 succeeded, 4 needed · 1 failed, 0 tolerated
    │ 1 in flight, at most 1 at once
    │ rollout 2 to v2 is in progress
    ├─ batch 1  TIME-1  1 failed, 1 succeeded
    │  ├ ✗ web-2        failed           8s  v1         assigned v2, no answer yet
    │  └ ✓ web-1        succeeded        8s  v1
    ├─ batch 2  TIME-2  1 assigned
    │  └ ◔ web-3        assigned         4s  v1         assigned v2, no answer yet
    └─ not started yet  1 waiting
       └ · web-4        waiting              v1
    ");
}

#[test]
fn a_rollout_that_was_rolled_back_shows_no_success_and_an_empty_bar() {
    let mut view = view();
    view.rollout.as_mut().unwrap().status = RolloutState::RolledBack.into();
    view.counts =
        TargetCounts { targets: 2, succeeded: 1, failed: 1, rolled_back: 2, ..TargetCounts::default() };
    let back = |name| TargetView { assigned: Some("v1".to_owned()), ..target(name, "rolled_back", 2, 8_000) };
    let mut targets = [back("web-1"), back("web-2")];
    let drawn = lines(&view, &targets, Paint::new(false)).join("\n");
    assert!(drawn.contains("│ ░░░░░░░░░░░░░░░░░░░░ 0/2 run v2 · 1 failed, 0 tolerated\n"), "{drawn}");
    assert!(!drawn.contains("in flight"), "{drawn}");
    assert!(drawn.contains("2 rolled back") && drawn.contains("↩ web-1        rolled back"), "{drawn}");
    assert!(!drawn.contains("succeeded"), "{drawn}");
    // The time of the rollback says nothing about the batch.
    assert!(drawn.contains("└─ back to v1  2 rolled back") && drawn.contains("1 assigned"), "{drawn}");
    // A target that could not be rolled back still counts.
    targets[1].running = Some("v2".to_owned());
    let drawn = lines(&view, &targets, Paint::new(false)).join("\n");
    assert!(drawn.contains("│ ██████████░░░░░░░░░░ 1/2 run v2"), "{drawn}");
}

#[test]
fn a_target_that_does_not_begin_says_why() {
    let view = view();
    let kept = "skipped: not runnable: run work-7 failed; then: bellwether node runnable web-2";
    let waits =
        TargetView { rollout: None, reason: format!("web-2: {kept}"), ..target("web-2", "idle", 1, 0) };
    let drawn = lines(&view, &[target("web-1", "assigned", 2, 8_000), waits], Paint::new(false)).join("\n");
    assert!(drawn.lines().any(|line| line.contains("web-2") && line.ends_with(kept)), "{drawn}");
}

#[test]
fn a_stage_shows_its_cap_and_a_closed_window_when_it_opens() {
    let mut view = view();
    view.entity.policy.stages = Some(["1", "25% approve", "100%"].map(str::to_owned).to_vec());
    let rollout = view.rollout.as_mut().unwrap();
    rollout.stage.current = 1;
    let waiting = Some(RolloutWait::Window { opens_ms: 60_000 });
    rollout.status = RolloutStatus { waiting, ..RolloutState::Waiting.into() };
    let drawn = lines(&view, &[], Paint::new(false)).join("\n");
    let line = format!("│ stage 2 of 3: up to 25% · the next window opens {}", date(60_000));
    assert!(drawn.contains(&line), "{drawn}");
    view.rollout.as_mut().unwrap().status = RolloutState::RollingBack.into();
    let drawn = lines(&view, &[], Paint::new(false)).join("\n");
    assert!(!drawn.contains("stage"), "a rollback has no stages: {drawn}");
}

#[test]
fn partial_success_is_never_shown_green() {
    assert_ne!(state(&RolloutState::PartiallySucceeded.into()).1, Tone::Good);
    assert_eq!(state(&RolloutState::Succeeded.into()).1, Tone::Good);
}

#[test]
fn a_large_batch_is_cut_to_what_can_be_read() {
    let targets: Vec<TargetView> =
        (0..500).map(|n| target(&format!("n-{n:03}"), "assigned", 2, 1_000)).collect();
    let drawn = lines(&view(), &targets, Paint::new(false));
    assert!(drawn.len() < 30, "{} lines", drawn.len());
    assert!(drawn.iter().any(|line| line.contains("and 488 more")));
}

#[test]
fn a_finished_batch_is_one_line_below_those_in_flight() {
    let mut targets: Vec<TargetView> =
        (0..9).map(|n| target(&format!("web-{n}"), "succeeded", 2, 1_000)).collect();
    targets.push(target("web-9", "assigned", 2, 5_000));
    let drawn = lines(&view(), &targets, Paint::new(false)).join("\n");
    let at = |part: &str| drawn.find(part).unwrap_or_else(|| panic!("{part} is not in\n{drawn}"));
    assert!(at("web-9") < at("batch 1") && !drawn.contains("web-0"), "{drawn}");
    assert!(drawn.ends_with("9 succeeded"), "{drawn}");
}

#[test]
fn a_long_reason_is_wrapped() {
    let view = RolloutView { reason: "rollout 2 to v2 is paused ".repeat(8), ..view() };
    let drawn = lines(&view, &[], Paint::new(false));
    let reason: Vec<&String> = drawn.iter().filter(|line| line.contains("paused")).collect();
    assert!(reason.len() > 1 && reason.iter().all(|line| line.chars().count() <= 80), "{drawn:?}");
}

#[test]
fn a_target_that_a_pause_keeps_is_called_paused_with_its_reason() {
    let held = TargetView {
        reason: "web-4: skipped: paused by kim: disk".to_owned(),
        ..target("web-4", "idle", 1, 500)
    };
    let drawn = lines(&view(), &[held], Paint::new(false)).join("\n");
    assert!(drawn.contains("not started yet  1 paused"), "{drawn}");
    assert!(drawn.contains("‖ web-4        paused") && drawn.contains("paused by kim: disk"), "{drawn}");
}
