//! Handing over the leadership of a data store of this node before it is changed: it is asked once more, and if it leads, a follower takes
//! over. Only stores whose probe is configured for it. Who begins anew asks again; what was broken off is ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::local::handover::{self, HandoverStep, OwnHealth};
use bellwether_core::records::probes::{MAX_REASON_BYTES, StoreState};
use bellwether_core::words::name::ProbeName;
use bellwether_rt::observed;

use super::answer::ProbeError;
use super::limits::FOLLOWER_LIMIT;
use super::task::{ProbeTask, within_limits};
use super::{etcd, redis};
use crate::apply::output::one_line;
use crate::config::data_store::StoreKind;

/// Longest time of a handover, from the choice of a follower until the store says that it leads no more: several elections of etcd on a
/// slow network. Whoever waits for longer is told why, and it is tried again.
const LIMIT: Duration = Duration::from_secs(20);

/// The data stores of this node that hand over their leadership.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handovers(Arc<BTreeMap<ProbeName, Arc<ProbeTask>>>);

impl Handovers {
    pub(super) fn new(tasks: impl Iterator<Item = Arc<ProbeTask>>) -> Self {
        let capable = tasks.filter(|task| task.probe.handover);
        Self(Arc::new(capable.map(|task| (task.name.clone(), task)).collect()))
    }

    /// Whether a store is one of them.
    pub(crate) fn has(&self, probe: &ProbeName) -> bool {
        self.0.contains_key(probe)
    }

    /// Asks a store, and hands over its leadership if it leads. Dropping it is safe: what was begun ends within its own limit.
    ///
    /// # Errors
    /// Why the change must not begin now, in one line.
    pub(crate) async fn before_change(&self, probe: &ProbeName, health: OwnHealth) -> Result<(), String> {
        let Some(task) = self.0.get(probe) else { return Ok(()) };
        let store = within_limits(Box::pin(task.ask_observed()).await);
        task.publish(store.clone());
        let step = match handover::next(probe, &store, health) {
            HandoverStep::HandOver => Box::pin(task.hand_over(health)).await,
            HandoverStep::Start if store.state == StoreState::Up => task.keep_role(health).await,
            step @ (HandoverStep::Start | HandoverStep::Wait(_)) => step,
        };
        match step {
            HandoverStep::Start | HandoverStep::HandOver => Ok(()),
            HandoverStep::Wait(reason) => Err(one_line(&reason, MAX_REASON_BYTES)),
        }
    }
}

impl ProbeTask {
    /// Ends a handover that was begun and broken off, by this agent or one before.
    pub(super) async fn end_handover(&self) {
        let StoreKind::Redis { address, login } = &self.probe.kind else { return };
        if !self.probe.handover || !self.begun.is_due() {
            return;
        }
        // Who hands over at this moment ends it, too.
        let Some(_turn) = self.begun.try_turn() else { return };
        let ended = observed::timeout(LIMIT, redis::handover::end(address, login, &self.begun)).await;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.begun.failed(error.to_string()),
            Err(_) => self.begun.failed("it takes too long".to_owned()),
        }
    }

    async fn hand_over(&self, health: OwnHealth) -> HandoverStep {
        let (probe, kind) = (&self.name, &self.probe.kind);
        let _turn = self.begun.turn().await;
        let handing = async {
            match kind {
                StoreKind::Etcd { authority, tls } => {
                    etcd::handover::hand_over(authority, tls.as_ref()).await
                }
                StoreKind::Redis { address, login } => {
                    redis::handover::hand_over(address, login, &self.begun).await
                }
                StoreKind::Sentinel { .. }
                | StoreKind::Postgresql { .. }
                | StoreKind::Zookeeper { .. }
                | StoreKind::Exec(_) => Err(ProbeError::Unknown("its probe cannot hand over".to_owned())),
            }
        };
        let failed = match observed::timeout(LIMIT, handing).await {
            Ok(Ok(to)) => {
                tracing::info!(store = %probe, %to, "handed over the leadership");
                self.publish(within_limits(self.ask_observed().await));
                return HandoverStep::Start;
            }
            // It ended meanwhile, and leads nothing; what was refused may be the connection to a follower as well.
            Ok(Err(ProbeError::Down(_) | ProbeError::Broken(_)))
                if self.ask().await.state == StoreState::Down =>
            {
                return HandoverStep::Start;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                if let StoreKind::Redis { address, login } = kind {
                    drop(observed::timeout(FOLLOWER_LIMIT, redis::handover::abort(address, login)).await);
                }
                format!("it was not done within {} s", LIMIT.as_secs())
            }
        };
        let step = handover::after_failure(probe, &failed, health);
        if step == HandoverStep::Start {
            tracing::warn!(store = %probe, reason = failed, "cannot hand over the leadership; what fails already is changed all the same");
        }
        step
    }

    /// Makes a store that follows keep that role over its restart, also if who handed over before died before it had done so.
    async fn keep_role(&self, health: OwnHealth) -> HandoverStep {
        let StoreKind::Redis { address, login } = &self.probe.kind else { return HandoverStep::Start };
        let _turn = self.begun.turn().await;
        let kept = observed::timeout(LIMIT, redis::handover::settle(address, login, &self.begun)).await;
        match kept {
            // What is down keeps what it has.
            Ok(Ok(_) | Err(ProbeError::Down(_))) => HandoverStep::Start,
            Ok(Err(ProbeError::Broken(_))) if self.ask().await.state == StoreState::Down => {
                HandoverStep::Start
            }
            Ok(Err(error)) => handover::after_failed_keeping(&self.name, &error.to_string(), health),
            Err(_) => {
                let reason = format!("no answer within {} s", LIMIT.as_secs());
                handover::after_failed_keeping(&self.name, &reason, health)
            }
        }
    }
}
