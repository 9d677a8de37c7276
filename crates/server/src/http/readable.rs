//! What a caller may read of a list. The guard makes it for every request, and every list leaves out the rest.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use bellwether_core::access::{
    AccessRequest, AccessScope, NameScope, ObjectKind, RequiredAccess, Rights, reading,
};
use bellwether_core::records::entity::TargetSource;
use bellwether_core::words::name::{FilterName, Namespace};
use http::request::Parts;

use super::problem::Failure;

/// Which objects the caller of a request may read.
#[derive(Debug, Clone)]
pub(crate) struct Readable {
    /// What the token may do; `None` for a caller who may read all that the route answers: a node reading its own.
    rights: Option<Arc<Rights>>,
    kind: Option<ObjectKind>,
    namespace: Option<String>,
    /// Whether it is all that the route may answer.
    is_all: bool,
}

impl Readable {
    /// Everything.
    pub(crate) const fn everything() -> Self {
        Self { rights: None, kind: None, namespace: None, is_all: true }
    }

    /// What rights permit on a route. The object that its path names was examined already.
    pub(super) fn of(
        rights: &Arc<Rights>,
        need: RequiredAccess,
        name: Option<&str>,
        namespace: Option<&str>,
    ) -> Self {
        let kind = need.right().map(|right| right.kind);
        let mut own = Self {
            rights: Some(Arc::clone(rights)),
            kind,
            namespace: namespace.map(ToOwned::to_owned),
            is_all: false,
        };
        own.is_all = match kind {
            _ if name.is_some() => true,
            Some(kind) => own.allows(kind, NameScope::All, own.scope_of(kind, "")),
            None => rights.is_everything(),
        };
        own
    }

    /// Whether it is all that the route may answer.
    pub(crate) const fn is_all(&self) -> bool {
        self.is_all
    }

    /// Whether the object of this name, of the route's kind, may be read.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.is_all || self.kind.is_some_and(|kind| self.has_object(kind, name))
    }

    /// Whether an object of any kind may be read.
    pub(crate) fn has_object(&self, kind: ObjectKind, name: &str) -> bool {
        self.allows(kind, NameScope::Named(name), self.scope_of(kind, name))
    }

    /// Whether a target of an entity may be read: one that is a node is read by the right to that node.
    pub(crate) fn has_target(&self, source: &TargetSource, target: &str) -> bool {
        match source {
            TargetSource::External(_) => true,
            TargetSource::Nodes(_) | TargetSource::Listed(_) => self.has_object(ObjectKind::Node, target),
        }
    }

    /// Whether a saved filter may be read, which takes a token.
    pub(crate) fn has_filter(&self, name: &FilterName) -> bool {
        self.rights.is_some() && self.has_object(ObjectKind::Filter, name.as_str())
    }

    /// Whether the object that an event is about may be read. What is about no object is for those who may read every namespace.
    pub(crate) fn has_subject(&self, subject: &str) -> bool {
        self.is_all
            || match ObjectKind::of_subject(subject) {
                Some((kind, name)) => self.has_object(kind, name),
                None => self.allows(ObjectKind::Namespace, NameScope::All, AccessScope::Installation),
            }
    }

    /// Whether a namespace may be read.
    pub(crate) fn has_namespace(&self, namespace: &Namespace) -> bool {
        self.has_in(ObjectKind::Namespace, namespace.as_str(), namespace)
    }

    /// Whether something may be read in a namespace that the object itself names.
    pub(crate) fn has_in(&self, kind: ObjectKind, name: &str, namespace: &Namespace) -> bool {
        self.allows(kind, NameScope::Named(name), AccessScope::Namespace(namespace.as_str()))
    }

    fn scope_of<'a>(&'a self, kind: ObjectKind, name: &'a str) -> AccessScope<'a> {
        match (&self.namespace, kind) {
            (_, kind) if kind.is_global() => AccessScope::Installation,
            (None, ObjectKind::Namespace) if !name.is_empty() => AccessScope::Namespace(name),
            (Some(namespace), _) => AccessScope::Namespace(namespace),
            // Its own namespace was examined before.
            (None, ObjectKind::JoinToken) => AccessScope::Some,
            (None, _) => AccessScope::Installation,
        }
    }

    fn allows(&self, kind: ObjectKind, name: NameScope<'_>, scope: AccessScope<'_>) -> bool {
        let request = AccessRequest { name, ..reading(kind, scope) };
        self.rights.as_ref().is_none_or(|rights| rights.allows(&request))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Readable {
    type Rejection = Failure;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        // The guard inserts it for every token.
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or(Self::everything()))
    }
}
