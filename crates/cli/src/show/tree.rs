//! A rollout as a tree: batches as branches, targets as leaves with glyph, state, age and reason, thresholds on top.

use std::collections::BTreeMap;

use bellwether_api::v1::node::PresenceState;
use bellwether_api::v1::rollout::status::RolloutWait;
use bellwether_api::v1::rollout::{Rollout, RolloutState, RolloutStatus, RolloutView};
use bellwether_api::v1::target::{TargetPhase, TargetView};

use super::paint::{Paint, Tone, phase};
use super::time::{ago, clock, date};

/// Most leaves shown under one branch; failed targets come first.
const LEAVES: usize = 12;

/// The tree, line by line.
pub(crate) fn lines(view: &RolloutView, targets: &[TargetView], paint: Paint) -> Vec<String> {
    let mut lines = vec![head(view, paint)];
    lines.extend(thresholds(view, targets, paint));
    if !view.reason.is_empty() {
        lines.push(format!("│ {}", view.reason));
    }
    let Some(rollout) = &view.rollout else { return lines };
    lines.extend(stage(view, rollout).map(|text| format!("│ {text}")));
    let (batches, rest) = sort(rollout, targets);
    let count = rollout.batches.len();
    for (index, batch) in rollout.batches.iter().enumerate() {
        let leaves = batches.get(&index).cloned().unwrap_or_default();
        let last = index + 1 == count && rest.is_empty();
        let title = format!("batch {}  {}", batch.number, paint.text(Tone::Dim, &clock(batch.opened_ms)));
        branch(&mut lines, &title, &leaves, (view.now_ms, last), paint);
    }
    if !rest.is_empty() {
        let title = paint.text(Tone::Dim, "not assigned by this rollout");
        let rest: Vec<TargetView> = rest.into_iter().map(unassigned).collect();
        branch(&mut lines, &title, &rest.iter().collect::<Vec<_>>(), (view.now_ms, true), paint);
    }
    lines
}

fn head(view: &RolloutView, paint: Paint) -> String {
    let name = paint.text(Tone::Strong, &view.entity.name);
    let Some(rollout) = &view.rollout else { return format!("{name}  no rollouts yet") };
    let from = rollout.from.as_deref().unwrap_or("nothing");
    let (word, tone) = state(&rollout.status);
    let end = rollout.ended_ms.unwrap_or(view.now_ms);
    format!(
        "{name}  {from} → {}  {}  {}",
        rollout.version,
        paint.text(tone, word),
        paint.text(
            Tone::Dim,
            &format!("rollout {} by {}, {}", rollout.number, rollout.by, ago(end, rollout.started_ms))
        ),
    )
}

