//! Calls that apply documents and read objects as documents.

use std::time::Duration;

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::apply::{Applied, ApplyRequest, Document};
use crate::v1::page::Page;

/// Deadline of an apply: that of the server for a large body, and time for its transactions.
const APPLY_DEADLINE: Duration = Duration::from_secs(60);

impl Client {
    /// Applies documents; with `dry_run`, returns what would change.
    ///
    /// # Errors
    /// [`CallError`]; nothing was changed then, unless the problem says so.
    pub async fn apply(&self, namespace: &str, request: &ApplyRequest) -> Result<Applied, CallError> {
        self.send(Method::POST, &fill(paths::APPLY, &[namespace]), request, APPLY_DEADLINE).await
    }

    /// Lists every object of a namespace that can be applied, and the freezes of all namespaces, as
    /// documents.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn documents(&self, namespace: &str) -> Result<Page<Document>, CallError> {
        self.get(&fill(paths::DOCUMENTS, &[namespace]), DEFAULT_DEADLINE).await
    }
}
