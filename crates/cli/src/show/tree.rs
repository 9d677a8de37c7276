//! A rollout as a tree: batches as branches, targets as leaves with glyph, state, age and reason, thresholds on top.

mod wrap;

use std::collections::BTreeMap;

use bellwether_api::v1::entity::RequestKind;
use bellwether_api::v1::node::PresenceState;
use bellwether_api::v1::rollout::status::RolloutWait;
use bellwether_api::v1::rollout::{Rollout, RolloutState, RolloutStatus, RolloutView};
use bellwether_api::v1::target::{TargetPhase, TargetView};

use super::paint::{Paint, Tone, phase};
use super::time::{ago, clock, date};

/// Most leaves shown under one branch; failed targets come first.
const LEAVES: usize = 12;

/// Rank of a target that this rollout is done with.
const FINISHED: u8 = 4;

/// The tree, line by line.
pub(crate) fn lines(view: &RolloutView, targets: &[TargetView], paint: Paint) -> Vec<String> {
    let mut lines = vec![head(view, paint)];
    lines.extend(thresholds(view, targets, paint));
    lines.extend(wrap::wrapped(&view.reason).into_iter().map(|line| format!("│ {line}")));
    let Some(rollout) = &view.rollout else { return lines };
    lines.extend(stage(view, rollout).map(|text| format!("│ {text}")));
    let rest: Vec<TargetView>;
    let sorted = sort(rollout, targets);
    let mut branches = batches(rollout, &sorted.batches, paint);
    if !sorted.elsewhere.is_empty() {
        let title = match (rollout.from.as_deref().unwrap_or("nothing"), rollout.kind) {
            // An undo after the end of a rollout is a rollout of last known good itself.
            (_, RequestKind::Undo) => format!("back to {}", rollout.version),
            (from, _) if is_rollback(rollout.status.state) => format!("back to {from}"),
            (from, _) => format!("on {from} first"),
        };
        branches.push(Branch { title: paint.text(Tone::Dim, &title), ..Branch::of(sorted.elsewhere) });
    }
    if !sorted.rest.is_empty() {
        let under_way = rollout.ended_ms.is_none() && !is_rollback(rollout.status.state);
        let (title, idle) =
            if under_way { ("not started yet", "waiting") } else { ("not assigned by this rollout", "idle") };
        rest = sorted.rest.into_iter().map(unassigned).collect();
        let title = paint.text(Tone::Dim, title);
        branches.push(Branch { title, idle, ..Branch::of(rest.iter().collect()) });
    }
    let count = branches.len();
    for (index, each) in branches.iter().enumerate() {
        branch(&mut lines, each, view.now_ms, index + 1 == count, paint);
    }
    lines
}

/// The batches: those with failed, unreachable or in-flight targets first, each with its targets; a line for each finished one.
fn batches<'a>(rollout: &Rollout, sorted: &Batches<'a>, paint: Paint) -> Vec<Branch<'a>> {
    let mut open = Vec::new();
    let mut finished = Vec::new();
    let mut assigned = None;
    for (index, batch) in rollout.batches.iter().enumerate() {
        let before = assigned.or((batch.number == 1).then_some(0));
        assigned = Some(batch.assigned_total);
        let title = format!("batch {}  {}", batch.number, paint.text(Tone::Dim, &clock(batch.opened_ms)));
        let leaves = sorted.get(&index).cloned().unwrap_or_default();
        let folded = leaves.iter().all(|leaf| rank(leaf.phase.as_str()) == FINISHED);
        // Its targets are assigned another version by now.
        let title = match before.filter(|_| leaves.is_empty()) {
            Some(before) => format!("{title}  {} assigned", batch.assigned_total.saturating_sub(before)),
            None => title,
        };
        let branch = Branch { title, folded, ..Branch::of(leaves) };
        if folded { finished.push(branch) } else { open.push(branch) }
    }
    open.append(&mut finished);
    open
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
        RolloutWait::TargetsClosed { until_ms: Some(until), .. } => {
            Some(format!("the first opens {}", date(*until)))
        }
        RolloutWait::Frozen { until_ms: None, .. }
        | RolloutWait::TargetsClosed { until_ms: None, .. }
        | RolloutWait::NoTargets
        | RolloutWait::BatchIsZero
        | RolloutWait::OnlyHeld { .. }
        | RolloutWait::OnlySuspect
        | RolloutWait::OnlyUnreachable
        | RolloutWait::NoDomain { .. }
        | RolloutWait::Approval { .. }
        | RolloutWait::Need { .. }
        | RolloutWait::Stores { .. }
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
        RolloutState::Failed => ("failed", Tone::Bad),
        RolloutState::RolledBack => ("rolled back", Tone::Bad),
        RolloutState::RollbackFailed => ("rollback failed", Tone::Bad),
        RolloutState::Aborted => ("aborted", Tone::Bad),
        RolloutState::Superseded => ("superseded", Tone::Dim),
    }
}

