//! Takes a lock: requests it, waits by long polls while others hold it, and returns it.

use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::slot::{AcquireSlot, ReleaseSlot, Slot, SlotGrant};
use tokio::time::Instant;

use super::request::LockRequest;
use super::timing::{Moment, Timing};
use crate::exit::{Exit, Failure, bare};
use crate::show::tell;
use crate::show::time::date;

/// Longest wait of one long poll: the server's own limit.
const HANG: Duration = Duration::from_secs(55);

/// Pause before another attempt to reach a server.
const AGAIN: Duration = Duration::from_secs(1);

/// Longest time to return a lock that was not used.
const LEAVING: Duration = Duration::from_secs(5);

/// A lock that is held.
pub(super) struct Taken {
    /// Its fencing number.
    pub(super) fence: u64,
    /// When it was requested: its lease counts from then.
    pub(super) asked: Moment,
}

/// Waits for the lock and takes it.
pub(super) async fn take(wanted: &LockRequest<'_>) -> Result<Taken, Failure> {
    let wait = wanted.run.timeout;
    let until = wait.map(|wait| Instant::now() + wait.to_duration());
    let timing = Timing::of(wanted.run.lease.to_duration());
    let mut said = String::new();
    loop {
        let asked = Moment::now();
        let (now, seen) = match ask(wanted).await {
            // A grant that took so long has used up its lease; another request extends it.
            Ok(_) if asked.elapsed() >= timing.renew => continue,
            Ok(grant) => return Ok(Taken { fence: grant.fence, asked }),
            Err(error) => blocked(wanted, error).await?,
        };
        if now != said {
            wanted.context.show.note(&format!("waiting for lock {}: {now}", wanted.run.name));
            said = now;
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            let what =
                format!("take lock {} within {}: {said}", wanted.run.name, wait.unwrap_or_default().brief());
            let hint = format!("bellwether lock describe {}", wanted.run.name);
            return Err(Failure::new(Exit::Timeout, what).hint(hint));
        }
        let hang = left.map_or(HANG, |left| left.min(HANG));
        match seen {
            // Whatever the outcome, the lock is requested again.
            Some(index) => {
                let (context, name) = (wanted.context, &wanted.run.name);
                let asked = context.client.slot(&context.namespace, name, Some(index), hang).await;
                if asked.is_err() {
                    tokio::time::sleep(hang.min(AGAIN)).await;
                }
            }
            None => tokio::time::sleep(hang.min(AGAIN)).await,
        }
    }
}

async fn ask(wanted: &LockRequest<'_>) -> Result<SlotGrant, CallError> {
    let (context, run) = (wanted.context, wanted.run);
    let acquire = AcquireSlot {
        holder: wanted.holder.clone(),
        reason: run.reason.clone(),
        lease: Some(run.lease.to_string()),
        capacity: run.capacity,
    };
    context.client.acquire_slot(&context.namespace, &run.name, &acquire).await
}

/// Why the lock is not granted, and at which revision; or that it never will be.
async fn blocked(wanted: &LockRequest<'_>, error: CallError) -> Result<(String, Option<u64>), Failure> {
    let away = |error: &CallError| (format!("cannot {}; trying again", bare(&error.to_string())), None);
    match error {
        CallError::Problem(problem) if problem.code == Code::Refused => {
            let (context, name) = (wanted.context, &wanted.run.name);
            let view = match context.client.slot(&context.namespace, name, None, Duration::ZERO).await {
                Ok(view) => view,
                Err(error @ CallError::Problem(_)) => return Err(error.into()),
                Err(error) => return Ok(away(&error)),
            };
            if wanted.run.capacity.is_some_and(|capacity| capacity != view.slot.capacity) {
                return Err(CallError::Problem(problem).into());
            }
            Ok((holders(&view.slot), Some(view.revision)))
        }
        CallError::Problem(problem) if !matches!(problem.code, Code::Store | Code::Conflict) => {
            Err(CallError::Problem(problem).into())
        }
        error @ CallError::Setup { .. } => Err(error.into()),
        error @ (CallError::Problem(_)
        | CallError::Unreachable { .. }
        | CallError::NoneReachable { .. }
        | CallError::AnswerLost { .. }
        | CallError::Timeout { .. }
        | CallError::Garbled { .. }) => Ok(away(&error)),
    }
}

/// The holders, since when and why.
fn holders(slot: &Slot) -> String {
    if slot.capacity == 0 {
        return "its capacity is 0".to_owned();
    }
    let each = slot.holders.iter().map(|(name, holder)| {
        let why = if holder.reason.is_empty() { String::new() } else { format!(": {}", holder.reason) };
        format!("held by {name} since {}{why}", date(holder.since_ms))
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { "released just now".to_owned() } else { each.join("; ") }
}

/// Returns a lock that may have been granted after this process stopped waiting for it.
pub(super) async fn leave(wanted: &LockRequest<'_>) {
    let (context, name) = (wanted.context, &wanted.run.name);
    let leaving = async {
        let view = context.client.slot(&context.namespace, name, None, Duration::ZERO).await?;
        let Some(held) = view.slot.holders.get(&wanted.holder) else { return Ok(()) };
        release(wanted, held.fence).await
    };
    let left = tokio::time::timeout(LEAVING, leaving).await;
    if !matches!(left, Ok(Ok(()))) {
        tell(&format!(
            "cannot reach the server to release lock {name}; if it was acquired, it expires with its lease"
        ));
    }
}

/// Returns the lock.
pub(super) async fn release(wanted: &LockRequest<'_>, fence: u64) -> Result<(), CallError> {
    let (context, name) = (wanted.context, &wanted.run.name);
    let back = ReleaseSlot { holder: wanted.holder.clone(), fence };
    context.client.release_slot(&context.namespace, name, &back).await
}
