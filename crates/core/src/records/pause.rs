//! Pauses of the nodes that a selector picks, those that join later among them. Written only by people's operations; a
//! pause of one node is on that node's own record.

use alloc::format;
use alloc::string::String;

use super::node::{Marked, Node};
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
    pub mark: Marked,
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
        let Self { name, nodes, mark, .. } = self;
        let why = if mark.why.is_empty() { String::new() } else { format!(": {}", mark.why) };
        format!("paused by {} (pause {name} of {nodes}){why}", mark.by)
    }
}
