//! Calls about rollouts and targets.

use std::time::Duration;

use http::Method;

use super::super::connection::{BEYOND_WAIT, Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, encode, fill};
use crate::v1::page::Page;
use crate::v1::plan::{NewPlan, Plan};
use crate::v1::rollout::{NewRollout, Rollout, RolloutOperation, RolloutView, StartedRollout};
use crate::v1::target::TargetView;

/// Deadline of a plan: three simulations of a million targets on a busy machine.
const PLAN_DEADLINE: Duration = Duration::from_secs(180);

impl Client {
    /// Requests a rollout.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn start_rollout(
        &self,
        namespace: &str,
        entity: &str,
        new: &NewRollout,
    ) -> Result<StartedRollout, CallError> {
        let path = fill(paths::ROLLOUTS, &[namespace, entity]);
        self.send(Method::POST, &path, new, DEFAULT_DEADLINE).await
    }

    /// Simulates a rollout. The server takes seconds for a million targets.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn plan_rollout(
        &self,
        namespace: &str,
        entity: &str,
        new: &NewPlan,
    ) -> Result<Plan, CallError> {
        let path = fill(paths::PLAN, &[namespace, entity]);
        self.send(Method::POST, &path, new, PLAN_DEADLINE).await
    }

    /// Operates on the current rollout: `verb` is `pause`, `resume`, `approve`, `abort`, `undo` or `retry`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn act_on_rollout(
        &self,
        namespace: &str,
        entity: &str,
        verb: &str,
        act: &RolloutOperation,
    ) -> Result<(), CallError> {
        let path = fill(paths::ROLLOUT_OPERATION, &[namespace, entity, verb]);
        self.send::<_, Nothing>(Method::POST, &path, act, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Reads the rollout in progress, or the last one. With an `index`, waits up to `wait` for a change after
    /// it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn current_rollout(
        &self,
        namespace: &str,
        entity: &str,
        index: Option<u64>,
        wait: Duration,
    ) -> Result<RolloutView, CallError> {
        let path = fill(paths::ROLLOUT_CURRENT, &[namespace, entity]);
        match index {
            None => self.get(&path, DEFAULT_DEADLINE).await,
            Some(index) => {
                let path = format!("{path}?index={index}&wait={}ms", wait.as_millis());
                self.get(&path, wait + BEYOND_WAIT).await
            }
        }
    }

    /// Reads one rollout of an entity's history.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn rollout(&self, namespace: &str, entity: &str, number: u64) -> Result<Rollout, CallError> {
        self.get(&fill(paths::ROLLOUT, &[namespace, entity, &number.to_string()]), DEFAULT_DEADLINE).await
    }

    /// Lists an entity's rollouts, newest first.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn rollouts(&self, namespace: &str, entity: &str) -> Result<Page<Rollout>, CallError> {
        self.get(&fill(paths::ROLLOUTS, &[namespace, entity]), DEFAULT_DEADLINE).await
    }

    /// Reads one page of an entity's targets, after a name; with a group, only of that group ("" for targets
    /// outside any group).
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn targets(
        &self,
        namespace: &str,
        entity: &str,
        after: Option<&str>,
        group: Option<&str>,
    ) -> Result<Page<TargetView>, CallError> {
        let path = fill(paths::TARGETS, &[namespace, entity]);
        let asked = [("after", after), ("group", group)];
        let asked = asked.iter().filter_map(|(name, value)| Some(format!("{name}={}", encode((*value)?))));
        let query = asked.collect::<Vec<_>>().join("&");
        self.get(&format!("{path}?{query}"), DEFAULT_DEADLINE).await
    }
}
