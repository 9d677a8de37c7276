//! `rollout`: moves the targets of an entity to a version.

pub(super) mod follow;
mod outcome;
mod plan;

use std::time::Duration;

use bellwether_api::v1::entity::RequestKind;
use bellwether_api::v1::rollout::{
    NewRollout, Rollout, RolloutOperation, RolloutView, TargetCounts, VersionJudgement,
};
use bellwether_core::words::time::Span;

use serde::Serialize;

use self::follow::WaitLimit;
use super::past_rollout;
use super::policy::PolicyChange;
use crate::args::{OperationFlags, RolloutVerb, StartRollout, WaitFlags};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::time::{ago, date};
use crate::show::{screen, table, tree};

pub(super) async fn run(context: &Context, verb: RolloutVerb) -> CommandResult {
    match verb {
        RolloutVerb::Start(start) => return begin(context, *start).await,
        RolloutVerb::Plan(what) => return plan::run(context, *what).await,
        RolloutVerb::Status { of, wait, timeout } => {
            return status(context, &of.entity, wait, timeout).await;
        }
        RolloutVerb::Get { of, number: Some(number), .. } => {
            return past_rollout::show(context, &of.entity, number).await;
        }
        RolloutVerb::Get { of, number: None, wait } => return get(context, &of.entity, &wait).await,
        RolloutVerb::List => list(context).await?,
        RolloutVerb::History { of } => history(context, &of.entity).await?,
        RolloutVerb::Pause(flags) => operate(context, "pause", flags, Default::default()).await?,
        RolloutVerb::Resume(flags) => operate(context, "resume", flags, Default::default()).await?,
        RolloutVerb::Approve { act, stage } => {
            operate(context, "approve", act, RolloutOperation { stage, ..Default::default() }).await?;
        }
        RolloutVerb::Abort(flags) => operate(context, "abort", flags, Default::default()).await?,
        RolloutVerb::Undo(flags) => operate(context, "undo", flags, Default::default()).await?,
        RolloutVerb::Retry { act, version, wait } => return retry(context, act, version, &wait).await,
    }
    Ok(Exit::Yes)
}

async fn begin(context: &Context, start: StartRollout) -> CommandResult {
    let StartRollout { of, version, reason, plan, save, policy, wait } = start;
    let change = PolicyChange::read(policy)?;
    let scope = match (change.is_empty(), save) {
        (true, false) => "",
        (true, true) => return Err(Failure::usage("save the policy flags: none is given")),
        (false, true) => "; its policy flags are kept in the entity's policy",
        (false, false) => "; its policy flags apply to this rollout alone",
    };
    let new = NewRollout { version, reason, policy: change.set, unset: change.unset, save, plan };
    let started = context.client.start_rollout(&context.namespace, &of.entity, &new).await?;
    let entity = of.entity;
    context.show.changed(&format!("entity {entity}: {}{scope}", started.summary()));
    if wait.watch {
        return follow::follow(context, &entity, WaitLimit::from_now(wait.timeout), started.request).await;
    }
    context.show.note(&format!("watch it with: bellwether rollout get {entity} -w"));
    Ok(Exit::Yes)
}

async fn retry(
    context: &Context,
    act: OperationFlags,
    version: Option<String>,
    wait: &WaitFlags,
) -> CommandResult {
    let entity = act.of.entity.clone();
    operate(context, "retry", act, RolloutOperation { version, ..Default::default() }).await?;
    if !wait.watch {
        return Ok(Exit::Yes);
    }
    let limit = WaitLimit::from_now(wait.timeout);
    // The answer to a request includes what was changed, so the last request is this one or a later one.
    let view = context.client.current_rollout(&context.namespace, &entity, None, Duration::ZERO).await?;
    let request = view.entity.requested.map_or(0, |requested| requested.request);
    follow::follow(context, &entity, limit, request).await
}

/// Performs an operation on the current rollout, and reports it.
async fn operate(
    context: &Context,
    verb: &str,
    flags: OperationFlags,
    operation: RolloutOperation,
) -> Result<(), Failure> {
    let operation = RolloutOperation { reason: flags.reason, ..operation };
    let entity = flags.of.entity;
    context.client.act_on_rollout(&context.namespace, &entity, verb, &operation).await?;
    let said = match verb == "abort" && context.client.run(&context.namespace, &entity).await.is_ok() {
        true => format!(
            "run {entity}: aborted; the jobs that run are ended, and its nodes forget it; a node on which it failed begins no other \
             run until: bellwether node runnable NODE"
        ),
        false => format!("entity {entity}: {}", accepted(verb, operation.stage)),
    };
    context.show.changed(&said);
    Ok(())
}

/// What an accepted operation does, for people.
fn accepted(verb: &str, stage: Option<u32>) -> String {
    match (verb, stage) {
        ("pause", _) => "rollout paused; targets in flight finish".to_owned(),
        ("resume", _) => "rollout resumed".to_owned(),
        ("approve", Some(stage)) => format!("stage {stage} approved"),
        ("approve", None) => "stage approved".to_owned(),
        ("abort", _) => "rollout aborted; targets keep what they run".to_owned(),
        ("undo", _) => "rollback to the last known good version started".to_owned(),
        ("retry", _) => "retry of the known bad version started".to_owned(),
        (other, _) => format!("{other} accepted"),
    }
}

/// The current rollout of an entity, as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    entity: String,
    rollout: Option<Rollout>,
    why: String,
}

