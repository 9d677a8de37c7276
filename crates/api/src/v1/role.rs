//! Roles and their claims: requests, answers and stored records.

use bellwether_core::access as core;
use bellwether_core::words::name::RoleName;
use serde::{Deserialize, Serialize};

use crate::shape::{ShapeError, read};

/// Longest description of a role, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 1_024;

/// A permission: these verbs on objects of these kinds with these names in these namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Verbs: `get`, `update`, `delete`, `*`; `update:/params` is limited to one field and those below it, as a JSON pointer. 1 to 16.
    pub verbs: Vec<String>,
    /// Kinds of objects, such as `node` and `entity`, or `*`. 1 to 16.
    pub kinds: Vec<String>,
    /// Names of the objects; each may end with `*`. 1 to 16; every name if absent.
    #[serde(default = "every", skip_serializing_if = "is_every")]
    pub names: Vec<String>,
    /// Namespaces of the objects; each may end with `*`. 1 to 16; every namespace if absent. What belongs to the whole installation is
    /// only in `*`.
    #[serde(default = "every", skip_serializing_if = "is_every")]
    pub namespaces: Vec<String>,
}

/// Request to create or change a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleSpec {
    /// What the role permits, 1 to 64 claims.
    pub claims: Vec<Claim>,
    /// What it is for, at most 1,024 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A role: a named list of claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Role {
    /// Role name.
    pub name: String,
    /// What the role permits.
    pub claims: Vec<Claim>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether every installation has it, so that it cannot be changed.
    pub built_in: bool,
    /// Number of tokens that have it.
    pub tokens: u64,
}

/// Stored record of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRole {
    /// Role name.
    pub name: String,
    /// What the role permits.
    pub claims: Vec<Claim>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// Question whether the caller may do something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAccessReview {
    /// Verb, such as `get` or `update:/params/port`.
    pub verb: String,
    /// Kind of the object, such as `node`.
    pub kind: String,
    /// Name of the object; any of the kind if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object; ignored for kinds that belong to the whole installation, any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Whether the caller may do something, and which claim decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AccessReview {
    /// Whether it is allowed.
    pub allowed: bool,
    /// What was asked, as text.
    pub request: String,
    /// The role that allows it; absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The claim that allows it, as text; absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
}

fn every() -> Vec<String> {
    vec!["*".to_owned()]
}

fn is_every(names: &[String]) -> bool {
    names == ["*"]
}

fn texts<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// The entries of a list of a claim.
fn entries<T>(
    place: &str,
    list: &[String],
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, ShapeError> {
    if !(1..=core::MAX_ENTRIES).contains(&list.len()) {
        let reason = format!("{} entries; 1 to {} are allowed", list.len(), core::MAX_ENTRIES);
        return Err(ShapeError::at(place, reason));
    }
    let entry = |(index, text): (usize, &String)| {
        parse(text).map_err(|reason| ShapeError::at(&format!("{place}[{index}]"), reason))
    };
    list.iter().enumerate().map(entry).collect()
}

/// The claims of a role.
///
/// # Errors
/// [`ShapeError`] naming the claim.
pub fn claims(list: &[Claim]) -> Result<core::Claims, ShapeError> {
    if !(1..=core::MAX_CLAIMS).contains(&list.len()) {
        let reason = format!("{} claims; 1 to {} are allowed", list.len(), core::MAX_CLAIMS);
        return Err(ShapeError::at("claims", reason));
    }
    let claim = |(index, claim): (usize, &Claim)| {
        core::Claim::try_from(claim).map_err(|error| error.within(&format!("claims[{index}]")))
    };
    Ok(list.iter().enumerate().map(claim).collect::<Result<Vec<_>, _>>()?.into())
}

impl TryFrom<&Claim> for core::Claim {
    type Error = ShapeError;
    fn try_from(from: &Claim) -> Result<Self, ShapeError> {
        Ok(Self {
            verbs: entries("verbs", &from.verbs, core::VerbPattern::parse)?,
            kinds: entries("kinds", &from.kinds, core::KindPattern::parse)?,
            names: entries("names", &from.names, core::NamePattern::parse)?,
            namespaces: entries("namespaces", &from.namespaces, core::NamePattern::parse)?,
        })
    }
}

impl From<&core::Claim> for Claim {
    fn from(from: &core::Claim) -> Self {
        Self {
            verbs: texts(&from.verbs),
            kinds: texts(&from.kinds),
            names: texts(&from.names),
            namespaces: texts(&from.namespaces),
        }
    }
}

impl RoleSpec {
    /// The role of this name.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn role(&self, name: RoleName) -> Result<core::Role, ShapeError> {
        if self.description.len() > MAX_DESCRIPTION_BYTES {
            let reason =
                format!("{} bytes; at most {MAX_DESCRIPTION_BYTES} are allowed", self.description.len());
            return Err(ShapeError::at("description", reason));
        }
        Ok(core::Role { name, claims: claims(&self.claims)?, description: self.description.as_str().into() })
    }
}

impl From<&core::Role> for StoredRole {
    fn from(from: &core::Role) -> Self {
        Self {
            name: from.name.to_string(),
            claims: from.claims.iter().map(Claim::from).collect(),
            description: from.description.to_string(),
        }
    }
}

impl TryFrom<StoredRole> for core::Role {
    type Error = ShapeError;
    fn try_from(from: StoredRole) -> Result<Self, ShapeError> {
        let name = read("name", &from.name)?;
        RoleSpec { claims: from.claims, description: from.description }.role(name)
    }
}

/// The roles of a token by their names, each once.
///
/// # Errors
/// [`ShapeError`] naming the role.
pub fn role_names(list: &[String]) -> Result<Vec<RoleName>, ShapeError> {
    if !(1..=core::MAX_ROLES).contains(&list.len()) {
        let reason = format!("{} roles; 1 to {} are allowed", list.len(), core::MAX_ROLES);
        return Err(ShapeError::at("roles", reason));
    }
    let name = |(index, name): (usize, &String)| read(&format!("roles[{index}]"), name);
    let mut names: Vec<RoleName> = list.iter().enumerate().map(name).collect::<Result<_, _>>()?;
    names.sort();
    names.dedup();
    Ok(names)
}
