//! Follows a rollout until it needs nothing more: a redrawn tree on a terminal, a line per change otherwise.

mod changes;

use std::time::Duration;

use bellwether_api::v1::progress::RolloutActivity;
use bellwether_api::v1::rollout::RolloutView;
use bellwether_api::v1::target::TargetView;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;

use self::changes::Changes;
use super::outcome::{advice, exit};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::screen::Screen;
use crate::show::time::clock;
use crate::show::{tree, try_print};

/// Longest wait of one long poll: short, so that ages on the screen move.
const WAIT: Duration = Duration::from_secs(1);

/// Follows the entity until request number `after` was applied and its rollout is at rest; the exit code reports how it ended.
pub(crate) async fn follow(
    context: &Context,
    entity: &str,
    timeout: Option<Span>,
    after: u64,
) -> CommandResult {
    let drawn = context.show.terminal && !context.show.is_data();
    let mut screen = Screen::default();
    let mut changes = Changes::default();
    let rested = until_rest(context, entity, timeout, after, async |view: &RolloutView| {
        if drawn {
            let targets = targets(context, entity).await?;
            screen.draw(&tree::lines(view, &targets, context.show.paint));
            return Ok(());
        }
        let of_interest =
            if changes.stands_still(view) { targets(context, entity).await? } else { Vec::new() };
        for line in changes.lines(view, &of_interest) {
            try_print(&format!("{} {}: {line}", clock(view.now_ms), view.entity.name))?;
        }
        Ok(())
    });
    rested.await?.map_or_else(
        || Err(not_in_time(entity, timeout)),
        |view| {
            note_advice(context, &view);
            Ok(exit(&view))
        },
    )
}

/// That the time to wait is over.
pub(super) fn not_in_time(entity: &str, timeout: Option<Span>) -> Failure {
    let within = timeout.map(|timeout| format!(" within {}", timeout.brief())).unwrap_or_default();
    let message = format!("the rollout of entity {entity} did not end{within}; it continues");
    Failure::stated(Exit::Timeout, message).hint(format!("bellwether rollout get {entity}"))
}

/// Prints what a person can do about a rollout that is paused or needs approval.
pub(super) fn note_advice(context: &Context, view: &RolloutView) {
    if let Some(text) = view.rollout.as_ref().and_then(|rollout| advice(&view.entity, rollout)) {
        context.show.note(&text);
    }
}

/// Calls `each` with every state, until request number `after` was applied and its rollout is at rest; `None` when the time is over.
pub(crate) async fn until_rest(
    context: &Context,
    entity: &str,
    timeout: Option<Span>,
    after: u64,
    mut each: impl AsyncFnMut(&RolloutView) -> Result<(), Failure>,
) -> Result<Option<RolloutView>, Failure> {
    let time = Clock::system();
    let start = time.now();
    let mut index = None;
    loop {
        let view = next(context, entity, index).await?;
        each(&view).await?;
        if rests(&view, after) {
            return Ok(Some(view));
        }
        if timeout.is_some_and(|timeout| time.now().since(start) >= timeout) {
            return Ok(None);
        }
        index = Some(view.revision);
    }
}

/// Waits until `is_so`, which is asked again after each change of an entity, and now and then.
pub(crate) async fn until(
    context: &Context,
    entity: &str,
    mut is_so: impl AsyncFnMut() -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let mut index = None;
    while !is_so().await? {
        index = Some(next(context, entity, index).await?.revision);
    }
    Ok(())
}

async fn next(context: &Context, entity: &str, index: Option<u64>) -> Result<RolloutView, Failure> {
    Ok(context.client.current_rollout(&context.namespace, entity, index, WAIT).await?)
}

/// Whether nothing more happens without a person or a new request. Not every request starts a rollout: a request for the last
/// known good version turns the rollout under way into a rollback.
fn rests(view: &RolloutView, after: u64) -> bool {
    let asked = view.entity.requested.as_ref().map_or(0, |wanted| wanted.request);
    let handled = view.progress.handled_request >= asked.max(after);
    let under_way = matches!(
        view.progress.activity,
        RolloutActivity::RollingForward { .. } | RolloutActivity::RollingBack { .. }
    );
    handled && (!under_way || exit(view) == Exit::NeedsPerson)
}

/// All targets of an entity, page by page.
pub(crate) async fn targets(context: &Context, entity: &str) -> Result<Vec<TargetView>, Failure> {
    let mut all: Vec<TargetView> = Vec::new();
    let mut after = None;
    loop {
        let page = context.client.targets(&context.namespace, entity, after.as_deref(), None).await?;
        all.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(all),
        }
    }
}
