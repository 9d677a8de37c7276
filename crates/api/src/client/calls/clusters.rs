//! Calls about clusters.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use super::super::list_options::ListOptions;
use crate::paths::{self, fill};
use crate::v1::cluster::{Cluster, ClusterMember, ClusterSpec};
use crate::v1::page::Page;

impl Client {
    /// Lists the clusters of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn clusters(&self, namespace: &str) -> Result<Page<Cluster>, CallError> {
        self.list(&fill(paths::CLUSTERS, &[namespace])).await
    }

    /// Reads a cluster.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn cluster(&self, namespace: &str, name: &str) -> Result<Cluster, CallError> {
        self.get(&fill(paths::CLUSTER, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Lists the members of a cluster, those with a role if one is given.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn cluster_members(
        &self,
        namespace: &str,
        name: &str,
        role: Option<&str>,
    ) -> Result<Page<ClusterMember>, CallError> {
        let filter = role.map(|role| format!("role = {role}"));
        let options = ListOptions { filter, ..ListOptions::default() };
        self.listing(options).list(&fill(paths::CLUSTER_MEMBERS, &[namespace, name])).await
    }

    /// Creates a cluster, or changes one.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_cluster(
        &self,
        namespace: &str,
        name: &str,
        spec: &ClusterSpec,
    ) -> Result<Cluster, CallError> {
        self.send(Method::PUT, &fill(paths::CLUSTER, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Deletes a cluster.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_cluster(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::CLUSTER, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