/// The stage with its cap, and when the reason to wait ends by itself.
fn stage(view: &RolloutView, rollout: &Rollout) -> Option<String> {
    let forward = rollout.ended_ms.is_none() && rollout.status.state != RolloutState::RollingBack;
    let stages = view.entity.policy.stages.as_deref().unwrap_or_default();
    let at = usize::try_from(rollout.stage.current).unwrap_or(usize::MAX);
    let cap = stages.get(at).filter(|_| forward).map(|cap| cap.trim_end_matches(" approve"));
    let stage = cap.map(|cap| format!("stage {} of {}: up to {cap}", at + 1, stages.len()));
    let opens = rollout.status.waiting.as_ref().and_then(opens);
    let parts: Vec<String> = [stage, opens].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// When what a rollout waits for changes by itself, if that is known.
fn opens(wait: &RolloutWait) -> Option<String> {
    match wait {
        RolloutWait::Window { opens_ms } => Some(format!("the next window opens {}", date(*opens_ms))),
        RolloutWait::Frozen { until_ms: Some(until), .. } => {
            Some(format!("the freeze ends {}", date(*until)))
        }
        RolloutWait::TargetsClosed { until_ms: Some(until) } => {
            Some(format!("the first opens {}", date(*until)))
        }
        RolloutWait::Frozen { until_ms: None, .. }
        | RolloutWait::TargetsClosed { until_ms: None }
        | RolloutWait::NoTargets
        | RolloutWait::BatchIsZero
        | RolloutWait::OnlyHeld
        | RolloutWait::OnlySuspect
        | RolloutWait::OnlyUnreachable
        | RolloutWait::NoDomain { .. }
        | RolloutWait::Approval { .. }
        | RolloutWait::Need { .. }
        | RolloutWait::Unavailable { .. }
        | RolloutWait::Hook { .. } => None,
    }
}

/// A state's text and tone. Partial success is never shown green.
pub(crate) const fn state(status: &RolloutStatus) -> (&'static str, Tone) {
    match status.state {
        RolloutState::InProgress => ("in progress", Tone::Busy),
        RolloutState::Waiting if matches!(status.waiting, Some(RolloutWait::Approval { .. })) => {
            ("needs approval", Tone::Busy)
        }
        RolloutState::Waiting => ("waiting", Tone::Busy),
        RolloutState::Paused => ("paused", Tone::Busy),
        RolloutState::RollingBack => ("rolling back", Tone::Bad),
        RolloutState::Succeeded => ("succeeded", Tone::Good),
        RolloutState::PartiallySucceeded => ("partially succeeded", Tone::Busy),
        RolloutState::RolledBack => ("rolled back", Tone::Bad),
        RolloutState::RollbackFailed => ("rollback failed", Tone::Bad),
        RolloutState::Aborted => ("aborted", Tone::Bad),
        RolloutState::Superseded => ("superseded", Tone::Dim),
    }
}

/// Progress against its thresholds, in two lines that fit 80 columns. Of a rollback: how many targets still run the version.
fn thresholds(view: &RolloutView, targets: &[TargetView], paint: Paint) -> [String; 2] {
    let counts = &view.counts;
    let progress = match &view.rollout {
        Some(rollout) if is_rollback(rollout.status.state) => {
            let version = &rollout.version;
            let left = targets.iter().filter(|target| target.running.as_ref() == Some(version)).count();
            let bar = bar(0, u64::try_from(left).unwrap_or(u64::MAX), 0, counts.targets, paint);
            let all = counts.targets;
            format!(
                "│ {bar} {left}/{all} run {version} · {} failed, {} tolerated",
                counts.failed, view.tolerated
            )
        }
        Some(_) | None => format!(
            "│ {} {}/{} succeeded, {} needed · {} failed, {} tolerated",
            bar(counts.succeeded, counts.failed, counts.in_flight, counts.targets, paint),
            counts.succeeded,
            counts.targets,
            view.needed,
            counts.failed,
            view.tolerated,
        ),
    };
    let mut text = format!("│ {} in flight, at most {} at once", counts.in_flight, view.batch);
    for (count, word) in [
        (counts.unreachable, "unreachable"),
        (counts.held, "held"),
        (counts.rolled_back, "rolled back"),
        (counts.rollback_failed, "failed in rollback"),
    ] {
        if count > 0 {
            text.push_str(&format!(" · {count} {word}"));
        }
    }
    [progress, text]
}

/// Whether the rollout takes its version back, or has done so.
const fn is_rollback(state: RolloutState) -> bool {
    match state {
        RolloutState::RollingBack | RolloutState::RolledBack | RolloutState::RollbackFailed => true,
        RolloutState::InProgress
        | RolloutState::Waiting
        | RolloutState::Paused
        | RolloutState::Succeeded
        | RolloutState::PartiallySucceeded
        | RolloutState::Aborted
        | RolloutState::Superseded => false,
    }
}

/// A bar of twenty cells.
fn bar(good: u64, bad: u64, busy: u64, all: u64, paint: Paint) -> String {
    const CELLS: u64 = 20;
    let cells = |count: u64| (count * CELLS).checked_div(all).unwrap_or(0);
    let wide = |count: u64| usize::try_from(count).unwrap_or(0);
    let good_cells = cells(good);
    let bad_cells = cells(good + bad).saturating_sub(good_cells);
    let busy_cells = cells(good + bad + busy).saturating_sub(good_cells + bad_cells);
    let left = CELLS.saturating_sub(good_cells + bad_cells + busy_cells);
    [
        paint.text(Tone::Good, &"█".repeat(wide(good_cells))),
        paint.text(Tone::Bad, &"█".repeat(wide(bad_cells))),
        paint.text(Tone::Busy, &"▒".repeat(wide(busy_cells))),
        paint.text(Tone::Dim, &"░".repeat(wide(left))),
    ]
    .concat()
}

type Branches<'a> = BTreeMap<usize, Vec<&'a TargetView>>;

/// Targets by the batch in which they were assigned the version, and those that this rollout has not reached.
fn sort<'a>(rollout: &Rollout, targets: &'a [TargetView]) -> (Branches<'a>, Vec<&'a TargetView>) {
    let (mut batches, mut rest) = (Branches::new(), Vec::new());
    for target in targets {
        let assigned = target.assigned_at_ms.filter(|_| target.rollout == Some(rollout.number));
        let batch = assigned.and_then(|assigned| {
            let opened = rollout.batches.iter().rposition(|batch| batch.opened_ms <= assigned);
            opened.or((!rollout.batches.is_empty()).then_some(0))
        });
        match batch {
            Some(batch) => batches.entry(batch).or_default().push(target),
            None => rest.push(target),
        }
    }
    (batches, rest)
}

