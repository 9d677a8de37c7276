//! Taking a lock: asked for, waited for while others hold it, watched and not polled; and left again.

use std::time::Duration;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;
use bellwether_api::v1::slot::{AcquireSlot, ReleaseSlot, Slot, SlotGrant};
use tokio::time::Instant;

use super::Wanted;
use super::timing::Timing;
use crate::exit::{Exit, Failure};
use crate::show::age::date;
use crate::show::tell;

/// How long one question hangs at most: the server's own limit.
const HANG: Duration = Duration::from_secs(55);

/// After a server that cannot be reached was asked, it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long it may take to give back what was not used.
const LEAVING: Duration = Duration::from_secs(5);

/// A lock that is held.
pub(super) struct Taken {
    /// Its number.
    pub(super) fence: u64,
    /// When it was asked for: its lease is counted from then.
    pub(super) asked: Instant,
}

/// Waits for the lock and takes it.
pub(super) async fn take(wanted: &Wanted<'_>) -> Result<Taken, Failure> {
    let wait = wanted.run.wait.map(|wait| wait.to_duration());
    let until = wait.map(|wait| Instant::now() + wait);
    let timing = Timing::of(wanted.run.lease.to_duration());
    let mut said = String::new();
    loop {
        let asked = Instant::now();
        let (now, seen) = match ask(wanted).await {
            // An answer that was so long under way is worth nothing any more; asking again is holding it longer.
            Ok(_) if asked.elapsed() >= timing.renew => continue,
            Ok(grant) => return Ok(Taken { fence: grant.fence, asked }),
            Err(error) => blocked(wanted, error).await?,
        };
        if now != said {
            tell(&format!("waits for lock {}: {now}", wanted.run.name));
            said = now;
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            let what = format!("take lock {} in time: {said}", wanted.run.name);
            let hint = format!("bellwether lock describe {}", wanted.run.name);
            return Err(Failure::new(Exit::Timeout, what).hint(hint));
        }
        let hang = left.map_or(HANG, |left| left.min(HANG));
        match seen {
            // Whatever comes of it, it is asked for again.
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

async fn ask(wanted: &Wanted<'_>) -> Result<SlotGrant, CallError> {
    let (context, run) = (wanted.context, wanted.run);
    let acquire = AcquireSlot {
        holder: wanted.holder.clone(),
        reason: run.reason.clone(),
        lease: Some(run.lease.to_string()),
        capacity: run.slots,
    };
    context.client.acquire_slot(&context.namespace, &run.name, &acquire).await
}

/// Why it is not had, and since which revision; or that it never will be.
async fn blocked(wanted: &Wanted<'_>, error: CallError) -> Result<(String, Option<u64>), Failure> {
    let away = |error: &CallError| (format!("could not {error}; asking again"), None);
    match error {
        CallError::Problem(problem) if problem.code == Code::Refused => {
            let (context, name) = (wanted.context, &wanted.run.name);
            let view = match context.client.slot(&context.namespace, name, None, Duration::ZERO).await {
                Ok(view) => view,
                Err(error @ CallError::Problem(_)) => return Err(error.into()),
                Err(error) => return Ok(away(&error)),
            };
            if wanted.run.slots.is_some_and(|slots| slots != view.slot.capacity) {
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
        | CallError::Timeout { .. }
        | CallError::Garbled { .. }) => Ok(away(&error)),
    }
}

/// Who holds it, since when and why.
fn holders(slot: &Slot) -> String {
    if slot.capacity == 0 {
        return "nobody may hold it: its capacity is 0".to_owned();
    }
    let each = slot.holders.iter().map(|(name, holder)| {
        let why = if holder.reason.is_empty() { String::new() } else { format!(": {}", holder.reason) };
        format!("held by {name} since {}{why}", date(holder.since_ms))
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { "it was given back just now".to_owned() } else { each.join("; ") }
}

/// Gives back what may have been given while somebody stopped waiting for it.
pub(super) async fn leave(wanted: &Wanted<'_>) {
    let (context, name) = (wanted.context, &wanted.run.name);
    let leaving = async {
        let view = context.client.slot(&context.namespace, name, None, Duration::ZERO).await?;
        let Some(held) = view.slot.holders.get(&wanted.holder) else { return Ok(()) };
        give_back(wanted, held.fence).await
    };
    let left = tokio::time::timeout(LEAVING, leaving).await;
    if !matches!(left, Ok(Ok(()))) {
        tell(&format!("could not say that nobody waits for lock {name}; if it was had, it ends by itself"));
    }
}

/// Gives the lock back.
pub(super) async fn give_back(wanted: &Wanted<'_>, fence: u64) -> Result<(), CallError> {
    let (context, name) = (wanted.context, &wanted.run.name);
    let back = ReleaseSlot { holder: wanted.holder.clone(), fence };
    context.client.give_back_slot(&context.namespace, name, &back).await
}
