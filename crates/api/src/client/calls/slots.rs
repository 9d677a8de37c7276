//! Calls about slots: list, configure, acquire, renew and release.

use std::time::Duration;

use http::Method;

use super::super::connection::{BEYOND_WAIT, Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::page::Page;
use crate::v1::slot::{
    AcquireSlot, ForceRelease, ReleaseSlot, RenewSlot, Slot, SlotGrant, SlotSpec, SlotView,
};

impl Client {
    /// Lists the slots that are held or were set; with `all`, also those that were held before.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn slots(&self, namespace: &str, all: bool) -> Result<Page<Slot>, CallError> {
        let path = fill(paths::SLOTS, &[namespace]);
        self.list(&format!("{path}?all={all}")).await
    }

    /// Reads one slot; with an index, waits up to `wait` for a change after it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn slot(
        &self,
        namespace: &str,
        name: &str,
        index: Option<u64>,
        wait: Duration,
    ) -> Result<SlotView, CallError> {
        let path = fill(paths::SLOT, &[namespace, name]);
        match index {
            None => self.get(&path, DEFAULT_DEADLINE).await,
            Some(index) => {
                let path = format!("{path}?index={index}&wait={}ms", wait.as_millis());
                self.get(&path, wait + BEYOND_WAIT).await
            }
        }
    }

    /// Acquires a slot, or renews the lease of its present holder, which makes it repeatable.
    ///
    /// # Errors
    /// [`CallError`]; [`Code::Refused`](crate::problem::Code::Refused) when no place is free.
    pub async fn acquire_slot(
        &self,
        namespace: &str,
        name: &str,
        acquire: &AcquireSlot,
    ) -> Result<SlotGrant, CallError> {
        let path = fill(paths::SLOT_ACQUIRE, &[namespace, name]);
        self.repeatable().send(Method::POST, &path, acquire, DEFAULT_DEADLINE).await
    }

    /// Renews the lease of one acquisition.
    ///
    /// # Errors
    /// [`CallError`]; [`Code::Refused`](crate::problem::Code::Refused) when that acquisition has ended.
    pub async fn renew_slot(
        &self,
        namespace: &str,
        name: &str,
        renew: &RenewSlot,
    ) -> Result<SlotGrant, CallError> {
        let path = fill(paths::SLOT_RENEW, &[namespace, name]);
        self.repeatable().send(Method::POST, &path, renew, DEFAULT_DEADLINE).await
    }

    /// Releases one acquisition. It succeeds also if the acquisition has already ended.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn release_slot(
        &self,
        namespace: &str,
        name: &str,
        back: &ReleaseSlot,
    ) -> Result<(), CallError> {
        let path = fill(paths::SLOT_RELEASE, &[namespace, name]);
        self.repeatable().send::<_, Nothing>(Method::POST, &path, back, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Deletes a slot that no one holds; its fencing numbers start again.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_slot(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::SLOT, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Sets the capacity and the lease of a slot.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_slot(&self, namespace: &str, name: &str, spec: &SlotSpec) -> Result<Slot, CallError> {
        self.send(Method::PUT, &fill(paths::SLOT, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Releases a slot on behalf of its holder.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn force_release_slot(
        &self,
        namespace: &str,
        name: &str,
        force: &ForceRelease,
    ) -> Result<(), CallError> {
        let path = fill(paths::SLOT_FORCE_RELEASE, &[namespace, name]);
        self.send::<_, Nothing>(Method::POST, &path, force, DEFAULT_DEADLINE).await.map(|_| ())
    }
}
