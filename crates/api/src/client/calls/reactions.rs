//! Calls about reactions.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::page::Page;
use crate::v1::reaction::test::{ReactionTest, TestReaction};
use crate::v1::reaction::{Reaction, ReactionSpec};

impl Client {
    /// Lists the reactions of a namespace.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn reactions(&self, namespace: &str) -> Result<Page<Reaction>, CallError> {
        self.list(&fill(paths::REACTIONS, &[namespace])).await
    }

    /// Reads a reaction.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn reaction(&self, namespace: &str, name: &str) -> Result<Reaction, CallError> {
        self.get(&fill(paths::REACTION, &[namespace, name]), DEFAULT_DEADLINE).await
    }

    /// Creates a reaction, or changes one.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn set_reaction(
        &self,
        namespace: &str,
        name: &str,
        spec: &ReactionSpec,
    ) -> Result<Reaction, CallError> {
        self.send(Method::PUT, &fill(paths::REACTION, &[namespace, name]), spec, DEFAULT_DEADLINE).await
    }

    /// Deletes a reaction.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_reaction(&self, namespace: &str, name: &str) -> Result<(), CallError> {
        let path = fill(paths::REACTION, &[namespace, name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Asks what a reaction would do about a condition.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn test_reaction(
        &self,
        namespace: &str,
        name: &str,
        asked: &TestReaction,
    ) -> Result<ReactionTest, CallError> {
        let path = fill(paths::REACTION_TEST, &[namespace, name]);
        self.send(Method::POST, &path, asked, DEFAULT_DEADLINE).await
    }
}
