//! Calls about entities.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::entity::patch::{EntityPatch, EntityWarning, PatchedEntity};
use crate::v1::entity::{Entity, EntitySpec};
use crate::v1::external::{ExpectedVersions, TargetReports};
use crate::v1::page::Page;

impl Client {
    /// Lists all entities.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn entities(&self, namespace: &str) -> Result<Page<Entity>, CallError> {
        self.list(&fill(paths::ENTITIES, &[namespace])).await
    }

    /// Reads one entity.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn entity(&self, namespace: &str, name: &str) -> Result<Entity, CallError> {
        self.get(&fill(paths::ENTITY, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Creates an entity, or replaces the selector and the policy of an existing one.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_entity(
        &self,
        namespace: &str,
        name: &str,
        spec: &EntitySpec,
    ) -> Result<EntityWarning, CallError> {
        let path = fill(paths::ENTITY, &[namespace, name]);
        self.send(Method::PUT, &path, spec, DEFAULT_DEADLINE).await
    }

    /// Changes single fields of an entity; creates it if its targets are named.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn patch_entity(
        &self,
        namespace: &str,
        name: &str,
        patch: &EntityPatch,
    ) -> Result<PatchedEntity, CallError> {
        self.send(Method::PATCH, &fill(paths::ENTITY, &[namespace, name]), patch, DEFAULT_DEADLINE).await
    }

    /// Changes single fields of an entity if it is at this revision. Otherwise nothing changes, and the problem has the code
    /// `conflict`.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn patch_entity_at(
        &self,
        namespace: &str,
        name: &str,
        patch: &EntityPatch,
        revision: u64,
    ) -> Result<PatchedEntity, CallError> {
        let path = fill(paths::ENTITY, &[namespace, name]);
        self.only_at(revision).send(Method::PATCH, &path, patch, DEFAULT_DEADLINE).await
    }

    /// Reports external targets and returns the version that each is assigned.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn orchestrate(
        &self,
        namespace: &str,
        entity: &str,
        reports: &TargetReports,
    ) -> Result<ExpectedVersions, CallError> {
        self.send(Method::POST, &fill(paths::ORCHESTRATE, &[namespace, entity]), reports, DEFAULT_DEADLINE)
            .await
    }

    /// Reports external targets without reading their assignments.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn report_targets(
        &self,
        namespace: &str,
        entity: &str,
        reports: &TargetReports,
    ) -> Result<(), CallError> {
        let path = fill(paths::REPORTS, &[namespace, entity]);
        self.send::<_, Nothing>(Method::POST, &path, reports, DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Deletes an entity and its history.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_entity(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::ENTITY, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
