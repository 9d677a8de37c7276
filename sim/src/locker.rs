//! Clients that take a lock, hold it while they may believe it is theirs, and release it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_api::paths::{self, fill};
use bellwether_core::words::random::RandomStream;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::caller::Caller;
use crate::requests::json as with_body;
use crate::trace::Trace;

/// Lease of the lock.
const LEASE: Duration = Duration::from_secs(6);

/// Interval between renewals.
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// A period in which a client believed it held the lock.
#[derive(Debug, Clone)]
pub struct LockHolding {
    /// Name of the holder.
    pub holder: String,
    /// Fencing number of the grant.
    pub fence: u64,
    /// Time of the answer.
    pub from: Instant,
    /// Time of the release, or of the local deadline.
    pub to: Instant,
}

/// All periods of a history.
pub type Holdings = Arc<Mutex<Vec<LockHolding>>>;

/// Acquires, holds and releases the lock, over and over.
pub(crate) async fn locks(caller: Caller, number: u64, seed: u64, holdings: Holdings) {
    let mut chance = RandomStream::for_one(seed, "locks", number);
    let holder = format!("locker-{number}");
    loop {
        tokio::time::sleep(Duration::from_millis(200 + chance.below(3_000))).await;
        let asked = Instant::now();
        let body = json!({"holder": holder, "lease": "6s", "capacity": 1});
        let Some(fence) = ask(&caller, &mut chance, paths::SLOT_ACQUIRE, &body).await else { continue };
        let from = Instant::now();
        if from >= asked + LEASE {
            continue;
        }
        let end = from + Duration::from_millis(500 + chance.below(12_000));
        let grant = LockGrant { holder: &holder, fence, asked };
        let to = hold(&caller, &mut chance, grant, end).await;
        holdings.lock().unwrap_or_else(PoisonError::into_inner).push(LockHolding {
            holder: holder.clone(),
            fence,
            from,
            to,
        });
        let body = json!({"holder": holder, "fence": fence});
        ask(&caller, &mut chance, paths::SLOT_RELEASE, &body).await;
    }
}

/// The lock as granted to a client.
struct LockGrant<'a> {
    holder: &'a str,
    /// Fencing number.
    fence: u64,
    /// When the client asked: its lease counts from then.
    asked: Instant,
}

/// Holds it until `end`, or until the last acknowledged renewal is too old. Returns when it stopped.
async fn hold(caller: &Caller, chance: &mut RandomStream, grant: LockGrant<'_>, end: Instant) -> Instant {
    let LockGrant { holder, fence, asked } = grant;
    let mut deadline = asked + LEASE;
    loop {
        let pause = RENEW_EVERY.min(deadline.min(end).saturating_duration_since(Instant::now()));
        tokio::time::sleep(pause).await;
        if Instant::now() >= deadline.min(end) {
            return deadline.min(end);
        }
        let asked = Instant::now();
        let body = json!({"holder": holder, "fence": fence, "lease": "6s"});
        let renewed = ask(caller, chance, paths::SLOT_RENEW, &body);
        // An answer after the deadline does not count.
        let answer = tokio::time::timeout_at(deadline, renewed).await;
        if answer.is_ok_and(|same| same == Some(fence)) {
            deadline = asked + LEASE;
        }
    }
}

/// Asks any server; returns the fencing number if it was answered.
async fn ask(caller: &Caller, chance: &mut RandomStream, path: &str, body: &Value) -> Option<u64> {
    let server = caller.any(chance);
    let path = fill(path, &["default", "one"]);
    let (status, answer) = caller.call(server, with_body("POST", &path, body)).await.ok()?;
    (status < 300).then(|| answer.get("fence").and_then(Value::as_u64)).flatten()
}

/// No two clients held the lock at once, and fencing numbers only grow.
pub fn one_at_a_time(trace: &Trace, holdings: &[LockHolding]) {
    let mut sorted: Vec<&LockHolding> = holdings.iter().collect();
    sorted.sort_by_key(|holding| (holding.from, holding.to));
    for pair in sorted.windows(2) {
        let [one, next] = pair else { continue };
        if next.from < one.to {
            trace.breaks(&format!(
                "{} held {} while {} held {}",
                next.holder, next.fence, one.holder, one.fence
            ));
        }
        // A client whose release was lost finds its own grant again.
        let same = next.fence == one.fence && next.holder == one.holder;
        if next.fence <= one.fence && !same {
            trace.breaks(&format!("{} was given {} after {}", next.holder, next.fence, one.fence));
        }
    }
}
