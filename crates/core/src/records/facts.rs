//! Facts of nodes. Written only when the node's own agent reports them.

use crate::words::counter::RescanNumber;
use crate::words::facts::Facts;
use crate::words::name::NodeName;
use crate::words::time::Timestamp;

/// The facts that a node's agent reported last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    /// Name of the node.
    pub node: NodeName,
    /// Time they arrived, by the server's clock. Facts that did not change are not written again.
    pub received_at: Timestamp,
    /// Number of the last rescan that was done; zero if none was.
    pub rescan: RescanNumber,
    /// The facts.
    pub facts: Facts,
}
