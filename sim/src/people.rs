//! Users of the installation: one rolls out versions, several write one profile by compare-and-set.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bellwether_api::paths::{self, fill};
use bellwether_api::v1;
use bellwether_core::trial::simulation::random::RandomStream;
use bellwether_rt::tasks::Tasks;
use http::{Request, header};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::agent::{bare, json as with_body};
use crate::locker::{Holdings, LockHolding, locks};
use crate::network::{CallLoss, Network};
use crate::trace::Trace;

/// The secret of the users' token.
pub const TOKEN: &str = "bwt_people";

/// How long a user waits for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

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
    network: Network,
    trace: Trace,
    servers: usize,
    writes: Arc<Mutex<Vec<Write>>>,
    holdings: Holdings,
    seed: u64,
}

impl People {
    /// Users of these servers.
    #[must_use]
    pub fn new(network: &Network, trace: &Trace, servers: usize, seed: u64) -> Self {
        Self {
            network: network.clone(),
            trace: trace.clone(),
            servers,
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
            tasks.spawn("locks", locks(self.clone(), number, self.seed, self.holdings.clone()));
        }
    }

    pub(crate) async fn call(&self, server: usize, request: Request<Body>) -> Result<(u16, Value), CallLoss> {
        let (mut parts, body) = request.into_parts();
        let bearer = format!("Bearer {TOKEN}").parse().expect("a token of ours is a header");
        parts.headers.insert(header::AUTHORIZATION, bearer);
        let request = Request::from_parts(parts, body);
        let as_it_is = |router: Router| router;
        let (status, body) = self.network.call(("people", server), as_it_is, request, PATIENCE).await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    /// Calls servers in turn until one answers.
    async fn insist(&self, chance: &mut RandomStream, make: impl Fn() -> Request<Body>) -> (u16, Value) {
        loop {
            let server = self.any(chance);
            match self.call(server, make()).await {
                Ok((status, body)) if status < 500 => return (status, body),
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
            }
        }
    }

    pub(crate) fn any(&self, chance: &mut RandomStream) -> usize {
        let servers = u64::try_from(self.servers).unwrap_or(1);
        usize::try_from(chance.below(servers)).unwrap_or_default()
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
            let (status, body) = self.insist(&mut chance, || with_body("PUT", &path, &spec)).await;
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
            let (status, _) = self.insist(&mut chance, || with_body("POST", &path, &body)).await;
            self.trace.say(&format!("people ask for {entity} {version}: {status}"));
            tokio::time::sleep(Duration::from_millis(5_000 + chance.below(40_000))).await;
        }
    }

    /// Reads the profile and writes it by compare-and-set, over and over.
    async fn writes_profile(self, number: u64) {
        let mut chance = RandomStream::for_one(self.seed, "writes", number);
        let path = fill(paths::PROFILE, &["default", "shared"]);
        for count in 1_u64.. {
            tokio::time::sleep(Duration::from_millis(500 + chance.below(5_000))).await;
            let server = self.any(&mut chance);
            let follows = match self.call(server, bare("GET", &path)).await {
                Ok((404, _)) => 0,
                Ok((status, body)) if status < 300 => match body.get("revision").and_then(Value::as_u64) {
                    Some(revision) => revision,
                    None => continue,
                },
                Ok(_) | Err(_) => continue,
            };
            let text = format!("{number}-{count}");
            let spec = json!({"params": {"text": text}, "ref": follows});
            let asked = Instant::now();
            let server = self.any(&mut chance);
            let answer = self.call(server, with_body("PUT", &path, &spec)).await;
            let outcome = match answer {
                Ok((status, body)) if status < 300 => body
                    .get("revision")
                    .and_then(Value::as_u64)
                    .map_or(WriteOutcome::Unknown, WriteOutcome::Made),
                Ok((status, _)) if status < 500 => WriteOutcome::Refused,
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
