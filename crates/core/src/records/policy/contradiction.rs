//! Validation of a policy: fields out of range, and fields that contradict each other. Owns the error texts.

use alloc::format;
use alloc::string::{String, ToString};

use super::ordering::{PolicyStage, TargetOrder};
use crate::records::policy::fields::{MAX_LISTED, MAX_RETRIES, MAX_SPAN, PolicyFields};
use crate::words::percent::{Amount, Percent};
use crate::words::time::{Span, Timestamp};
use crate::words::window::Window;

/// The field to change, and what is wrong with it; `None` if the policy is valid.
type Contradiction = Option<(&'static str, String)>;

/// Start of the year over which windows are compared: any year with both clock changes will do. 1 January
/// 2026.
const COMPARED_FROM: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// The first contradiction in these values.
pub(super) fn of(values: &PolicyFields) -> Contradiction {
    in_thresholds(values)
        .or_else(|| in_times(values))
        .or_else(|| in_lists(values))
        .or_else(|| in_stages(&values.stages))
        .or_else(|| in_windows(values))
        .or_else(|| in_stores(values))
        .or_else(|| values.monitor.as_ref().and_then(|monitor| Some(("monitor", monitor.invalid_reason()?))))
        .or_else(|| Some(("hooks", values.hooks.invalid_reason()?)))
}

fn in_thresholds(values: &PolicyFields) -> Contradiction {
    let shares = match values.failures {
        Some(Amount::Share(share)) => share.get().saturating_add(values.success.get()),
        Some(Amount::Count(_)) | None => 0,
    };
    if values.success == Percent::NONE {
        Some(("success", "0% would judge every version good; use 1% or more".to_string()))
    } else if shares > 100 {
        let left = 100_u8.saturating_sub(values.success.get());
        Some(("failures", format!("success {} tolerates at most {left}% failures", values.success)))
    } else if values.success == Percent::ALL && values.failures.is_some_and(|failures| !failures.is_zero()) {
        let reason = "success 100% tolerates no failures; lower success, or omit failures";
        Some(("failures", reason.to_string()))
    } else if values.retries > MAX_RETRIES {
        Some(("retries", format!("{} is over {MAX_RETRIES}", values.retries)))
    } else if values.rollback.is_zero() {
        Some(("rollback", "0 would stop rollbacks; use 1 or more".to_string()))
    } else if values.max_unavailable.is_some_and(Amount::is_zero) {
        Some((
            "max_unavailable",
            "0 would stop every rollout; use 1 or more, or batch 0 to start no targets".to_string(),
        ))
    } else {
        None
    }
}

fn in_times(values: &PolicyFields) -> Contradiction {
    let too_long = [
        ("soak", values.soak),
        ("deadline", values.deadline),
        ("settle", values.settle),
        ("progress", values.progress.unwrap_or(Span::ZERO)),
    ];
    if let Some((field, span)) = too_long.into_iter().find(|(_, span)| *span > MAX_SPAN) {
        return Some((field, format!("{span} is over a year")));
    }
    let (soak, deadline) = (values.soak, values.deadline);
    match values.progress {
        _ if deadline <= soak => {
            Some(("deadline", format!("{deadline} is not longer than the soak of {soak}")))
        }
        Some(progress) if progress <= soak => Some((
            "progress",
            format!("{progress} is not longer than the soak of {soak}, so no target could succeed in time"),
        )),
        Some(_) | None => None,
    }
}

fn in_lists(values: &PolicyFields) -> Contradiction {
    let lists =
        [("stages", values.stages.len()), ("windows", values.windows.len()), ("needs", values.needs.len())];
    let long = lists.into_iter().find(|(_, length)| *length > MAX_LISTED);
    long.map(|(field, length)| (field, format!("{length} are over {MAX_LISTED}")))
}

fn in_stages(stages: &[PolicyStage]) -> Contradiction {
    let wrong = |reason: String| Some(("stages", reason));
    let (mut count, mut share) = (0, 0);
    for stage in stages {
        let grows = match stage.upto {
            Amount::Count(upto) => core::mem::replace(&mut count, upto) < upto,
            Amount::Share(upto) => core::mem::replace(&mut share, upto.get()) < upto.get(),
        };
        if !grows {
            return wrong(format!("{} is not more than the stage before it", stage.upto));
        }
    }
    match stages.last() {
        Some(last) if last.upto != Amount::Share(Percent::ALL) => {
            wrong(format!("the last stage is {}, so the rollout would end there; end with 100%", last.upto))
        }
        Some(_) | None => None,
    }
}

/// Followers and a quorum are those of data stores.
fn in_stores(values: &PolicyFields) -> Contradiction {
    let field = match (&values.store, &values.order, values.quorum) {
        (None, TargetOrder::FollowersFirst, _) => "order",
        (None, _, true) => "quorum",
        (None | Some(_), _, _) => return None,
    };
    let reason = "whose data store? name its probe in store, such as db of [probe.db] in agent.toml";
    Some((field, reason.to_string()))
}

/// Windows for some targets need a common open time with those for every target, as both must be open at
/// once.
fn in_windows(values: &PolicyFields) -> Contradiction {
    let (own, general): (alloc::vec::Vec<_>, alloc::vec::Vec<_>) =
        values.windows.iter().partition(|window| window.is_for_some());
    if general.is_empty() {
        return None;
    }
    let never = |own: &&&Window| !general.iter().any(|general| own.ever_meets(general, COMPARED_FROM));
    let shut = own.iter().find(never)?;
    Some(("windows", format!("\"{shut}\" never overlaps with a window for every target")))
}
