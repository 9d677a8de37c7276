//! Users of the installation: one rolls out versions, several write one profile by compare-and-set.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_api::paths::{self, fill};
use bellwether_api::v1;
use bellwether_core::words::random::RandomStream;
use bellwether_rt::tasks::Tasks;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::caller::Caller;
pub use crate::caller::TOKEN;
use crate::locker::{Holdings, LockHolding, locks};
use crate::network::{CallLoss, Network};
use crate::requests::{bare, json as with_body};
use crate::trace::Trace;

/// The profile that several people write.
pub const PROFILE: &str = "shared";

/// One write of the profile, as its writer knows it.
#[derive(Debug, Clone)]
pub struct Write {
    /// The value written; each is unique.
    pub text: String,
    /// Time of the request.
    pub asked: Instant,
    /// Time of the answer.
    pub ended: Instant,
    /// The revision it was compared with.
    pub follows: u64,
    /// Its outcome.
    pub outcome: WriteOutcome,
}

/// The outcome of a write, as its writer knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It became this revision.
    Made(u64),
    /// It was not made.
    Refused,
    /// It may have been made.
    Unknown,
}

impl WriteOutcome {
    /// The revision it became, if known.
    #[must_use]
    pub fn made(self) -> Option<u64> {
        match self {
            Self::Made(number) => Some(number),
            Self::Refused | Self::Unknown => None,
        }
    }
}

/// All users, and what they remember.
#[derive(Debug, Clone)]
pub struct People {
    caller: Caller,
    trace: Trace,
    writes: Arc<Mutex<Vec<Write>>>,
    holdings: Holdings,
    seed: u64,
}

impl People {
    /// Users of these servers.
    #[must_use]
    pub fn new(network: &Network, trace: &Trace, servers: usize, seed: u64) -> Self {
        Self {
            caller: Caller::new(network, servers),
            trace: trace.clone(),
            writes: Arc::default(),
            holdings: Arc::default(),
            seed,
        }
    }

    /// All writes.
    #[must_use]
    pub fn writes(&self) -> Vec<Write> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All periods in which the lock was held.
    #[must_use]
    pub fn holdings(&self) -> Vec<LockHolding> {
        self.holdings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts all users as tasks of this level.
    pub fn start(&self, tasks: &Tasks) {
        tasks.spawn("rolls out", self.clone().rolls_out());
        for number in 0..3 {
            tasks.spawn("writes", self.clone().writes_profile(number));
            tasks.spawn("locks", locks(self.caller.clone(), number, self.seed, self.holdings.clone()));
        }
    }

    /// Rolls out one version after the other, some of them bad, and runs an action.
    async fn rolls_out(self) {
        let mut chance = RandomStream::for_one(self.seed, "rolls out", 0);
        let policy = json!({
            "batch": "3", "rollback": "3", "soak": "2s", "deadline": "60s", "success": "80%", "failures": "1", "retries": 2,
        });
        let web = json!({"selector": "role=web", "policy": policy});
        let kick = json!({"selector": "role=web", "action": "kick", "policy": {"batch": "4", "soak": "0s", "deadline": "60s"}});
        for (name, spec) in [("web", web), ("kick", kick)] {
            let path = fill(paths::ENTITY, &["default", name]);
            let (status, body) = self.caller.insist(&mut chance, || with_body("PUT", &path, &spec)).await;
            if status >= 300 {
                self.trace.breaks(&format!("entity {name} was refused: {status} {body}"));
            }
        }
        for number in 1_u32.. {
            let bad = chance.below(4) == 0;
            let version = if bad { format!("bad-{number}") } else { format!("v{number}") };
            let (entity, body) = if chance.below(3) == 0 {
                ("kick", json!({}))
            } else {
                ("web", json!({ "version": version }))
            };
            let path = fill(paths::ROLLOUTS, &["default", entity]);
            let (status, _) = self.caller.insist(&mut chance, || with_body("POST", &path, &body)).await;
            self.trace.say(&format!("people ask for {entity} {version}: {status}"));
            tokio::time::sleep(Duration::from_millis(5_000 + chance.below(40_000))).await;
        }
    }

    /// Reads the profile and writes it by compare-and-set, over and over.
    async fn writes_profile(self, number: u64) {
        let mut chance = RandomStream::for_one(self.seed, "writes", number);
        let path = fill(paths::PROFILE, &["default", PROFILE]);
        for count in 1_u64.. {
            tokio::time::sleep(Duration::from_millis(500 + chance.below(5_000))).await;
            let server = self.caller.any(&mut chance);
            let (follows, before) = match self.caller.call(server, bare("GET", &path)).await {
                Ok((404, _)) => (0, json!({})),
                Ok((status, body)) if status < 300 => {
                    let revision = body.get("revision").and_then(Value::as_u64);
                    let Some(read) = revision.zip(body.get("params").cloned()) else { continue };
                    read
                }
                Ok(_) | Err(_) => continue,
            };
            let text = format!("{number}-{count}");
            let spec = json!({"params": {"text": text}, "if_equal": before});
            let asked = Instant::now();
            let server = self.caller.any(&mut chance);
            let answer = self.caller.call(server, with_body("PUT", &path, &spec)).await;
            let outcome = match answer {
                Ok((status, body)) if status < 300 => body
                    .get("revision")
                    .and_then(Value::as_u64)
                    .map_or(WriteOutcome::Unknown, WriteOutcome::Made),
                Ok((409 | 412, _)) => WriteOutcome::Refused,
                Ok((status, body)) if status < 500 => {
                    self.trace.breaks(&format!("a write of the profile was refused: {status} {body}"));
                    WriteOutcome::Refused
                }
                Err(CallLoss::Refused) => WriteOutcome::Refused,
                Ok(_) | Err(CallLoss::Broken) => WriteOutcome::Unknown,
            };
            let write = Write { text, asked, ended: Instant::now(), follows, outcome };
            self.trace.say(&format!("writer {number} over {follows}: {outcome:?}"));
            self.writes.lock().unwrap_or_else(PoisonError::into_inner).push(write);
        }
    }
}

/// Reads a profile revision's fields from the API's answer.
#[must_use]
pub fn text_of(params: &str) -> Option<String> {
    let params: v1::profile::Params = serde_json::from_str(params).ok()?;
    params.get("text").and_then(Value::as_str).map(str::to_owned)
}