/// Lists the current rollout of every entity.
async fn list(context: &Context) -> Result<(), Failure> {
    let (client, namespace) = (&context.client, &context.namespace);
    let mut listed = Vec::new();
    for entity in client.entities(namespace).await?.items {
        let view = client.current_rollout(namespace, &entity.name, None, Duration::ZERO).await?;
        listed.push(Listed { entity: entity.name, rollout: view.rollout, why: view.reason });
    }
    let names = || listed.iter().map(|each| each.entity.clone()).collect();
    context.show.data(&listed, names, |_| {
        let rows = listed.iter().map(|each| {
            let Some(rollout) = &each.rollout else {
                let dash = || "-".to_owned();
                return vec![
                    each.entity.clone(),
                    dash(),
                    dash(),
                    "none".to_owned(),
                    dash(),
                    dash(),
                    each.why.clone(),
                ];
            };
            vec![
                each.entity.clone(),
                rollout.number.to_string(),
                rollout.version.clone(),
                tree::state(&rollout.status).0.to_owned(),
                succeeded(rollout.counts, rollout.kind),
                date(rollout.started_ms),
                each.why.clone(),
            ]
        });
        table(&["entity", "no", "version", "state", "succeeded", "started", "why"], rows)
    })
}

async fn get(context: &Context, entity: &str, wait: &WaitFlags) -> CommandResult {
    if wait.watch {
        return follow::follow(context, entity, WaitLimit::from_now(wait.timeout), 0).await;
    }
    let view = context.client.current_rollout(&context.namespace, entity, None, Duration::ZERO).await?;
    let targets = follow::targets(context, entity).await?;
    context.show.data(
        &view,
        || vec![view.entity.name.clone()],
        |_| screen::folded(&tree::lines(&view, &targets, context.show.paint)),
    )?;
    Ok(Exit::Yes)
}

async fn status(context: &Context, entity: &str, wait: bool, timeout: Option<Span>) -> CommandResult {
    let view = if wait {
        let limit = WaitLimit::from_now(timeout);
        follow::until_rest(context, entity, limit, 0, async |_: &RolloutView| Ok(())).await?
    } else {
        context.client.current_rollout(&context.namespace, entity, None, Duration::ZERO).await?
    };
    context.show.data(&view, || vec![view.entity.name.clone()], |_| view.reason.clone())?;
    if wait {
        follow::note_advice(context, &view);
    }
    Ok(outcome::exit(&view))
}

/// The reason that was given for a rollout, what was wrong with its version, and who or what ended it.
fn reason(rollout: &Rollout) -> String {
    let found = match &rollout.judgement {
        VersionJudgement::Bad { reason, .. } => Some(reason.clone()),
        VersionJudgement::Open | VersionJudgement::Good { .. } => None,
    };
    let done = |what: &str, by: &str, reason: &str| match reason {
        "" => format!("{what} by {by}"),
        reason => format!("{what} by {by}: {reason}"),
    };
    let status = &rollout.status;
    let parts = [
        Some(rollout.reason.clone()),
        found,
        rollout.undone.as_ref().map(|undone| done("undone", &undone.by, &undone.reason)),
        status.aborted.as_ref().map(|aborted| done("aborted", &aborted.by, &aborted.reason)),
        status.superseded_by.map(|number| format!("superseded by {number}")),
    ];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// How many targets succeeded on the version, and how many of the others failed as they had before.
fn outcome(counts: TargetCounts) -> String {
    let TargetCounts { targets, succeeded, failing_before, .. } = counts;
    match failing_before {
        0 => format!("{succeeded}/{targets}"),
        before => format!("{succeeded}/{targets}, {before} failed as before"),
    }
}

/// How many targets succeeded on the version, and how many were rolled back.
fn succeeded(counts: TargetCounts, kind: RequestKind) -> String {
    let TargetCounts { targets, succeeded, rolled_back, .. } = counts;
    match (rolled_back, kind) {
        (_, RequestKind::Undo) if succeeded == 0 => format!("{rolled_back} rolled back"),
        (0, _) => format!("{succeeded}/{targets}"),
        (_, _) => format!("{succeeded}/{targets}, {rolled_back} rolled back"),
    }
}

async fn history(context: &Context, entity: &str) -> Result<(), Failure> {
    let page = context.client.rollouts(&context.namespace, entity).await?;
    let names = || page.items.iter().map(|rollout| rollout.number.to_string()).collect();
    context.show.data(&page.items, names, |_| {
        if page.items.is_empty() {
            return format!("entity {entity} has no rollouts");
        }
        let rows = page.items.iter().map(|rollout| {
            let took = rollout.ended_ms.map_or_else(|| "-".to_owned(), |end| ago(end, rollout.started_ms));
            vec![
                rollout.number.to_string(),
                rollout.from.clone().unwrap_or_else(|| "-".to_owned()),
                rollout.version.clone(),
                tree::state(&rollout.status).0.to_owned(),
                outcome(rollout.counts),
                rollout.kind.to_string(),
                rollout.by.clone(),
                date(rollout.started_ms),
                took,
                reason(rollout),
            ]
        });
        let header = ["no", "from", "to", "state", "succeeded", "how", "by", "started", "took", "reason"];
        table(&header, rows)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_counts_what_was_rolled_back() {
        let counts = |succeeded, rolled_back| TargetCounts {
            targets: 8,
            succeeded,
            rolled_back,
            ..TargetCounts::default()
        };
        assert_eq!(succeeded(counts(7, 0), RequestKind::Start), "7/8");
        assert_eq!(succeeded(counts(1, 2), RequestKind::Start), "1/8, 2 rolled back");
        assert_eq!(succeeded(counts(0, 6), RequestKind::Undo), "6 rolled back", "an undo after an abort");
    }
}
