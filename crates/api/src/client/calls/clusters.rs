//! Calls about clusters.

use std::time::Duration;

use http::Method;

use super::super::connection::{BEYOND_WAIT, Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use super::super::list_options::ListOptions;
use crate::paths::{self, encode, fill};
use crate::v1::cluster::discovery::AcceptMembers;
use crate::v1::cluster::past_view::PastClusterView;
use crate::v1::cluster::view::ClusterView;
use crate::v1::cluster::work::{ClusterWait, NewClusterRun};
use crate::v1::cluster::{Cluster, ClusterMember, ClusterSpec};
use crate::v1::page::Page;
use crate::v1::run::Run;

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

    /// Reads the data stores of a cluster, put together.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn cluster_view(&self, namespace: &str, name: &str) -> Result<ClusterView, CallError> {
        self.get(&fill(paths::CLUSTER_VIEW, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Reads the data stores of a cluster as they were after an event.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn past_cluster_view(
        &self,
        namespace: &str,
        name: &str,
        event: u64,
    ) -> Result<PastClusterView, CallError> {
        let path = fill(paths::CLUSTER_VIEW_AT, &[namespace, name, &event.to_string()]);
        self.get(&path, DEFAULT_DEADLINE).await
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

    /// Has the members leave that the list of a cluster does not have any more.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn accept_members(
        &self,
        namespace: &str,
        name: &str,
        accept: &AcceptMembers,
    ) -> Result<Cluster, CallError> {
        let path = fill(paths::CLUSTER_MEMBERS_ACCEPTED, &[namespace, name]);
        self.send(Method::POST, &path, accept, DEFAULT_DEADLINE).await
    }

    /// Runs a workflow on members of a cluster, or on its manager.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn start_cluster_run(
        &self,
        namespace: &str,
        name: &str,
        run: &NewClusterRun,
    ) -> Result<Run, CallError> {
        self.send(Method::POST, &fill(paths::CLUSTER_RUNS, &[namespace, name]), run, DEFAULT_DEADLINE).await
    }

    /// Waits at most this long until the workflows of the members that a filter matches are complete.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn cluster_wait(
        &self,
        (namespace, name): (&str, &str),
        on: Option<&str>,
        fail_on_failure: bool,
        wait: Duration,
    ) -> Result<ClusterWait, CallError> {
        let on = on.map(|on| format!("&on={}", encode(on))).unwrap_or_default();
        let path = fill(paths::CLUSTER_WAIT, &[namespace, name]);
        let path = format!("{path}?wait={}ms&fail_on_failure={fail_on_failure}{on}", wait.as_millis());
        self.get(&path, wait + BEYOND_WAIT).await
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
