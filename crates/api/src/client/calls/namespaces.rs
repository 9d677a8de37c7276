//! Calls about namespaces.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::namespace::NamespaceView;
use crate::v1::page::Page;

impl Client {
    /// Lists all namespaces.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn namespaces(&self) -> Result<Page<NamespaceView>, CallError> {
        self.list(paths::NAMESPACES).await
    }

    /// Deletes an empty namespace and its events.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_namespace(&self, namespace: &str) -> Result<(), CallError> {
        let path = fill(paths::NAMESPACE, &[namespace]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
