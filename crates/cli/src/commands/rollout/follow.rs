//! Follows a rollout until it needs nothing more: a redrawn tree on a terminal, a line per change otherwise.

mod changes;

use std::time::Duration;

use bellwether_api::v1::entity::Entity;
use bellwether_api::v1::progress::RolloutActivity;
use bellwether_api::v1::rollout::RolloutView;
use bellwether_api::v1::target::TargetView;
use bellwether_core::words::time::{Span, Timestamp};
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

/// How long to wait, from when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitLimit {
    timeout: Option<Span>,
    start: Timestamp,
}

impl WaitLimit {
    /// At most this time from now on; `None` for ever.
    pub(crate) fn from_now(timeout: Option<Span>) -> Self {
        Self { timeout, start: Clock::system().now() }
    }

    pub(crate) fn is_over(self) -> bool {
        self.timeout.is_some_and(|timeout| Clock::system().now().since(self.start) >= timeout)
    }

    /// The time, as it fits behind what did not happen in it.
    pub(crate) fn within(self) -> String {
        self.timeout.map(|timeout| format!(" within {}", timeout.brief())).unwrap_or_default()
    }
}

/// Follows the entity until request number `after` was applied and its rollout is at rest; the exit code reports how it ended.
pub(crate) async fn follow(context: &Context, entity: &str, limit: WaitLimit, after: u64) -> CommandResult {
    let drawn = context.show.terminal && !context.show.is_data();
    let mut screen = Screen::default();
    let mut changes = Changes::since(after);
    let rested = until_rest(context, entity, limit, after, async |view: &RolloutView| {
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
    let view = rested.await?;
    note_advice(context, &view);
    Ok(exit(&view))
}

/// That the time to wait is over.
fn not_in_time(entity: &Entity, limit: WaitLimit) -> Failure {
    let Entity { name, .. } = entity;
    let what = match &entity.workflow {
        Some(_) => format!("run {name}"),
        None => format!("the rollout of entity {name}"),
    };
    let message = format!("{what} did not end{}; it continues", limit.within());
    Failure::stated(Exit::Timeout, message).hint(format!("bellwether rollout get {name}"))
}

/// Prints what a person can do about a rollout that is paused or needs approval.
pub(super) fn note_advice(context: &Context, view: &RolloutView) {
    if let Some(text) = view.rollout.as_ref().and_then(|rollout| advice(&view.entity, rollout)) {
        context.show.note(&text);
    }
}

/// Calls `each` with every state, until request number `after` was applied and its rollout is at rest.
///
/// # Errors
/// The time is over.
pub(crate) async fn until_rest(
    context: &Context,
    entity: &str,
    limit: WaitLimit,
    after: u64,
    mut each: impl AsyncFnMut(&RolloutView) -> Result<(), Failure>,
) -> Result<RolloutView, Failure> {
    let mut index = None;
    loop {
        let view = next(context, entity, index).await?;
        each(&view).await?;
        if rests(&view, after) {
            return Ok(view);
        }
        if limit.is_over() {
            return Err(not_in_time(&view.entity, limit));
        }
        index = Some(view.revision);
    }
}

/// Waits until `is_so`, which is asked again after each change of an entity, and now and then. `what` is what is waited for, in an error.
///
/// # Errors
/// The time is over.
pub(crate) async fn until(
    context: &Context,
    (entity, what): (&str, &str),
    limit: WaitLimit,
    mut is_so: impl AsyncFnMut() -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let mut index = None;
    while !is_so().await? {
        if limit.is_over() {
            let message = format!("{what}{}", limit.within());
            return Err(Failure::stated(Exit::Timeout, message).hint(format!("bellwether why run/{entity}")));
        }
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
