//! `rollout`: moving an entity's targets to a version.

pub(super) mod follow;
mod plan;

use std::time::Duration;

use bellwether_api::v1::rollout::status::RolloutWait;
use bellwether_api::v1::rollout::{
    NewRollout, RolloutOperation as ActShape, RolloutState, RolloutStatus, RolloutView,
};

use crate::args::{OperationFlags, RolloutVerb, StartRollout, WaitFlags};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::age::{ago, date};
use crate::show::{print, table, tree};

pub(super) async fn run(context: &Context, verb: RolloutVerb) -> CommandResult {
    match verb {
        RolloutVerb::Start(start) => return begin(context, *start).await,
        RolloutVerb::Plan(what) => return plan::run(context, *what).await,
        RolloutVerb::Status { entity, wait, timeout } => {
            return status(context, &entity, (wait, timeout)).await;
        }
        RolloutVerb::Get { entity, wait } => return get(context, &entity, &wait).await,
        RolloutVerb::List => return super::overview::status(context).await,
        RolloutVerb::History { entity } => history(context, &entity).await?,
        RolloutVerb::Pause(what) => act(context, "pause", what, (None, None)).await?,
        RolloutVerb::Resume(what) => act(context, "resume", what, (None, None)).await?,
        RolloutVerb::Approve { act: what, stage } => act(context, "approve", what, (None, stage)).await?,
        RolloutVerb::Abort(what) => act(context, "abort", what, (None, None)).await?,
        RolloutVerb::Undo(what) => act(context, "undo", what, (None, None)).await?,
        RolloutVerb::Retry { act: what, version } => act(context, "retry", what, (version, None)).await?,
    }
    Ok(Exit::Yes)
}

async fn begin(context: &Context, start: StartRollout) -> CommandResult {
    let StartRollout { version, why, policy, plan, .. } = start.clone();
    let new = NewRollout { version, why, policy: policy.into(), plan };
    let started = context.client.start_rollout(&context.namespace, &start.entity, &new).await?;
    if start.wait.watch {
        return follow::follow(context, &start.entity, start.wait.timeout, started.request).await;
    }
    let (version, entity) = (started.version, start.entity);
    crate::show::tell(&format!("started {version}; watch it with: bellwether rollout get {entity} -w"));
    Ok(Exit::Yes)
}

async fn act(
    context: &Context,
    verb: &str,
    what: OperationFlags,
    (version, stage): (Option<String>, Option<u32>),
) -> Result<(), Failure> {
    let act = ActShape { version, stage, why: what.why };
    Ok(context.client.act_on_rollout(&context.namespace, &what.entity, verb, &act).await?)
}

async fn get(context: &Context, entity: &str, wait: &WaitFlags) -> CommandResult {
    if wait.watch {
        return follow::follow(context, entity, wait.timeout, 0).await;
    }
    let view = context.client.current_rollout(&context.namespace, entity, None, Duration::ZERO).await?;
    let targets = follow::targets(context, entity).await?;
    context.show.data(
        &view,
        || vec![view.entity.name.clone()],
        |_| tree::lines(&view, &targets, context.show.paint).join("\n"),
    )?;
    Ok(Exit::Yes)
}

async fn status(
    context: &Context,
    entity: &str,
    (wait, timeout): (bool, Option<bellwether_core::words::time::Span>),
) -> CommandResult {
    let view = if wait {
        match follow::until_rest(context, entity, (timeout, 0), async |_: &RolloutView| Ok(())).await? {
            Some(view) => view,
            None => return Err(Failure::new(Exit::Timeout, format!("see {entity} rest in time"))),
        }
    } else {
        context.client.current_rollout(&context.namespace, entity, None, Duration::ZERO).await?
    };
    context.show.data(&view, || vec![view.entity.name.clone()], |_| view.message.clone())?;
    Ok(exit(&view))
}

/// What a rollout's state means for a script.
pub(super) const fn exit(view: &RolloutView) -> Exit {
    let Some(rollout) = &view.rollout else { return Exit::No };
    match rollout.status.state {
        RolloutState::Waiting if needs_approval(&rollout.status) => Exit::NeedsPerson,
        RolloutState::InProgress | RolloutState::Waiting | RolloutState::Succeeded => Exit::Yes,
        RolloutState::Paused => Exit::NeedsPerson,
        RolloutState::PartiallySucceeded => Exit::Partial,
        RolloutState::RollingBack
        | RolloutState::RolledBack
        | RolloutState::RollbackFailed
        | RolloutState::Aborted
        | RolloutState::Superseded => Exit::No,
    }
}

/// Whether a stage waits for a person's approval.
const fn needs_approval(status: &RolloutStatus) -> bool {
    matches!(status.waiting, Some(RolloutWait::Approval { .. }))
}

async fn history(context: &Context, entity: &str) -> Result<(), Failure> {
    let page = context.client.rollouts(&context.namespace, entity).await?;
    let names = || page.items.iter().map(|rollout| rollout.number.to_string()).collect();
    context.show.data(&page.items, names, |_| {
        let rows = page.items.iter().map(|rollout| {
            let took = rollout.ended_ms.map_or_else(|| "-".to_owned(), |end| ago(end, rollout.started_ms));
            vec![
                rollout.number.to_string(),
                rollout.from.clone().unwrap_or_else(|| "-".to_owned()),
                rollout.version.clone(),
                tree::state(&rollout.status).0.to_owned(),
                format!("{}/{}", rollout.counts.succeeded, rollout.counts.targets),
                rollout.kind.to_string(),
                rollout.by.clone(),
                date(rollout.started_ms),
                took,
                rollout.why.clone(),
            ]
        });
        let header = ["no", "from", "to", "state", "succeeded", "how", "by", "started", "took", "why"];
        table(&header, rows)
    })?;
    if page.items.is_empty() && !context.is_data() {
        print("nothing was ever rolled out");
    }
    Ok(())
}
