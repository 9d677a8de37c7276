//! Calls about pauses of the nodes that match a selector.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::page::Page;
use crate::v1::pause::{PauseSpec, PauseView};

impl Client {
    /// Lists all pauses of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn pauses(&self, namespace: &str) -> Result<Page<PauseView>, CallError> {
        self.list(&fill(paths::PAUSES, &[namespace])).await
    }

    /// Reads one pause.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn pause(&self, namespace: &str, name: &str) -> Result<PauseView, CallError> {
        self.get(&fill(paths::PAUSE, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Creates or replaces a pause.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_pause(
        &self,
        namespace: &str,
        name: &str,
        spec: &PauseSpec,
    ) -> Result<PauseView, CallError> {
        self.send(Method::PUT, &fill(paths::PAUSE, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Deletes a pause.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_pause(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::PAUSE, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
