//! The params of a node, and the profiles that it reads. Written only by operations, with compare-and-set.

use alloc::string::String;
use alloc::vec::Vec;

use crate::records::annotation::Annotation;
use crate::records::secret::SecretValues;
use crate::words::counter::NodeParamsRevision;
use crate::words::name::{NodeName, ProfileName};
use crate::words::node_data::ParamValues;

/// Most profiles that a node reads.
pub const MAX_PROFILES: usize = 32;

/// The params of a node, and the profiles that it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeParams {
    /// Name of the node.
    pub node: NodeName,
    /// Number of their last change, from 1.
    pub revision: NodeParamsRevision,
    /// The node's own params: a JSON object as text, keys sorted, without spaces. At most
    /// [`MAX_PARAMS_BYTES`](super::profile::MAX_PARAMS_BYTES).
    pub params: String,
    /// The values of those that are secrets; `params` has a mark in their place.
    pub secrets: SecretValues,
    /// The same params as values, which filters compare.
    pub values: ParamValues,
    /// The profiles that it reads, the one that takes precedence first. A profile need not exist.
    pub profiles: Vec<ProfileName>,
    /// Who changed them last, when and why.
    pub annotation: Annotation,
}
