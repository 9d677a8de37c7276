//! Calls about profiles and their revisions, and about the params of nodes.

use http::Method;
use serde::de::DeserializeOwned;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::media;
use crate::paths::{self, encode, fill};
use crate::v1::node_params::{ExplainedParam, NodeParams, NodeProfiles};
use crate::v1::page::Page;
use crate::v1::param::{Param, ParamSpec};
use crate::v1::profile::{ParamsPatch, ParamsSpec, Profile, ProfileLive, ProfileRevision};

/// A change of an object, as standards describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonChange {
    /// The operations of a JSON Patch (RFC 6902).
    Patch(serde_json::Value),
    /// A JSON Merge Patch (RFC 7396).
    Merge(serde_json::Value),
}

impl Client {
    /// Lists the declared params of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn params(&self, namespace: &str) -> Result<Page<Param>, CallError> {
        self.list(&fill(paths::PARAMS, &[namespace])).await
    }

    /// Reads a declared param.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn param(&self, namespace: &str, key: &str) -> Result<Param, CallError> {
        self.get(&fill(paths::PARAM, &[namespace, key]), DEFAULT_DEADLINE).await
    }

    /// Declares a param, or changes its declaration.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn declare_param(
        &self,
        namespace: &str,
        key: &str,
        spec: &ParamSpec,
    ) -> Result<Param, CallError> {
        self.send(Method::PUT, &fill(paths::PARAM, &[namespace, key]), spec, DEFAULT_DEADLINE).await
    }

    /// Deletes the declaration of a param.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn undeclare_param(&self, namespace: &str, key: &str) -> Result<(), CallError> {
        let path = fill(paths::PARAM, &[namespace, key]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Lists all profiles.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn profiles(&self, namespace: &str) -> Result<Page<Profile>, CallError> {
        self.list(&fill(paths::PROFILES, &[namespace])).await
    }

    /// Reads a profile's newest revision.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn profile(&self, namespace: &str, name: &str) -> Result<ProfileRevision, CallError> {
        self.get(&fill(paths::PROFILE, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Lists a profile's revisions, newest first.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn profile_revisions(
        &self,
        namespace: &str,
        profile: &str,
    ) -> Result<Page<ProfileRevision>, CallError> {
        self.get(&fill(paths::PROFILE_REVISIONS, &[namespace, profile]), DEFAULT_DEADLINE).await
    }

    /// Reads one revision of a profile. A node can read the profiles that it was assigned.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn profile_revision(
        &self,
        namespace: &str,
        profile: &str,
        number: u64,
    ) -> Result<ProfileRevision, CallError> {
        let path = fill(paths::PROFILE_REVISION, &[namespace, profile, &number.to_string()]);
        self.get(&path, DEFAULT_DEADLINE).await
    }

    /// Changes some params; returns the newest revision.
    ///
    /// # Errors
    /// [`CallError`], with code `conflict` when the newest revision is not the one in the request.
    pub async fn patch_profile(
        &self,
        namespace: &str,
        name: &str,
        patch: &ParamsPatch,
    ) -> Result<ProfileRevision, CallError> {
        let path = fill(paths::PROFILE, &[namespace, name]);
        self.send(Method::PATCH, &path, patch, DEFAULT_DEADLINE).await
    }

    /// Makes a profile live, or no longer live.
    ///
    /// # Errors
    /// [`CallError`], with code `refused` for a profile that an entity uses.
    pub async fn set_profile_live(
        &self,
        namespace: &str,
        name: &str,
        spec: &ProfileLive,
    ) -> Result<Profile, CallError> {
        self.send(Method::PUT, &fill(paths::PROFILE_LIVE, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Changes the params as a JSON Patch or JSON Merge Patch of all of them describes it; returns the newest revision.
    ///
    /// # Errors
    /// [`CallError`], with code `conflict` when a `test` fails.
    pub async fn change_profile(
        &self,
        namespace: &str,
        name: &str,
        change: &JsonChange,
        reason: &str,
    ) -> Result<ProfileRevision, CallError> {
        self.change_json(&fill(paths::PROFILE, &[namespace, name]), change, reason).await
    }

    async fn change_json<T: DeserializeOwned>(
        &self,
        path: &str,
        change: &JsonChange,
        reason: &str,
    ) -> Result<T, CallError> {
        let query = if reason.is_empty() { String::new() } else { format!("?reason={}", encode(reason)) };
        let (media, document) = match change {
            JsonChange::Patch(patch) => (media::JSON_PATCH, patch),
            JsonChange::Merge(change) => (media::MERGE_PATCH, change),
        };
        self.of_media(media).send(Method::PATCH, &format!("{path}{query}"), document, DEFAULT_DEADLINE).await
    }

    /// Reads the params of a node, and the profiles that it reads.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn node_params(&self, namespace: &str, node: &str) -> Result<NodeParams, CallError> {
        self.get(&fill(paths::NODE_PARAMS, &[namespace, node]), DEFAULT_DEADLINE).await
    }

    /// Changes some params of a node; returns what it has then.
    ///
    /// # Errors
    /// [`CallError`], with code `conflict` when they are not as the request expects.
    pub async fn patch_node_params(
        &self,
        namespace: &str,
        node: &str,
        patch: &ParamsPatch,
    ) -> Result<NodeParams, CallError> {
        self.send(Method::PATCH, &fill(paths::NODE_PARAMS, &[namespace, node]), patch, DEFAULT_DEADLINE).await
    }

    /// Changes the params of a node as a JSON Patch or JSON Merge Patch of all of them describes it; returns what it has then.
    ///
    /// # Errors
    /// [`CallError`], with code `conflict` when a `test` fails.
    pub async fn change_node_params(
        &self,
        namespace: &str,
        node: &str,
        change: &JsonChange,
        reason: &str,
    ) -> Result<NodeParams, CallError> {
        self.change_json(&fill(paths::NODE_PARAMS, &[namespace, node]), change, reason).await
    }

    /// Replaces the profiles that a node reads.
    ///
    /// # Errors
    /// [`CallError`], with code `conflict` when the revision is not the one in the request.
    pub async fn set_node_profiles(
        &self,
        namespace: &str,
        node: &str,
        profiles: &NodeProfiles,
    ) -> Result<NodeParams, CallError> {
        let path = fill(paths::NODE_PROFILES, &[namespace, node]);
        self.send(Method::PUT, &path, profiles, DEFAULT_DEADLINE).await
    }

    /// Explains where every param of a node comes from, or one of them; with an entity, as its files have them.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn explain_params(
        &self,
        namespace: &str,
        node: &str,
        key: Option<&str>,
        entity: Option<&str>,
    ) -> Result<Page<ExplainedParam>, CallError> {
        let path = fill(paths::NODE_PARAMS_EXPLAINED, &[namespace, node]);
        let given = [("key", key), ("entity", entity)].into_iter();
        let query: Vec<String> =
            given.filter_map(|(name, value)| Some(format!("{name}={}", encode(value?)))).collect();
        self.get(&format!("{path}?{}", query.join("&")), DEFAULT_DEADLINE).await
    }

    /// Replaces all params; returns the newest revision.
    ///
    /// # Errors
    /// [`CallError`], with code `conflict` when the newest revision is not the one in the request.
    pub async fn set_profile(
        &self,
        namespace: &str,
        name: &str,
        spec: &ParamsSpec,
    ) -> Result<ProfileRevision, CallError> {
        let path = fill(paths::PROFILE, &[namespace, name]);
        self.send(Method::PUT, &path, spec, DEFAULT_DEADLINE).await
    }

    /// Deletes a profile and its revisions.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_profile(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::PROFILE, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
