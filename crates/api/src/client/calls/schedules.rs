//! Calls about schedules.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::page::Page;
use crate::v1::schedule::{Schedule, ScheduleSpec};

impl Client {
    /// Lists the schedules of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn schedules(&self, namespace: &str) -> Result<Page<Schedule>, CallError> {
        self.list(&fill(paths::SCHEDULES, &[namespace])).await
    }

    /// Reads a schedule.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn schedule(&self, namespace: &str, name: &str) -> Result<Schedule, CallError> {
        self.get(&fill(paths::SCHEDULE, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Creates a schedule, or changes one.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_schedule(
        &self,
        namespace: &str,
        name: &str,
        spec: &ScheduleSpec,
    ) -> Result<Schedule, CallError> {
        self.send(Method::PUT, &fill(paths::SCHEDULE, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Deletes a schedule.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_schedule(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::SCHEDULE, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
