//! Calls about freezes of one namespace or, without a namespace, of all.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::freeze::{FreezeSpec, FreezeView};
use crate::v1::page::Page;

fn one(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => fill(paths::FREEZE, &[namespace, name]),
        None => fill(paths::GLOBAL_FREEZE, &[name]),
    }
}

impl Client {
    /// Lists the freezes of a namespace and those of all namespaces; without a namespace, only the latter.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn freezes(&self, namespace: Option<&str>) -> Result<Page<FreezeView>, CallError> {
        let path = match namespace {
            Some(namespace) => fill(paths::FREEZES, &[namespace]),
            None => paths::GLOBAL_FREEZES.to_owned(),
        };
        self.list(&path).await
    }

    /// Reads one freeze.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn freeze(&self, namespace: Option<&str>, name: &str) -> Result<FreezeView, CallError> {
        self.get(&one(namespace, name), DEFAULT_DEADLINE).await
    }

    /// Creates or replaces a freeze.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_freeze(
        &self,
        namespace: Option<&str>,
        name: &str,
        spec: &FreezeSpec,
    ) -> Result<FreezeView, CallError> {
        self.send(Method::PUT, &one(namespace, name), spec, DEFAULT_DEADLINE).await
    }

    /// Deletes a freeze.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_freeze(&self, namespace: Option<&str>, name: &str) -> Result<(), CallError> {
        self.send::<_, Nothing>(Method::DELETE, &one(namespace, name), &(), DEFAULT_DEADLINE)
            .await
            .map(|_| ())
    }
}
