//! Pauses of the nodes that match a selector, including those that join later. Written only by operations; a
//! pause of one node is on that node's own record.

use alloc::format;
use alloc::string::String;

use super::node::Node;
use crate::records::annotation::Annotation;
use crate::words::label::Labels;
use crate::words::name::PauseName;
use crate::words::node_data::NodeData;
use crate::words::selector::Selector;

/// A pause: nodes that match its selector start nothing new; they go on checking, validating and reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePause {
    /// Name of the pause, unique in its namespace.
    pub name: PauseName,
    /// The nodes it covers, including those that join later.
    pub nodes: Selector,
    /// Who set it, when and why.
    pub annotation: Annotation,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
}

impl NodePause {
    /// Whether it covers a node.
    #[must_use]
    pub fn holds(&self, node: &Node, data: &NodeData) -> bool {
        self.nodes.picks(node.name.as_str(), &node.labels, data)
    }

    /// Name, author and reason, in one line for people.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { name, nodes, annotation, .. } = self;
        let reason =
            if annotation.reason.is_empty() { String::new() } else { format!(": {}", annotation.reason) };
        format!("paused by {} (pause {name} of {nodes}){reason}", annotation.by)
    }
}
