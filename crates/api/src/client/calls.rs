//! The calls: one typed function per route.

mod access;
mod apply;
mod authorities;
mod backup;
mod clusters;
mod ensembles;
mod entities;
mod filters;
mod freezes;
mod list;
mod namespaces;
pub(super) mod nodes;
mod pauses;
pub mod profiles;
mod reactions;
mod rollouts;
mod schedules;
mod secrets;
mod services;
mod sinks;
mod slots;
mod workflows;

use std::time::Duration;

use http::Method;

use super::connection::{BEYOND_WAIT, Client, DEFAULT_DEADLINE};
use super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::audit::AuditEntry;
use crate::v1::event::{Event, EventChain};
use crate::v1::node::Reason;
use crate::v1::overview::Overview;
use crate::v1::page::Page;
use crate::v1::server::{ControlPlane, ServerTime, SteppedDown};
use crate::v1::why::Why;

impl Client {
    /// Reads the server's clock, without authentication.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn time(&self, deadline: Duration) -> Result<ServerTime, CallError> {
        self.get(paths::TIME, deadline).await
    }

    /// Reads the state of the control plane: its servers and the leader.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn control_plane(&self) -> Result<ControlPlane, CallError> {
        self.get(paths::SERVERS, DEFAULT_DEADLINE).await
    }

    /// Has the server, which leads, hand the leadership over and stay a server.
    ///
    /// # Errors
    /// [`CallError`]: [`Code::Refused`](crate::problem::Code::Refused) if it does not lead or is the only one.
    pub async fn step_down(&self, reason: &str) -> Result<SteppedDown, CallError> {
        let reason = Reason { reason: reason.to_owned() };
        self.send(Method::POST, paths::STEP_DOWN, &reason, DEFAULT_DEADLINE).await
    }

    /// Reads the summary of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn overview(&self, namespace: &str) -> Result<Overview, CallError> {
        self.get(&fill(paths::STATUS, &[namespace]), DEFAULT_DEADLINE).await
    }

    /// Explains the state of an object; `subject` is `node/NAME`, `entity/NAME`, `service/NAME`,
    /// `target/ENTITY/NAME` or a name.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn why(&self, namespace: &str, subject: &str) -> Result<Why, CallError> {
        self.get(&fill(paths::WHY, &[namespace, subject]), DEFAULT_DEADLINE).await
    }

    /// Reads the events after `after`, oldest first, waiting up to `wait` for the first; without `after`, the
    /// newest `limit`. The filter of [`listing`](Self::listing) says which; with one, `next` is the last event that was read.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn events(
        &self,
        namespace: &str,
        after: Option<u64>,
        limit: u32,
        wait: Duration,
    ) -> Result<Page<Event>, CallError> {
        let after = after.map_or(String::new(), |after| format!("&after={after}"));
        let path = fill(paths::EVENTS, &[namespace]);
        let filter = self.list.filter.as_deref();
        let filter = filter.map_or(String::new(), |text| format!("&filter={}", paths::encode(text)));
        let path = format!("{path}?limit={limit}&wait={}ms{after}{filter}", wait.as_millis());
        self.get(&path, wait + BEYOND_WAIT).await
    }

    /// Reads an event with those that led to it and those that it led to.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn event_chain(&self, namespace: &str, number: u64) -> Result<EventChain, CallError> {
        let path = fill(paths::EVENT_CHAIN, &[namespace, &number.to_string()]);
        self.get(&path, DEFAULT_DEADLINE).await
    }

    /// Reads the entries of the answering server's audit log after `after`, oldest first, waiting up to `wait` for the first; without
    /// `after`, the newest `limit`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn audit(
        &self,
        filter: Option<&str>,
        after: Option<u64>,
        limit: u32,
        wait: Duration,
    ) -> Result<Page<AuditEntry>, CallError> {
        let after = after.map_or(String::new(), |after| format!("&after={after}"));
        let filter = filter.map_or(String::new(), |filter| format!("&filter={}", paths::encode(filter)));
        let path = format!("{}?limit={limit}&wait={}ms{after}{filter}", paths::AUDIT, wait.as_millis());
        self.get(&path, wait + BEYOND_WAIT).await
    }

    /// Checks that the server is ready.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn ready(&self) -> Result<(), CallError> {
        self.text(paths::READYZ, DEFAULT_DEADLINE).await.map(|_| ())
    }
}
