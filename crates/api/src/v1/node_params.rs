//! Params of nodes and the profiles that they read: requests, answers and stored records.

use std::collections::BTreeMap;

use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::node_params as core;
use bellwether_core::words::counter::{LogPosition, NodeParamsRevision};
use bellwether_core::words::name::ProfileName;
use bellwether_core::words::precedence::{ParamLayers, ParamLevel, levels};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::live_params as world;
use serde::{Deserialize, Serialize};

use super::profile::{Params, canonical, params};
use super::secret_values::{StoredSecretValues, values_in, values_out};
use crate::shape::{ShapeError, is_zero, read};
use crate::value::values;

/// The params of a node, and the profiles that it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NodeParams {
    /// Node name.
    pub node: String,
    /// Number of the last change, from 1; 0 if there was none.
    pub revision: u64,
    /// The node's own params.
    #[schema(value_type = Object)]
    pub params: Params,
    /// The profiles that it reads, the one that takes precedence first.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// Name of the token that changed them last.
    pub by: String,
    /// Time of the last change, in milliseconds since the Unix epoch, by the server's clock.
    pub at_ms: u64,
    /// The reason that was given for the last change; may be empty.
    #[serde(default)]
    pub reason: String,
}

/// The params that reach a node without a rollout: its own, and those of the live profiles that it reads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LiveParams {
    /// Names this state in the next poll.
    pub tag: String,
    /// Number of the last change of the node's own params and profiles; absent if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revision: u64,
    /// The node's own params.
    #[schema(value_type = Object)]
    pub params: Params,
    /// The profiles in its list, the one that takes precedence first, whether or not they are live.
    pub profiles: Vec<String>,
    /// The params of each live profile that it reads.
    pub live: BTreeMap<String, LiveProfile>,
}

/// A live profile as a node reads it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LiveProfile {
    /// Number of the revision.
    pub revision: u64,
    /// Its params.
    #[schema(value_type = Object)]
    pub params: Params,
}

/// Request to replace the profiles that a node reads.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeProfiles {
    /// The profiles, the one that takes precedence first; up to 32. A profile need not exist yet.
    pub profiles: Vec<String>,
    /// Reason for the change, recorded in the history.
    #[serde(default)]
    pub reason: String,
}

/// A param of a node: its value, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedParam {
    /// Key of the param.
    pub key: String,
    /// Its value; absent if no level has it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::value::present")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub value: Option<serde_json::Value>,
    /// The levels, the one that takes precedence first. The first that has the param decides its value.
    pub levels: Vec<ExplainedLevel>,
}

/// One level of params of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExplainedLevel {
    /// `node`, or `profile`.
    pub level: LevelKind,
    /// Name of the profile; absent for the node itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Number of the revision that is read: the newest, or the assigned one of an entity's profile; 0 if there is none.
    pub revision: u64,
    /// Whether the node reads it. A profile is read while it is live, or as the one of the entity that was asked about.
    pub read: bool,
    /// The value at this level; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::value::present")]
    #[schema(value_type = serde_json::Value, required = false)]
    pub value: Option<serde_json::Value>,
    /// Whether it decides the value.
    pub decides: bool,
}

/// Kind of a level of params.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LevelKind {
    /// What its cluster gives it by its role.
    Cluster,
    /// The node's own params.
    Node,
    /// A profile that the node reads.
    Profile,
}

/// Names a state of the live params of a node: the position of the world in which it was read, and its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveParamsTag {
    /// Position of the world.
    pub read_at: LogPosition,
    /// Digest of the params; 0 if there are none.
    pub digest: u64,
}

impl std::fmt::Display for LiveParamsTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{:x}", self.read_at, self.digest)
    }
}

impl std::str::FromStr for LiveParamsTag {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let numbers = text.split_once('-').and_then(|(read_at, digest)| {
            Some((read_at.parse().ok()?, u64::from_str_radix(digest, 16).ok()?))
        });
        let (read_at, digest) = numbers.ok_or("not a tag of live params")?;
        Ok(Self { read_at: LogPosition::new(read_at), digest })
    }
}

impl LiveParams {
    /// Digest of the params; 0 if there are none, or if the tag is not known to this release.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.tag.parse().map_or(0, |tag: LiveParamsTag| tag.digest)
    }

    /// The form of these params under a tag.
    ///
    /// # Errors
    /// [`ShapeError`] when stored params are not a JSON object.
    pub fn of(tag: LiveParamsTag, from: &world::LiveParams<'_>) -> Result<Self, ShapeError> {
        let own = from.own.map(|own| params(&own.params)).transpose()?.unwrap_or_default();
        let live = from.profiles.iter().map(|read| {
            let profile = LiveProfile { revision: read.number.get(), params: params(&read.params)? };
            Ok((read.profile.to_string(), profile))
        });
        Ok(Self {
            tag: tag.to_string(),
            revision: from.own.map_or(0, |own| own.revision.get()),
            params: own,
            profiles: from.listed.iter().map(ToString::to_string).collect(),
            live: live.collect::<Result<_, ShapeError>>()?,
        })
    }

    /// The params of a node for the files of an entity: what reaches it without a rollout, and `rolled_out`, the params of
    /// the entity's profile at the revision that the node is assigned.
    ///
    /// # Errors
    /// [`ShapeError`] naming a profile whose name is not valid.
    pub fn layers(
        &self,
        of_entity: &ProfileName,
        rolled_out: &Params,
    ) -> Result<ParamLayers<serde_json::Value>, ShapeError> {
        let listed = profiles(&self.profiles)?;
        let layers = levels(&listed, Some(of_entity)).into_iter().map(|level| {
            let params = match &level {
                ParamLevel::Node => self.params.clone(),
                ParamLevel::Profile(name) if name == of_entity => rolled_out.clone(),
                ParamLevel::Profile(name) => {
                    self.live.get(name.as_str()).map(|read| read.params.clone()).unwrap_or_default()
                }
            };
            (level, params)
        });
        Ok(ParamLayers::new(layers.collect()))
    }
}