/// Progress against its thresholds, in at most two lines that fit 80 columns. Of a rollback: how many targets still run the
/// version, without the counts that are zero.
fn thresholds(view: &RolloutView, targets: &[TargetView], paint: Paint) -> Vec<String> {
    let counts = &view.counts;
    let progress = match &view.rollout {
        Some(rollout) if is_rollback(rollout.status.state) => {
            let version = &rollout.version;
            let left = targets.iter().filter(|target| target.running.as_ref() == Some(version)).count();
            let bar = bar(0, u64::try_from(left).unwrap_or(u64::MAX), 0, counts.targets, paint);
            let all = counts.targets;
            let failed = match counts.failed {
                0 => String::new(),
                failed => format!(" · {failed} failed, {} tolerated", view.tolerated),
            };
            format!("│ {bar} {left}/{all} run {version}{failed}")
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
    let mut parts = Vec::new();
    let back = view.rollout.as_ref().is_some_and(|rollout| is_rollback(rollout.status.state));
    if counts.in_flight > 0 || !back {
        parts.push(format!("{} in flight, at most {} at once", counts.in_flight, view.batch));
    }
    for (count, word) in [
        (counts.failing_before, "failed as before"),
        (counts.unreachable, "unreachable"),
        (counts.held, "paused"),
        (counts.rolled_back, "rolled back"),
        (counts.rollback_failed, "failed in rollback"),
        (counts.rollback_unreachable, "unreachable in rollback"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    [progress].into_iter().chain((!parts.is_empty()).then(|| format!("│ {}", parts.join(" · ")))).collect()
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
        | RolloutState::Failed
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

/// Targets by the index of the batch in which they were assigned the version.
type Batches<'a> = BTreeMap<usize, Vec<&'a TargetView>>;

/// The targets of a rollout.
#[derive(Debug, Default)]
struct Sorted<'a> {
    batches: Batches<'a>,
    /// Assigned another version by this rollout: rolled back, or joined while it runs.
    elsewhere: Vec<&'a TargetView>,
    /// Not reached by this rollout.
    rest: Vec<&'a TargetView>,
}

/// A titled group of targets.
#[derive(Debug, Default)]
struct Branch<'a> {
    title: String,
    leaves: Vec<&'a TargetView>,
    /// What an idle target is called.
    idle: &'static str,
    /// Whether only the title and the counts are shown.
    folded: bool,
}

impl<'a> Branch<'a> {
    fn of(leaves: Vec<&'a TargetView>) -> Self {
        Self { leaves, idle: "idle", ..Self::default() }
    }
}

/// Sorts targets by the batch in which they were assigned the version; one that was assigned another version since is in none.
fn sort<'a>(rollout: &Rollout, targets: &'a [TargetView]) -> Sorted<'a> {
    let mut sorted = Sorted::default();
    for target in targets {
        let Some(assigned) = target.assigned_at_ms.filter(|_| target.rollout == Some(rollout.number)) else {
            sorted.rest.push(target);
            continue;
        };
        if target.assigned.as_ref() != Some(&rollout.version) {
            sorted.elsewhere.push(target);
            continue;
        }
        let opened = rollout.batches.iter().rposition(|batch| batch.opened_ms <= assigned);
        match opened.or((!rollout.batches.is_empty()).then_some(0)) {
            Some(batch) => sorted.batches.entry(batch).or_default().push(target),
            None => sorted.rest.push(target),
        }
    }
    sorted
}

fn branch(lines: &mut Vec<String>, branch: &Branch<'_>, now_ms: u64, last: bool, paint: Paint) {
    let (fork, stem) = if last { ("└─", "   ") } else { ("├─", "│  ") };
    let title = format!("{fork} {}  {}", branch.title, summary(branch, paint));
    lines.push(title.trim_end().to_owned());
    if branch.folded {
        return;
    }
    let mut leaves = branch.leaves.clone();
    // Failed targets first, then those in flight, then the rest, by name within each.
    leaves.sort_by_key(|leaf| (rank(word(leaf, branch.idle)), leaf.name.clone()));
    let hidden = leaves.len().saturating_sub(LEAVES);
    let shown = leaves.len() - hidden;
    for (index, leaf) in leaves.iter().take(shown).enumerate() {
        let end = if index + 1 == shown && hidden == 0 { "└" } else { "├" };
        lines.push(format!("{stem}{end} {}", leaf_line(leaf, branch.idle, now_ms, paint)));
    }
    if hidden > 0 {
        lines.push(format!("{stem}└ {}", paint.text(Tone::Dim, &format!("and {hidden} more"))));
    }
}

/// What a target is called: its phase, or `paused` for one that a pause or a cordon keeps from its update.
fn word(leaf: &TargetView, idle: &'static str) -> &'static str {
    if leaf.phase != TargetPhase::Idle {
        return leaf.phase.as_str();
    }
    let is_paused = ["paused", "cordoned", "drained"].iter().any(|word| leaf.reason.contains(word));
    if is_paused { "paused" } else { idle }
}

/// A target as this rollout counts it: the outcome of an earlier rollout is not a success of this one.
fn unassigned(target: &TargetView) -> TargetView {
    let phase = match (target.presence, target.phase) {
        (PresenceState::Unreachable, _) => TargetPhase::Unreachable,
        (
            _,
            TargetPhase::Succeeded
            | TargetPhase::RolledBack
            | TargetPhase::Drifted
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
        "failed" | "drifted" => 0,
        "unreachable" => 1,
        "blocked" => 2,
        "succeeded" | "rolled_back" => FINISHED,
        "paused" => 5,
        "idle" | "waiting" => 6,
        _ => 3,
    }
}

fn summary(branch: &Branch<'_>, paint: Paint) -> String {
    let mut counts: BTreeMap<(u8, &str), usize> = BTreeMap::new();
    for leaf in &branch.leaves {
        let word = word(leaf, branch.idle);
        *counts.entry((rank(word), word)).or_default() += 1;
    }
    let parts = counts
        .iter()
        .map(|((_, word), count)| paint.text(phase(word).1, &format!("{count} {}", word.replace('_', " "))));
    parts.collect::<Vec<_>>().join(", ")
}

fn leaf_line(leaf: &TargetView, idle: &'static str, now_ms: u64, paint: Paint) -> String {
    let word = word(leaf, idle);
    let (glyph, tone) = phase(word);
    let age = leaf.since_ms.map_or(String::new(), |since| ago(now_ms, since));
    let running = leaf.running.as_deref().unwrap_or("-");
    let reason = leaf.reason.strip_prefix(&leaf.name).and_then(|rest| rest.strip_prefix(": "));
    let reason = reason.unwrap_or(&leaf.reason);
    // The reason names the state of the connection, mostly.
    let contact = match leaf.presence.as_str() {
        "up" => String::new(),
        other if reason.contains(other) || word == other => String::new(),
        other => format!(" ({other})"),
    };
    // What keeps a target from its update is told, as by `why`.
    let quiet = matches!(word, "succeeded" | "rolled_back" | "idle" | "waiting")
        && leaf.presence == PresenceState::Up
        && !reason.starts_with("skipped: ");
    let why = if quiet { "" } else { reason };
    let line = format!(
        "{} {:<12} {:<11} {:>7}  {:<10} {}{}",
        paint.text(tone, glyph),
        leaf.name,
        word.replace('_', " "),
        age,
        running,
        paint.text(Tone::Dim, why),
        contact
    );
    line.trim_end().to_owned()
}

#[cfg(test)]
pub(crate) mod tests;
