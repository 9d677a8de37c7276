//! Roles, and the rights that a token has by its roles. Owns the built-in roles and the rule that nobody grants what they lack.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::claim::{AccessRequest, AccessScope, Claim, Claims, NameScope};
use super::pattern::NamePattern;
use super::words::{ObjectKind, Verb};
use crate::words::name::RoleName;

/// Most claims of a role.
pub const MAX_CLAIMS: usize = 64;

/// Most roles of a token.
pub const MAX_ROLES: usize = 16;

/// A role that every installation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltInRole {
    /// Its name.
    pub name: &'static str,
    /// Its claims, as text.
    pub claims: &'static [&'static str],
    /// What it is for.
    pub description: &'static str,
}

/// Kinds that every built-in role reads.
const VIEWED: &str = "get cluster,ensemble,entity,filter,freeze,global-freeze,namespace,node,param,pause,profile,reaction,role,rollout,run,schedule,secret,server,service,sink,slot,stage,task,workflow";

/// The built-in roles, weakest first; each includes the rights of the ones before it.
pub const BUILT_IN: [BuiltInRole; 3] = [
    BuiltInRole {
        name: "viewer",
        claims: &[VIEWED],
        description: "read everything but tokens and the values of secrets",
    },
    BuiltInRole {
        name: "operator",
        claims: &[
            VIEWED,
            "update cluster,ensemble,entity,filter,freeze,node,param,pause,profile,reaction,rollout,run,schedule,secret,service,sink,slot",
            "delete cluster,ensemble,filter,freeze,param,pause,reaction,run,schedule,secret,service,sink,slot",
        ],
        description: "also change clusters, ensembles, entities, nodes, profiles, rollouts, filters, freezes, pauses, reactions, schedules, secrets, services, sinks and slots, and run workflows, without reading secrets",
    },
    BuiltInRole { name: "admin", claims: &["* *"], description: "everything" },
];

/// What a token may do: the claims of its roles, in some namespaces only if it is limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    roles: Vec<(RoleName, Claims)>,
    only_in: Option<NamePattern>,
}

/// The claims of the built-in role of this name.
#[must_use]
pub fn built_in(name: &RoleName) -> Option<Claims> {
    let role = BUILT_IN.iter().find(|role| role.name == name.as_str())?;
    let claims = role.claims.iter().map(|text| Claim::parse(text).expect("a built-in claim is a claim"));
    Some(claims.collect::<Vec<_>>().into())
}

impl Rights {
    /// The rights of these roles; in the namespaces of a pattern only, if one is given.
    #[must_use]
    pub const fn new(roles: Vec<(RoleName, Claims)>, only_in: Option<NamePattern>) -> Self {
        Self { roles, only_in }
    }

    /// The rights of a built-in role, in all namespaces; none if there is no role of that name.
    #[must_use]
    pub fn of_built_in(name: &str) -> Self {
        let role = RoleName::parse(name).ok().and_then(|name| built_in(&name).map(|claims| (name, claims)));
        Self::new(role.into_iter().collect(), None)
    }

    /// Whether any claim is about a namespace.
    #[must_use]
    pub fn reach(&self, namespace: &str) -> bool {
        let matches = |pattern: &NamePattern| pattern.matches(namespace);
        let claims = || self.roles.iter().flat_map(|(_, claims)| claims.iter());
        self.only_in.as_ref().is_none_or(matches)
            && claims().any(|claim| claim.namespaces.iter().any(matches))
    }

    /// The claim that allows a request and the role that has it; `None` if no claim does.
    #[must_use]
    pub fn deciding(&self, request: &AccessRequest<'_>) -> Option<(&RoleName, &Claim)> {
        let limit = self.only_in.as_ref();
        let is_inside = limit.is_none_or(|limit| match request.scope {
            AccessScope::Installation => *limit == NamePattern::Any,
            AccessScope::Namespace(namespace) => limit.matches(namespace),
            // A claim about other namespaces allows nothing in these.
            AccessScope::Some => true,
        });
        let all = self.roles.iter().flat_map(|(role, claims)| claims.iter().map(move |claim| (role, claim)));
        let reaches = |claim: &Claim| match (request.scope, limit) {
            (AccessScope::Some, Some(limit)) => claim.only_in(limit).is_some(),
            (_, _) => true,
        };
        all.filter(|_| is_inside).find(|(_, claim)| claim.allows(request) && reaches(claim))
    }

    /// Whether a request is allowed.
    #[must_use]
    pub fn allows(&self, request: &AccessRequest<'_>) -> bool {
        self.deciding(request).is_some()
    }

    /// All claims, limited to the namespaces of the token.
    #[must_use]
    pub fn claims(&self) -> Vec<Claim> {
        let all = self.roles.iter().flat_map(|(_, claims)| claims.iter());
        match &self.only_in {
            None => all.cloned().collect(),
            Some(limit) => all.filter_map(|claim| claim.only_in(limit)).collect(),
        }
    }

    /// The first claim of other rights that these do not cover; `None` if these allow all that those allow.
    #[must_use]
    pub fn lacks(&self, other: &[Claim]) -> Option<Claim> {
        let own = self.claims();
        other.iter().find(|claim| !claim.is_covered_by(&own)).cloned()
    }

    /// Whether they are those of an admin: everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.lacks(&Self::of_built_in("admin").claims()).is_none()
    }

    /// The names of the roles.
    pub fn roles(&self) -> impl Iterator<Item = &RoleName> {
        self.roles.iter().map(|(name, _)| name)
    }

    /// The namespaces that they are limited to; `None` for no limit.
    #[must_use]
    pub const fn only_in(&self) -> Option<&NamePattern> {
        self.only_in.as_ref()
    }

    /// The roles, in words for people: `role operator`, `roles a and b, limited to namespace shop`.
    #[must_use]
    pub fn describe(&self) -> String {
        let names: Vec<&str> = self.roles.iter().map(|(name, _)| name.as_str()).collect();
        let roles = match names.as_slice() {
            [] => "no role".into(),
            [one] => alloc::format!("role {one}"),
            many => alloc::format!("roles {}", many.join(", ")),
        };
        match &self.only_in {
            None => roles,
            Some(limit) => alloc::format!("{roles}, limited to namespace {limit}"),
        }
    }
}

/// Reading some objects of a kind.
#[must_use]
pub const fn reading(kind: ObjectKind, scope: AccessScope<'_>) -> AccessRequest<'_> {
    AccessRequest { verb: Verb::Get, field: "", is_partial: false, kind, name: NameScope::Some, scope }
}

/// A role of an installation's own, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Its name.
    pub name: RoleName,
    /// What it permits, 1 to 64 claims.
    pub claims: Claims,
    /// What it is for, in words for people.
    pub description: Arc<str>,
}
