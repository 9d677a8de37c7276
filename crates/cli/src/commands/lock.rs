//! `lock`: a command runs while a slot is held, and not a moment longer than it is.

pub(super) mod child;
mod hold;
mod take;
mod timing;

use bellwether_api::v1::slot::ForceRelease;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::signal::ForwardedSignals;

use crate::args::{LockRun, LockVerb};
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use take::Taken;

/// Shortest lease: a renewal must get through a busy network in a third of it.
const SHORTEST: Span = Span::from_secs(1);

pub(super) async fn run(context: &Context, verb: LockVerb) -> CommandResult {
    match verb {
        LockVerb::Run(run) => held(context, &run).await,
        LockVerb::List { all } => super::slot::list(context, all).await.map(|()| Exit::Yes),
        LockVerb::Describe { name } => super::describe::run(context, &format!("slot/{name}")).await,
        LockVerb::Release { name, holder, force: _, reason } => {
            let force = ForceRelease { holder, reason };
            super::slot::take_from(context, &name, force).await.map(|()| Exit::Yes)
        }
    }
}

/// Who asks, for what.
struct Wanted<'a> {
    context: &'a Context,
    run: &'a LockRun,
    holder: String,
}

async fn held(context: &Context, run: &LockRun) -> CommandResult {
    if run.lease < SHORTEST {
        return Err(Failure::usage(format!("hold a lock for {}: a lease is at least {SHORTEST}", run.lease)));
    }
    let mut signals =
        ForwardedSignals::listen().map_err(|error| Failure::ours(format!("listen for signals: {error}")))?;
    let holder = run.holder.clone().unwrap_or_else(this_process);
    let wanted = Wanted { context, run, holder };
    // Whoever is asked to stop while it waits has nothing yet, or gives back what it may just have been given.
    let taken = tokio::select! {
        taken = take::take(&wanted) => taken?,
        signal = signals.next() => {
            take::leave(&wanted).await;
            return Ok(exit_by(signal));
        }
    };
    hold::hold(&wanted, taken, signals).await
}

/// What a shell says of a command that a signal ended.
fn exit_by(signal: i32) -> Exit {
    Exit::Child(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// A name that no other holder has: this machine, this process, and when.
fn this_process() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(char::is_ascii_graphic).take(64).collect();
    format!("{host}:{}:{}", std::process::id(), Clock::system().now().as_millis())
}
