//! `demo`: a fleet of real processes on this machine, a good rollout, a node lost during one, a bad rollout rolled back.
//!
//! Owns the steps and their expectations. Everything it starts is its child, in a directory of its own; whatever happens,
//! nothing is left at the end.

mod expect;
mod fleet;
mod processes;
pub(super) mod service;
mod stage;

use std::time::Duration;

use bellwether_api::v1::policy::{OnFailure, Policy, Supersede};
use bellwether_api::v1::rollout::{NewRollout, RolloutView};
use bellwether_rt::clock::Clock;
use bellwether_rt::signal::stop_requested;

use crate::args::{Demo, Global};
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::{print, tell};
use expect::{Expectations, reason};
use fleet::{ENTITY, Fleet};
use stage::Stage;

/// Longest time of one step, after which the demo fails.
const ACT: Duration = Duration::from_secs(60);

/// Runs the demo; whatever happens, everything it started is stopped and removed.
pub(super) async fn run(global: &Global, args: &Demo) -> CommandResult {
    let mut fleet = Fleet::new(args)?;
    // A signal drops the demo at its current step; the fleet is stopped either way.
    let ended = tokio::select! {
        biased;
        ended = whole(global, args, &mut fleet) => ended,
        stop = stop_requested() => {
            stop.map_err(|error| Failure::ours(format!("listen for signals: {error}")))?;
            tell("\nstopping all processes");
            Err(Failure::new(Exit::No, "finish the demo: it was interrupted"))
        }
    };
    fleet.take_down().await;
    ended
}

/// The demo, with the time after it that `--keep` asks for.
async fn whole(global: &Global, args: &Demo, fleet: &mut Fleet) -> CommandResult {
    let ended = play(global, args, fleet).await;
    if args.keep { keep(fleet, ended).await } else { ended }
}

async fn play(global: &Global, args: &Demo, fleet: &mut Fleet) -> CommandResult {
    let clock = Clock::system();
    let start = clock.now();
    let mut stage = Stage::new(global);
    stage.say(&format!(
        "a control plane and {} agents, each its own process with a small HTTP service to look after",
        args.nodes
    ));
    fleet.start(global).await?;
    stage.tie(fleet.context()?);
    let mut expect = Expectations::default();

    stage.act("version v1, everywhere at once");
    fleet.set_policy(policy(args.nodes, "100%")).await?;
    let first = roll(fleet, &mut stage, "v1", None).await?;
    expect.good(&first, "v1");

    let lost = fleet.draw_victim(args.seed);
    stage.act(&format!(
        "version v2, in batches of {}; on the way node {lost} loses its power",
        batch(args.nodes)
    ));
    fleet.set_policy(policy(args.nodes, &batch(args.nodes).to_string())).await?;
    let second = roll(fleet, &mut stage, "v2", Some(&lost)).await?;
    expect.good(&second, "v2");
    expect.lost(&second, fleet, &lost).await?;

    stage.act("version v3, which starts and then reports that it is broken");
    let third = roll(fleet, &mut stage, "v3", None).await?;
    expect.rolled_back(&third, "v3", "v2", batch(args.nodes));
    expect.pages(fleet, "v2", &lost).await;

    let took = clock.now().since(start);
    print(&stage.summary(&third, &lost, took, &expect))?;
    expect.verdict()
}

/// Leaves what runs as it is until a signal, after a failure too.
async fn keep(fleet: &Fleet, ended: CommandResult) -> CommandResult {
    let Ok(how) = fleet.how_to_look() else { return ended };
    if let Err(failure) = &ended {
        tell(&failure.message);
    }
    tell(&how);
    stop_requested().await.map_err(|error| Failure::ours(format!("listen for signals: {error}")))?;
    ended
}

/// Most targets in flight at once: a quarter of the fleet.
fn batch(nodes: u16) -> u64 {
    u64::from(nodes).div_ceil(4)
}

/// The demo's policy: times short enough to watch, one lost node tolerated.
fn policy(nodes: u16, batch: &str) -> Policy {
    let text = |text: &str| Some(text.to_owned());
    Policy {
        batch: text(batch),
        success: Some(format!("{}%", 100 * (u32::from(nodes) - 1) / u32::from(nodes))),
        failures: text("0"),
        unreachable: text("20%"),
        soak: text("1s"),
        deadline: text("8s"),
        fail_fast: Some(true),
        retries: Some(0),
        on_failure: Some(OnFailure::Rollback),
        rollback: text("100%"),
        supersede: Some(Supersede::Replace),
        ..Policy::default()
    }
}

/// Starts a rollout and shows it until it has ended; `victim` loses its power once a target has succeeded.
async fn roll(
    fleet: &mut Fleet,
    stage: &mut Stage,
    version: &str,
    victim: Option<&str>,
) -> Result<RolloutView, Failure> {
    let context = fleet.context()?;
    let before =
        context.client.current_rollout("default", ENTITY, None, Duration::ZERO).await?.progress.last_rollout;
    let why = format!("demo: {version}");
    let new = NewRollout { version: Some(version.to_owned()), reason: why, ..NewRollout::default() };
    context.client.start_rollout("default", ENTITY, &new).await?;
    let mut victim = victim;
    let mut last = None;
    let watched = async {
        let mut index = None;
        loop {
            let view =
                context.client.current_rollout("default", ENTITY, index, Duration::from_millis(500)).await?;
            stage.show(&context, &view).await?;
            let own = view.rollout.as_ref().filter(|rollout| rollout.number > before);
            let due = own.is_some() && view.counts.succeeded > 0;
            if let Some(name) = victim.take_if(|_| due) {
                stage.note(&format!("node {name}: power off (its processes are killed)"));
                fleet.power_off(name);
            }
            if own.is_some_and(|rollout| rollout.ended_ms.is_some()) {
                return Ok(view);
            }
            index = Some(view.revision);
            last = Some(reason(&view));
        }
    };
    let ended = tokio::time::timeout(ACT, watched).await;
    ended.unwrap_or_else(|_| {
        let last = last.map_or_else(String::new, |reason| format!(": {reason}"));
        let what = format!("see the rollout of {version} end within {} s{last}", ACT.as_secs());
        Err(Failure::new(Exit::Timeout, what))
    })
}
