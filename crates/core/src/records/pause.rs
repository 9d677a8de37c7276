//! Pauses of the nodes that a selector picks, those that join later among them. Written only by people's operations; a
//! pause of one node is on that node's own record.

use alloc::format;
use alloc::string::String;

use super::node::Node;
use crate::records::annotation::Annotation;
use crate::words::label::Labels;
use crate::words::name::PauseName;
use crate::words::selector::Selector;

/// While it is there, nodes that it picks start nothing new; they go on checking, validating and reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePause {
    /// Its name.
    pub name: PauseName,
    /// Which nodes, now and later.
    pub nodes: Selector,
    /// Whose it is, since when and why.
    pub annotation: Annotation,
    /// Labels given to it by `apply`, for pruning by them; none if nothing was applied.
    pub labels: Labels,
}

impl NodePause {
    /// Whether it holds a node.
    #[must_use]
    pub fn holds(&self, node: &Node) -> bool {
        self.nodes.picks(node.name.as_str(), &node.labels)
    }

    /// What it is and who said it, for a person.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { name, nodes, annotation, .. } = self;
        let reason =
            if annotation.reason.is_empty() { String::new() } else { format!(": {}", annotation.reason) };
        format!("paused by {} (pause {name} of {nodes}){reason}", annotation.by)
    }
}