impl TryFrom<&core::NodeParams> for NodeParams {
    type Error = ShapeError;
    fn try_from(from: &core::NodeParams) -> Result<Self, ShapeError> {
        Ok(Self {
            node: from.node.to_string(),
            revision: from.revision.get(),
            params: params(&from.params)?,
            profiles: from.profiles.iter().map(ToString::to_string).collect(),
            by: from.annotation.by.to_string(),
            at_ms: from.annotation.at.as_millis(),
            reason: from.annotation.reason.clone(),
        })
    }
}

/// Stored record of the params of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredNodeParams {
    /// The params as everybody may see them, with marks in place of secrets.
    #[serde(flatten)]
    pub params: NodeParams,
    /// The values of the secrets, encrypted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: StoredSecretValues,
}

impl TryFrom<&core::NodeParams> for StoredNodeParams {
    type Error = ShapeError;
    fn try_from(from: &core::NodeParams) -> Result<Self, ShapeError> {
        Ok(Self { params: from.try_into()?, secrets: values_out(&from.secrets) })
    }
}

impl TryFrom<StoredNodeParams> for core::NodeParams {
    type Error = ShapeError;
    fn try_from(from: StoredNodeParams) -> Result<Self, ShapeError> {
        let StoredNodeParams { params: from, secrets } = from;
        Ok(Self {
            secrets: values_in(secrets)?,
            node: read("node", &from.node)?,
            revision: NodeParamsRevision::new(from.revision),
            params: canonical(&from.params)?,
            values: values(&from.params),
            profiles: profiles(&from.profiles)?,
            annotation: Annotation {
                by: read("by", &from.by)?,
                at: Timestamp::from_millis(from.at_ms),
                reason: from.reason,
            },
        })
    }
}

/// Reads names of profiles, each once.
///
/// # Errors
/// [`ShapeError`] naming the place of one that is not valid or named before, or when there are too many.
pub fn profiles(names: &[String]) -> Result<Vec<ProfileName>, ShapeError> {
    if names.len() > core::MAX_PROFILES {
        let reason = format!("{} profiles, at most {} allowed", names.len(), core::MAX_PROFILES);
        return Err(ShapeError::at("profiles", reason));
    }
    let mut read_names: Vec<ProfileName> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let at = format!("profiles.{index}");
        let name: ProfileName = read(&at, name)?;
        if read_names.contains(&name) {
            return Err(ShapeError::at(&at, format!("{name} is named twice")));
        }
        read_names.push(name);
    }
    Ok(read_names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_reads_back_and_an_empty_one_names_no_params() {
        let tag = LiveParamsTag { read_at: LogPosition::new(7), digest: u64::MAX };
        assert_eq!(tag.to_string().parse(), Ok(tag));
        assert_eq!("".parse(), Ok(LiveParamsTag::default()));
        for bad in ["7", "x-1", "7-", "7-xyz", "-"] {
            assert!(bad.parse::<LiveParamsTag>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_files_of_an_entity_read_the_node_its_live_profiles_the_rollout_and_the_global_profile() {
        let of = |pairs: &[(&str, u64)]| -> Params {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect()
        };
        let profile = |params| LiveProfile { revision: 1, params };
        let live = LiveParams {
            params: of(&[("a", 1)]),
            profiles: vec!["fast".to_owned(), "slow".to_owned()],
            live: BTreeMap::from([
                ("fast".to_owned(), profile(of(&[("a", 2), ("b", 2)]))),
                ("global".to_owned(), profile(of(&[("b", 4), ("c", 4), ("d", 4)]))),
            ]),
            ..LiveParams::default()
        };
        let web = read("profile", "web").unwrap();
        let layers = live.layers(&web, &of(&[("a", 3), ("b", 3), ("c", 3)])).unwrap();
        let value = |key| layers.get(key).and_then(|(_, value)| value.as_u64());
        assert_eq!(["a", "b", "c", "d", "e"].map(value), [Some(1), Some(2), Some(3), Some(4), None]);
        // In the node's list, the entity's profile has that place.
        let slow = read("profile", "slow").unwrap();
        let layers = live.layers(&slow, &of(&[("b", 3), ("c", 3)])).unwrap();
        assert_eq!(layers.get("b").and_then(|(_, value)| value.as_u64()), Some(2));
        assert_eq!(layers.get("c").and_then(|(_, value)| value.as_u64()), Some(3));
    }

    #[test]
    fn profiles_are_named_once_and_not_too_many() {
        let error = profiles(&["web".to_owned(), "web".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("profiles.1") && error.contains("named twice"), "{error}");
        let many: Vec<String> = (0..33).map(|number| format!("p{number}")).collect();
        assert!(profiles(&many).unwrap_err().to_string().contains("at most 32"), "33");
        assert!(profiles(&["a b".to_owned()]).is_err());
    }
}
