//! The supervised processes of entities, as the service instances of those entities see them: an instance is functional only while
//! its process is up, and once its checks have passed since that process started.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::v1::registrations::{self, ServiceRegistrations};
use bellwether_core::records::registrations::CheckStatus;
use bellwether_core::words::name::EntityName;
use tokio::sync::watch;

use super::process_starts::ProcessStarts;
use super::published::{InstanceKey, PublishedInstance};
use crate::apply::process::ProcessMark;

/// Longest wait for the control plane to acknowledge a withdrawal: an update goes on while no server can be reached.
const ACKNOWLEDGED: Duration = Duration::from_secs(1);

/// The phase of a supervised process. An entity without one has no phase, and neither has a process that an agent before had
/// started: the states of its instances continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessPhase {
    /// It does not run, or is about to be stopped, for this reason: no instance is functional.
    Down(String),
    /// It was started by this agent.
    Up {
        /// The process: checks of instances begin anew with it.
        mark: ProcessMark,
        /// Whether its version passed validation: what makes an instance without checks functional.
        is_validated: bool,
    },
}

/// Phases by entity.
pub(crate) type ProcessPhases = BTreeMap<EntityName, ProcessPhase>;

/// The service registrations that the control plane acknowledged last; `None` before the first.
pub(crate) type AcknowledgedRegistrations = Option<Arc<ServiceRegistrations>>;

/// Tells the instances of entities about their processes. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct EntityInstances {
    pub(crate) phases: watch::Sender<ProcessPhases>,
    pub(crate) published: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    pub(crate) acknowledged: watch::Receiver<AcknowledgedRegistrations>,
    pub(crate) starts: ProcessStarts,
}

impl EntityInstances {
    /// No process of the entity runs, for this reason.
    pub(crate) fn down(&self, entity: &EntityName, reason: &str) {
        self.set(entity, Some(ProcessPhase::Down(reason.to_owned())));
    }

    /// A process of the entity was started.
    pub(crate) fn up(&self, entity: &EntityName, mark: ProcessMark) {
        self.starts.count(entity);
        self.set(entity, Some(ProcessPhase::Up { mark, is_validated: false }));
    }

    /// The version of the process passed validation.
    pub(crate) fn validated(&self, entity: &EntityName) {
        let phase = self.phases.borrow().get(entity).cloned();
        if let Some(ProcessPhase::Up { mark, .. }) = phase {
            self.set(entity, Some(ProcessPhase::Up { mark, is_validated: true }));
        }
    }

    /// The entity has no supervised process any more.
    pub(crate) fn unsupervised(&self, entity: &EntityName) {
        self.set(entity, None);
    }

    /// Makes the instances of the entity not functional before its process is stopped, and waits until the control plane has
    /// acknowledged that, or for [`ACKNOWLEDGED`]. Returns whether the entity has instances.
    pub(crate) async fn withdraw(&self, entity: &EntityName, reason: &str) -> bool {
        self.down(entity, reason);
        let (mut published, mut acknowledged) = (self.published.clone(), self.acknowledged.clone());
        let is_of = |instance: &&PublishedInstance| instance.service.entity.as_ref() == Some(entity);
        if !published.borrow().values().any(|instance| is_of(&instance)) {
            return false;
        }
        let known = async {
            let down = |instance: &PublishedInstance| matches!(instance.serving, CheckStatus::Failing { .. });
            let here = published.wait_for(|all| all.values().filter(is_of).all(down)).await;
            drop(here);
            let is_down = |all: &AcknowledgedRegistrations| {
                let mut all = all.iter().flat_map(|all| &all.instances);
                all.all(|instance| {
                    instance.entity.as_deref() != Some(entity.as_str())
                        || instance.status == registrations::CheckStatus::Failing
                })
            };
            drop(acknowledged.wait_for(|all| all.is_some() && is_down(all)).await);
        };
        if tokio::time::timeout(ACKNOWLEDGED, known).await.is_err() {
            tracing::debug!(%entity, "the control plane did not acknowledge the withdrawal of its instances in time");
        }
        true
    }

    fn set(&self, entity: &EntityName, phase: Option<ProcessPhase>) {
        self.phases.send_if_modified(|phases| {
            if phases.get(entity) == phase.as_ref() {
                return false;
            }
            match phase {
                Some(phase) => drop(phases.insert(entity.clone(), phase)),
                None => drop(phases.remove(entity)),
            }
            true
        });
    }
}
