//! Slots: who holds which, how many may, and taking one from its holder.

use http::Method;

use super::super::{CallError, Client, DEFAULT_DEADLINE};
use super::Nothing;
use crate::paths::{self, fill};
use crate::v1::page::Page;
use crate::v1::slot::{Force, Slot, SlotSpec};

impl Client {
    /// Slots that somebody holds, and those of which something was said.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn slots(&self, namespace: &str) -> Result<Page<Slot>, CallError> {
        self.get(&fill(paths::SLOTS, &[namespace]), DEFAULT_DEADLINE).await
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
    pub async fn release_slot(&self, namespace: &str, name: &str, force: &Force) -> Result<(), CallError> {
        let path = fill(paths::SLOT_RELEASE, &[namespace, name]);
        self.send::<_, Nothing>(Method::POST, &path, force, DEFAULT_DEADLINE).await.map(|_| ())
    }
}
