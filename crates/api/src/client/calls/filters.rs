//! Calls about saved filters.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::filter::{Filter, FilterSpec};
use crate::v1::page::Page;

impl Client {
    /// Lists the saved filters of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn filters(&self, namespace: &str) -> Result<Page<Filter>, CallError> {
        self.list(&fill(paths::FILTERS, &[namespace])).await
    }

    /// Reads a saved filter.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn filter(&self, namespace: &str, name: &str) -> Result<Filter, CallError> {
        self.get(&fill(paths::FILTER, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Saves a filter, or changes a saved one.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_filter(
        &self,
        namespace: &str,
        name: &str,
        spec: &FilterSpec,
    ) -> Result<Filter, CallError> {
        self.send(Method::PUT, &fill(paths::FILTER, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Deletes a saved filter.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_filter(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::FILTER, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
