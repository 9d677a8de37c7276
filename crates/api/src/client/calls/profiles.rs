//! Calls about profiles and their revisions.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::media;
use crate::paths::{self, encode, fill};
use crate::v1::page::Page;
use crate::v1::profile::{Profile, ProfilePatch, ProfileRevision, ProfileSpec};

/// A change of an object, as standards describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonChange {
    /// The operations of a JSON Patch (RFC 6902).
    Patch(serde_json::Value),
    /// A JSON Merge Patch (RFC 7396).
    Merge(serde_json::Value),
}

impl Client {
    /// Lists all profiles.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn profiles(&self, namespace: &str) -> Result<Page<Profile>, CallError> {
        self.get(&fill(paths::PROFILES, &[namespace]), DEFAULT_DEADLINE).await
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
        patch: &ProfilePatch,
    ) -> Result<ProfileRevision, CallError> {
        let path = fill(paths::PROFILE, &[namespace, name]);
        self.send(Method::PATCH, &path, patch, DEFAULT_DEADLINE).await
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
        let mut path = fill(paths::PROFILE, &[namespace, name]);
        if !reason.is_empty() {
            path = format!("{path}?reason={}", encode(reason));
        }
        let (media, document) = match change {
            JsonChange::Patch(patch) => (media::JSON_PATCH, patch),
            JsonChange::Merge(change) => (media::MERGE_PATCH, change),
        };
        self.of_media(media).send(Method::PATCH, &path, document, DEFAULT_DEADLINE).await
    }

    /// Replaces all params; returns the newest revision.
    ///
    /// # Errors
    /// [`CallError`], with code `conflict` when the newest revision is not the one in the request.
    pub async fn set_profile(
        &self,
        namespace: &str,
        name: &str,
        spec: &ProfileSpec,
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
