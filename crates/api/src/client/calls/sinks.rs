//! Calls about sinks of events.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::page::Page;
use crate::v1::sink::{EnableSink, ReplayEvents, Sink, SinkSpec, SinkTest};

impl Client {
    /// Lists the sinks of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn sinks(&self, namespace: &str) -> Result<Page<Sink>, CallError> {
        self.list(&fill(paths::SINKS, &[namespace])).await
    }

    /// Reads a sink.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn sink(&self, namespace: &str, name: &str) -> Result<Sink, CallError> {
        self.get(&fill(paths::SINK, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Creates a sink, or changes one.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_sink(&self, namespace: &str, name: &str, spec: &SinkSpec) -> Result<Sink, CallError> {
        self.send(Method::PUT, &fill(paths::SINK, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Deletes a sink.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_sink(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::SINK, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Enables a sink, or disables it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn enable_sink(
        &self,
        namespace: &str,
        name: &str,
        request: &EnableSink,
    ) -> Result<Sink, CallError> {
        let path = fill(paths::SINK_ENABLED, &[namespace, name]);
        self.send(Method::PUT, &path, request, DEFAULT_DEADLINE).await
    }

    /// Has a sink send events again.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn replay_sink(
        &self,
        namespace: &str,
        name: &str,
        request: &ReplayEvents,
    ) -> Result<Sink, CallError> {
        let path = fill(paths::SINK_REPLAY, &[namespace, name]);
        self.send(Method::POST, &path, request, DEFAULT_DEADLINE).await
    }

    /// Sends a test event to the receiver of a sink.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn test_sink(&self, namespace: &str, name: &str) -> Result<SinkTest, CallError> {
        let path = fill(paths::SINK_TEST, &[namespace, name]);
        // The server itself waits for the receiver.
        let deadline = DEFAULT_DEADLINE + bellwether_core::records::sink::MAX_TIMEOUT.to_duration();
        self.send(Method::POST, &path, &serde_json::json!({}), deadline).await
    }
}
