//! Calls about the certificate authorities.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE};
use super::super::error::CallError;
use crate::paths;
use crate::v1::authorities::{Authorities, ChangeAuthorities, TrustBundle};

impl Client {
    /// Reads the authorities, and what is behind.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn authorities(&self) -> Result<Authorities, CallError> {
        self.get(paths::AUTHORITIES, DEFAULT_DEADLINE).await
    }

    /// Reads what clients trust.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn trust_bundle(&self) -> Result<TrustBundle, CallError> {
        self.get(paths::TRUST_BUNDLE, DEFAULT_DEADLINE).await
    }

    /// Makes the next authority.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn rotate_authority(&self, change: &ChangeAuthorities) -> Result<Authorities, CallError> {
        self.send(Method::POST, paths::ROTATE_AUTHORITY, change, DEFAULT_DEADLINE).await
    }

    /// Brings the next authority into use.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn activate_authority(&self, change: &ChangeAuthorities) -> Result<Authorities, CallError> {
        self.send(Method::POST, paths::ACTIVATE_AUTHORITY, change, DEFAULT_DEADLINE).await
    }

    /// Ends the trust in the previous authority.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn retire_authority(&self, change: &ChangeAuthorities) -> Result<Authorities, CallError> {
        self.send(Method::POST, paths::RETIRE_AUTHORITY, change, DEFAULT_DEADLINE).await
    }

    /// Drops the next authority.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn cancel_authority(&self, change: &ChangeAuthorities) -> Result<Authorities, CallError> {
        self.send(Method::POST, paths::CANCEL_AUTHORITY, change, DEFAULT_DEADLINE).await
    }
}
