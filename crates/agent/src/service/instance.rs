//! One instance: its checks are asked and listened for, and what they say together is shown whenever it turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::local::serving::{Listening, serving};
use bellwether_core::words::name::CheckName;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use super::{Board, Shown};
use crate::apply::Facts;
use crate::check::Checks;
use crate::config::service::Service;

/// What an instance is told by programs, by check.
pub(crate) type Heard = watch::Receiver<BTreeMap<CheckName, Listening>>;

/// One instance at work.
pub(super) struct Instance {
    pub(super) service: Arc<Service>,
    pub(super) heard: Heard,
    pub(super) board: Board,
    pub(super) clock: Clock,
    pub(super) node: String,
    pub(super) seed: u64,
}

impl Instance {
    /// Works until its level is stopped.
    pub(super) async fn run(mut self, level: Tasks) {
        let token = level.token();
        let facts = Facts { node: self.node.clone(), ..Facts::default() };
        let mut checks = Checks::start(&self.service.checks, &facts, &self.clock, &level, self.seed);
        loop {
            let now = self.clock.now();
            let listening = self.heard.borrow_and_update().clone();
            self.show(serving(&checks.now(), &listening, now));
            let ends = listening.values().filter_map(|listening| listening.ends(now)).min();
            // All only wait; everything is looked at again above.
            tokio::select! {
                () = token.cancelled() => return,
                () = checks.turned() => {}
                heard = self.heard.changed() => if heard.is_err() { return },
                () = until(ends, now) => {}
            }
        }
    }

    fn show(&self, serving: bellwether_core::records::offers::Serving) {
        let (key, shown) = (self.service.key(), Shown { service: self.service.clone(), serving });
        self.board.send_if_modified(|all| {
            let same = all.get(&key) == Some(&shown);
            if !same {
                all.insert(key.clone(), shown.clone());
            }
            !same
        });
    }
}

/// Waits until a moment of the agent's clock; for ever when there is none.
async fn until(at: Option<Timestamp>, now: Timestamp) {
    match at {
        Some(at) => {
            tokio::time::sleep(at.since(now).to_duration() + std::time::Duration::from_millis(1)).await
        }
        None => std::future::pending().await,
    }
}
