//! Slots: who holds which, how many may, taking one, giving it back, and taking one from its holder.

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
    /// Slots that somebody holds, and those of which something was said; with `all`, those that once were held too.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn slots(&self, namespace: &str, all: bool) -> Result<Page<Slot>, CallError> {
        let path = fill(paths::SLOTS, &[namespace]);
        self.get(&format!("{path}?all={all}"), DEFAULT_DEADLINE).await
    }

    /// One slot; with an index, once it is no longer what it was then, or after `wait`.
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

    /// Takes a slot, or holds it longer.
    ///
    /// # Errors
    /// [`CallError`]; [`Code::Refused`](crate::problem::Code::Refused) when it cannot be had now.
    pub async fn acquire_slot(
        &self,
        namespace: &str,
        name: &str,
        acquire: &AcquireSlot,
    ) -> Result<SlotGrant, CallError> {
        let path = fill(paths::SLOT_ACQUIRE, &[namespace, name]);
        self.send(Method::POST, &path, acquire, DEFAULT_DEADLINE).await
    }

    /// Holds a slot longer, as that very holding.
    ///
    /// # Errors
    /// [`CallError`]; [`Code::Refused`](crate::problem::Code::Refused) when that holding is over.
    pub async fn renew_slot(
        &self,
        namespace: &str,
        name: &str,
        renew: &RenewSlot,
    ) -> Result<SlotGrant, CallError> {
        let path = fill(paths::SLOT_RENEW, &[namespace, name]);
        self.send(Method::POST, &path, renew, DEFAULT_DEADLINE).await
    }

    /// Gives a slot back, that very holding. Done is done, also when it was over.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn give_back_slot(
        &self,
        namespace: &str,
        name: &str,
        back: &ReleaseSlot,
    ) -> Result<(), CallError> {
        let path = fill(paths::SLOT_RELEASE, &[namespace, name]);
        self.send::<_, Nothing>(Method::POST, &path, back, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Forgets a slot that nobody holds; its numbers begin anew.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_slot(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::SLOT, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Sets how many may hold a slot, and for how long.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_slot(&self, namespace: &str, name: &str, spec: &SlotSpec) -> Result<Slot, CallError> {
        self.send(Method::PUT, &fill(paths::SLOT, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Takes a slot from its holder.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn release_slot(
        &self,
        namespace: &str,
        name: &str,
        force: &ForceRelease,
    ) -> Result<(), CallError> {
        let path = fill(paths::SLOT_FORCE_RELEASE, &[namespace, name]);
        self.send::<_, Nothing>(Method::POST, &path, force, DEFAULT_DEADLINE).await.map(|_| ())
    }
}
