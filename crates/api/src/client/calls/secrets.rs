//! Calls about secrets.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::page::Page;
use crate::v1::secret::{NodeSecrets, RevealedSecret, Secret, SecretKeys, SecretSpec};

impl Client {
    /// Lists the secrets of a namespace, without their values.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn secrets(&self, namespace: &str) -> Result<Page<Secret>, CallError> {
        self.list(&fill(paths::SECRETS, &[namespace])).await
    }

    /// Reads a secret, without its value.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn secret(&self, namespace: &str, name: &str) -> Result<Secret, CallError> {
        self.get(&fill(paths::SECRET, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Sets a secret.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_secret(
        &self,
        namespace: &str,
        name: &str,
        spec: &SecretSpec,
    ) -> Result<Secret, CallError> {
        self.send(Method::PUT, &fill(paths::SECRET, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Deletes a secret.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_secret(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::SECRET, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Reads the value of a secret.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn reveal_secret(&self, namespace: &str, name: &str) -> Result<RevealedSecret, CallError> {
        self.get(&fill(paths::REVEALED_SECRET, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Reads the secret value of a param of a profile.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn reveal_of_profile(
        &self,
        namespace: &str,
        profile: &str,
        key: &str,
    ) -> Result<RevealedSecret, CallError> {
        self.get(&fill(paths::REVEALED_PROFILE_PARAM, &[namespace, profile, key]), DEFAULT_DEADLINE).await
    }

    /// Reads the secret value of a param of a node's own.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn reveal_of_node(
        &self,
        namespace: &str,
        node: &str,
        key: &str,
    ) -> Result<RevealedSecret, CallError> {
        self.get(&fill(paths::REVEALED_NODE_PARAM, &[namespace, node, key]), DEFAULT_DEADLINE).await
    }

    /// Reads the secrets that a node may read, as that node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn node_secrets(&self, namespace: &str, node: &str) -> Result<NodeSecrets, CallError> {
        self.get(&fill(paths::NODE_SECRETS, &[namespace, node]), DEFAULT_DEADLINE).await
    }

    /// Reads the keys that secrets are encrypted with.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn secret_keys(&self) -> Result<SecretKeys, CallError> {
        self.get(paths::SECRET_KEYS, DEFAULT_DEADLINE).await
    }
}
