//! How often the supervised process of each entity was started since the agent started.

use bellwether_core::words::name::EntityName;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

/// Labels of the counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ProcessOf {
    entity: String,
}

/// Starts of processes by entity. Clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessStarts(Family<ProcessOf, Counter>);

impl ProcessStarts {
    /// Counts a start.
    pub(super) fn count(&self, entity: &EntityName) {
        self.0.get_or_create(&ProcessOf { entity: entity.to_string() }).inc();
    }

    /// The counters.
    pub(crate) fn counters(&self) -> Family<ProcessOf, Counter> {
        self.0.clone()
    }
}
