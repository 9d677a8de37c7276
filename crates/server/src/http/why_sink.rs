//! Why a sink has sent its events, or has not.

use bellwether_api::v1::sink::Sink;
use bellwether_api::v1::sink::state::SinkStatus;
use bellwether_core::words::name::{Namespace, SinkName};
use bellwether_core::words::plural::{Plural, plural};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;

use super::problem::Failure;
use super::sinks::{MAX_COUNTED, missing, shown};
use super::state::AppState;

/// Whether something keeps it from sending, and what, how much is undelivered, what failed last, and the next step.
pub(super) async fn sink(
    app: &AppState,
    world: &World,
    (namespace, name): (&Namespace, &SinkName),
) -> Result<(bool, Vec<String>), Failure> {
    let sink = shown(app, world, (namespace, name)).await.ok_or_else(|| missing(name))?;
    let status = sink.status.as_ref().ok_or_else(|| missing(name))?;
    let now = app.clock.now();
    let first = status.waits_for.clone().unwrap_or_else(|| "nothing keeps it from sending".to_owned());
    let lines = [first, undelivered(status, now)]
        .into_iter()
        .chain(last(status, now))
        .chain(dead_letters(&sink, status))
        .chain(next_step(&sink, status));
    Ok((status.waits_for.is_some(), lines.collect()))
}

fn ago(at_ms: u64, now: Timestamp) -> Span {
    now.since(Timestamp::from_millis(at_ms))
}

fn undelivered(status: &SinkStatus, now: Timestamp) -> String {
    let most = u64::try_from(MAX_COUNTED).unwrap_or(u64::MAX);
    let oldest = status.oldest_undelivered_ms;
    let oldest = oldest.map_or_else(String::new, |at| format!(", the oldest for {}", ago(at, now).brief()));
    match status.undelivered {
        0 => "no event is undelivered".to_owned(),
        1 => format!("1 event is undelivered{oldest}"),
        count if count >= most => format!("{most} events or more are undelivered{oldest}"),
        count => format!("{count} events are undelivered{oldest}"),
    }
}

/// The last delivery, and the attempt after it, if that failed.
fn last(status: &SinkStatus, now: Timestamp) -> impl Iterator<Item = String> {
    let state = &status.state;
    let delivery = match state.last_delivery_ms {
        Some(at) => format!("it delivered an event {} ago", ago(at, now).brief()),
        None => "it has delivered nothing yet".to_owned(),
    };
    let failed = state.last_attempt.as_ref().filter(|last| !last.delivered);
    let failed = failed.map(|last| {
        format!(
            "the last attempt failed {} ago, at event {}: {}",
            ago(last.at_ms, now).brief(),
            last.event,
            last.answer
        )
    });
    [delivery].into_iter().chain(failed)
}

fn dead_letters(sink: &Sink, status: &SinkStatus) -> Option<String> {
    let kept = status.state.dead_letters.len();
    let again = format!("send them again: bellwether sink replay {} --dead-letters", sink.name);
    (kept > 0).then(|| format!("it gave up {}, which it keeps; {again}", plural(kept, "event")))
}

/// What a person does about it.
fn next_step(sink: &Sink, status: &SinkStatus) -> Option<String> {
    let name = &sink.name;
    let is_stopped = status.state.stopped.as_ref().is_some_and(|stopped| stopped.revision == sink.revision);
    match (sink.disabled, is_stopped, &status.state.retry) {
        (true, ..) => {
            let reason = if sink.reason.is_empty() { String::new() } else { format!(": {}", sink.reason) };
            Some(format!("changed last by {}{reason}; have it send: bellwether sink enable {name}", sink.by))
        }
        (false, true, _) => Some(format!("once there is a receiver again: bellwether sink enable {name}")),
        (false, false, Some(retry)) => {
            let so_far = Plural(u64::from(retry.attempts), "attempt");
            Some(format!(
                "after {so_far} at event {}; have it tried now: bellwether sink enable {name}; ask the receiver alone: bellwether sink test {name}",
                retry.event
            ))
        }
        (false, false, None) if status.state.defect.is_some() => Some(format!(
            "its secrets are read again each minute, and when one of them or the sink is changed; try it now: bellwether sink test {name}"
        )),
        (false, false, None) => None,
    }
}