fn branch(
    lines: &mut Vec<String>,
    title: &str,
    leaves: &[&TargetView],
    (now_ms, last): (u64, bool),
    paint: Paint,
) {
    let (fork, stem) = if last { ("└─", "   ") } else { ("├─", "│  ") };
    lines.push(format!("{fork} {title}  {}", summary(leaves, paint)));
    let mut leaves = leaves.to_vec();
    // Failed targets first, then those in flight, then the rest, by name within each.
    leaves.sort_by_key(|leaf| (rank(leaf.phase.as_str()), leaf.name.clone()));
    let hidden = leaves.len().saturating_sub(LEAVES);
    let shown = leaves.len() - hidden;
    for (index, leaf) in leaves.iter().take(shown).enumerate() {
        let end = if index + 1 == shown && hidden == 0 { "└" } else { "├" };
        lines.push(format!("{stem}{end} {}", leaf_line(leaf, now_ms, paint)));
    }
    if hidden > 0 {
        lines.push(format!("{stem}└ {}", paint.text(Tone::Dim, &format!("and {hidden} more"))));
    }
}

/// A target as this rollout counts it: the outcome of an earlier rollout is not a success of this one.
fn unassigned(target: &TargetView) -> TargetView {
    let phase = match (target.presence, target.phase) {
        (PresenceState::Unreachable, _) => TargetPhase::Unreachable,
        (
            _,
            TargetPhase::Succeeded
            | TargetPhase::RolledBack
            | TargetPhase::Failed
            | TargetPhase::Unreachable
            | TargetPhase::Idle,
        ) => TargetPhase::Idle,
        (_, phase) => phase,
    };
    TargetView { phase, since_ms: None, ..target.clone() }
}

fn rank(word: &str) -> u8 {
    match word {
        "failed" => 0,
        "unreachable" => 1,
        "blocked" => 2,
        "succeeded" | "rolled_back" => 4,
        "idle" => 5,
        _ => 3,
    }
}

fn summary(leaves: &[&TargetView], paint: Paint) -> String {
    let mut counts: BTreeMap<(u8, &str), usize> = BTreeMap::new();
    for leaf in leaves {
        *counts.entry((rank(leaf.phase.as_str()), leaf.phase.as_str())).or_default() += 1;
    }
    let parts = counts
        .iter()
        .map(|((_, word), count)| paint.text(phase(word).1, &format!("{count} {}", word.replace('_', " "))));
    parts.collect::<Vec<_>>().join(", ")
}

fn leaf_line(leaf: &TargetView, now_ms: u64, paint: Paint) -> String {
    let (glyph, tone) = phase(leaf.phase.as_str());
    let age = leaf.since_ms.map_or(String::new(), |since| ago(now_ms, since));
    let running = leaf.running.as_deref().unwrap_or("-");
    let contact = match leaf.presence.as_str() {
        "up" => String::new(),
        other => format!(" ({other})"),
    };
    let assigned = leaf.reason.strip_prefix(&leaf.name).and_then(|rest| rest.strip_prefix(": "));
    let quiet = matches!(leaf.phase.as_str(), "succeeded" | "rolled_back" | "idle") && contact.is_empty();
    let why = if quiet { "" } else { assigned.unwrap_or(&leaf.reason) };
    let line = format!(
        "{} {:<12} {:<11} {:>7}  {:<10} {}{}",
        paint.text(tone, glyph),
        leaf.name,
        leaf.phase.as_str().replace('_', " "),
        age,
        running,
        paint.text(Tone::Dim, why),
        contact
    );
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
