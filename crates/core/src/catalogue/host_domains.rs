//! The domains that node names are in, for DNS: `example.org` and `org` of `web-1.example.org`. Owns the counts.

use alloc::sync::Arc;

use crate::words::map::Map;
use crate::words::name::NodeName;

/// Number of nodes in each domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HostDomains(Map<Arc<str>, usize>);

impl HostDomains {
    /// Whether a node's name is in this domain.
    pub(super) fn contains(&self, domain: &str) -> bool {
        self.0.contains_key(domain)
    }

    pub(super) fn add(&mut self, node: &NodeName) {
        for domain in domains(node.as_str()) {
            let count = self.0.get(domain).map_or(1, |count| count + 1);
            self.0.insert_mut(domain.into(), count);
        }
    }

    pub(super) fn remove(&mut self, node: &NodeName) {
        for domain in domains(node.as_str()) {
            match self.0.get(domain).copied() {
                Some(count) if count > 1 => self.0.insert_mut(domain.into(), count - 1),
                Some(_) | None => {
                    self.0.remove_mut(domain);
                }
            }
        }
    }
}

/// The domains that a name is in, the closest first.
fn domains(name: &str) -> impl Iterator<Item = &str> {
    core::iter::successors(parent(name), |name| parent(name))
}

fn parent(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, domain)| domain)
}
