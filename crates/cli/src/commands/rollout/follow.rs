//! Following a rollout until it rests: a redrawing tree on a terminal, a line per change otherwise.

use std::time::Duration;

use bellwether_api::v1::progress::RolloutActivity;
use bellwether_api::v1::rollout::RolloutView;
use bellwether_api::v1::rollout::status::RolloutWait;
use bellwether_api::v1::target::TargetView;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;

use super::exit;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::age::clock;
use crate::show::screen::Screen;
use crate::show::{print, tell, tree};

/// How long one request for a change hangs: short, so that ages on the screen move.
const WAIT: Duration = Duration::from_secs(1);

/// Follows the entity until request number `after` was heeded and what it led to rests, and says how it ended by the exit code.
pub(crate) async fn follow(
    context: &Context,
    entity: &str,
    timeout: Option<Span>,
    after: u64,
) -> CommandResult {
    let drawn = context.show.terminal && !context.is_data();
    let mut screen = Screen::default();
    let mut said = String::new();
    let rested = until_rest(context, entity, (timeout, after), async |view: &RolloutView| {
        if drawn {
            let targets = targets(context, entity).await?;
            screen.draw(&tree::lines(view, &targets, context.show.paint));
            return Ok(());
        }
        let line = line(view);
        if line != said {
            print(&format!("{} {line}", clock(view.now_ms)));
            said = line;
        }
        Ok(())
    });
    rested.await?.map_or_else(
        || Err(Failure::new(Exit::Timeout, format!("see the rollout of {entity} rest in time"))),
        |view| {
            say_how_to_approve(&view);
            Ok(exit(&view))
        },
    )
}

/// Says what a person can type when it is a person that is waited for.
fn say_how_to_approve(view: &RolloutView) {
    let waiting = view.rollout.as_ref().and_then(|rollout| rollout.status.waiting.as_ref());
    if let Some(RolloutWait::Approval { stage }) = waiting {
        let entity = &view.entity.name;
        tell(&format!("approve it with: bellwether rollout approve {entity} --stage {stage}"));
    }
}

/// Calls `each` with every state seen, until request number `after` was heeded and what it led to rests; none when the time is over.
pub(crate) async fn until_rest(
    context: &Context,
    entity: &str,
    (timeout, after): (Option<Span>, u64),
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

async fn next(context: &Context, entity: &str, index: Option<u64>) -> Result<RolloutView, Failure> {
    Ok(context.client.current_rollout(&context.namespace, entity, index, WAIT).await?)
}

/// Whether nothing more happens without a person or a new request. Not every request makes a rollout of its own: asking for
/// last known good turns the one under way around.
fn rests(view: &RolloutView, after: u64) -> bool {
    let asked = view.entity.requested.as_ref().map_or(0, |wanted| wanted.request);
    let heeded = view.progress.handled_request >= asked.max(after);
    let under_way = matches!(
        view.progress.activity,
        RolloutActivity::RollingForward { .. } | RolloutActivity::RollingBack { .. }
    );
    heeded && (!under_way || exit(view) == Exit::NeedsPerson)
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

fn line(view: &RolloutView) -> String {
    let counts = &view.counts;
    format!(
        "{}: {} ({}/{} succeeded, {} failed, {} in flight)",
        view.entity.name, view.message, counts.succeeded, counts.targets, counts.failed, counts.in_flight
    )
}
