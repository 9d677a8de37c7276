//! Calls about services.

use std::time::Duration;

use http::Method;

use super::super::connection::{BEYOND_WAIT, Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::page::Page;
use crate::v1::service::{ServiceSummary, ServiceView};

impl Client {
    /// Lists services.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn services(&self, namespace: &str) -> Result<Page<ServiceSummary>, CallError> {
        self.list(&fill(paths::SERVICES, &[namespace])).await
    }

    /// Reads one service. With an index, waits up to `wait` for a change of the catalogue after it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn service(
        &self,
        namespace: &str,
        name: &str,
        index: Option<u64>,
        wait: Duration,
    ) -> Result<ServiceView, CallError> {
        let path = fill(paths::SERVICE, &[namespace, name]);
        match index {
            None => self.get(&path, DEFAULT_DEADLINE).await,
            Some(index) => {
                let path = format!("{path}?index={index}&wait={}ms", wait.as_millis());
                self.get(&path, wait + BEYOND_WAIT).await
            }
        }
    }

    /// Forgets a service that has no instances.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn forget_service(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::SERVICE, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
