//! Freezes: of one namespace, or, without one, of all.

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
    /// All freezes of a namespace, and those that hold in every one; these alone without a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn freezes(&self, namespace: Option<&str>) -> Result<Page<FreezeView>, CallError> {
        let path = match namespace {
            Some(namespace) => fill(paths::FREEZES, &[namespace]),
            None => paths::GLOBAL_FREEZES.to_owned(),
        };
        self.get(&path, DEFAULT_DEADLINE).await
    }

    /// One freeze.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn freeze(&self, namespace: Option<&str>, name: &str) -> Result<FreezeView, CallError> {
        self.get(&one(namespace, name), DEFAULT_DEADLINE).await
    }

    /// Sets a freeze, in place of any of its name.
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

    /// Ends a freeze.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_freeze(&self, namespace: Option<&str>, name: &str) -> Result<(), CallError> {
        self.send::<_, Nothing>(Method::DELETE, &one(namespace, name), &(), DEFAULT_DEADLINE)
            .await
            .map(|_| ())
    }
}
