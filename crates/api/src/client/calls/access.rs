//! Calls about tokens, joining and the caller's identity.

use http::Method;

use super::super::connection::{Client, DEFAULT_DEADLINE, Nothing};
use super::super::error::CallError;
use crate::paths::{self, fill};
use crate::v1::access::{
    Join, JoinTokenInfo, Joined, NewJoinToken, NewToken, Renew, Secret, TokenInfo, WhoAmI,
};
use crate::v1::page::Page;
use crate::v1::role::{AccessReview, NewAccessReview, Role, RoleSpec};
use crate::v1::server_join::{JoinServer, JoinedServer, NewServerToken};

impl Client {
    /// Joins a machine as a node.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn join(&self, request: &Join) -> Result<Joined, CallError> {
        self.send(Method::POST, paths::JOIN, request, DEFAULT_DEADLINE).await
    }

    /// Creates a join token for a server.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn create_server_token(&self, request: &NewServerToken) -> Result<Secret, CallError> {
        self.send(Method::POST, paths::SERVER_TOKENS, request, DEFAULT_DEADLINE).await
    }

    /// Joins a machine as a server.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn join_server(&self, request: &JoinServer) -> Result<JoinedServer, CallError> {
        self.send(Method::POST, paths::SERVER_JOIN, request, DEFAULT_DEADLINE).await
    }

    /// Renews this node's certificate.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn renew(&self, namespace: &str, node: &str, request: &Renew) -> Result<Joined, CallError> {
        self.send(Method::POST, &fill(paths::RENEW, &[namespace, node]), request, DEFAULT_DEADLINE).await
    }

    /// Reads the identity of this client, as the server authenticated it.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn who_am_i(&self) -> Result<WhoAmI, CallError> {
        self.get(paths::WHOAMI, DEFAULT_DEADLINE).await
    }

    /// Asks whether this client may do something.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn review_access(&self, request: &NewAccessReview) -> Result<AccessReview, CallError> {
        self.send(Method::POST, paths::ACCESS_REVIEW, request, DEFAULT_DEADLINE).await
    }

    /// Lists all roles.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn roles(&self) -> Result<Page<Role>, CallError> {
        self.list(paths::ROLES).await
    }

    /// Reads a role.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn role(&self, name: &str) -> Result<Role, CallError> {
        self.get(&fill(paths::ROLE, &[name]), DEFAULT_DEADLINE).await
    }

    /// Creates or changes a role.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn put_role(&self, name: &str, role: &RoleSpec) -> Result<Role, CallError> {
        self.send(Method::PUT, &fill(paths::ROLE, &[name]), role, DEFAULT_DEADLINE).await
    }

    /// Deletes a role that no token has.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_role(&self, name: &str) -> Result<(), CallError> {
        let path = fill(paths::ROLE, &[name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Lists all tokens, without their secrets.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn tokens(&self) -> Result<Page<TokenInfo>, CallError> {
        self.list(paths::TOKENS).await
    }

    /// Creates a token.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn create_token(&self, request: &NewToken) -> Result<Secret, CallError> {
        self.send(Method::POST, paths::TOKENS, request, DEFAULT_DEADLINE).await
    }

    /// Deletes a token.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_token(&self, name: &str) -> Result<(), CallError> {
        let path = fill(paths::TOKEN, &[name]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }

    /// Lists all join tokens, without their secrets.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn join_tokens(&self) -> Result<Page<JoinTokenInfo>, CallError> {
        self.list(paths::JOIN_TOKENS).await
    }

    /// Creates a join token.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn create_join_token(&self, request: &NewJoinToken) -> Result<Secret, CallError> {
        self.send(Method::POST, paths::JOIN_TOKENS, request, DEFAULT_DEADLINE).await
    }

    /// Revokes a join token by the first characters of its hash.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn delete_join_token(&self, id: &str) -> Result<(), CallError> {
        let path = fill(paths::JOIN_TOKEN, &[id]);
        self.send::<_, Nothing>(Method::DELETE, &path, &(), DEFAULT_DEADLINE).await.map(|_| ())
    }
}
