//! `lock`: runs a command while a slot is held, and stops it before the slot is lost.

pub(super) mod child;
pub(crate) mod guard;
mod guarded;
mod hold;
mod message;
mod request;
mod take;
mod timing;

use bellwether_api::v1::slot::ForceRelease;
use bellwether_core::words::time::Span;
use bellwether_rt::signal::ForwardedSignals;

use crate::args::{LockRun, LockVerb};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use request::{LockRequest, exit_by, this_process};

/// Shortest lease: a renewal must get through a busy network in a third of it.
const SHORTEST: Span = Span::from_secs(1);

pub(super) async fn run(context: &Context, verb: LockVerb) -> CommandResult {
    match verb {
        LockVerb::Run(run) => held(context, &run).await,
        LockVerb::List { all, flags } => super::slot::list(context, &flags, all, "lock").await,
        LockVerb::Describe { name } => {
            super::slot::exists(context, "lock", &name).await?;
            super::describe::run(context, &format!("slot/{name}")).await
        }
        LockVerb::Release { name, holder, force: _, reason } => {
            let force = ForceRelease { holder, reason };
            super::slot::release(context, "lock", &name, force).await.map(|()| Exit::Yes)
        }
    }
}

async fn held(context: &Context, run: &LockRun) -> CommandResult {
    if run.lease < SHORTEST {
        return Err(Failure::usage(format!(
            "hold a lock for {}: a lease is at least {}",
            run.lease.brief(),
            SHORTEST.brief()
        )));
    }
    let mut signals =
        ForwardedSignals::listen().map_err(|error| Failure::ours(format!("listen for signals: {error}")))?;
    let holder = run.holder.clone().unwrap_or_else(this_process);
    let wanted = LockRequest { context, run, holder };
    // A process that is stopped while it waits holds nothing yet, or returns the lock that it may just have been granted.
    let taken = tokio::select! {
        taken = take::take(&wanted) => taken?,
        signal = signals.next() => {
            take::leave(&wanted).await;
            return Ok(exit_by(signal));
        }
    };
    hold::hold(&wanted, taken, signals).await
}
