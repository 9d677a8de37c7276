//! Which orders are outdated: their content, or their numbers.

use super::super::fleet::Fleet;
use crate::records::order::OrderContent;
use crate::words::counter::{Epoch, Generation};
use crate::words::name::{EntityName, NodeName};

/// The latest generation that a node is believed to have: so many are never written, and as many are left above it.
const MOST_BELIEVED: Generation = Generation::new(1 << 62);

impl Fleet {
    /// A node's order was written.
    pub(super) fn order_changed(&mut self, name: &NodeName) {
        if self.loading {
            return;
        }
        let written = self.orders.get(name).map(|kept| &kept.value.content);
        let wanted = self.contents.get(name);
        let stale = match (written, wanted) {
            (Some(written), Some(wanted)) => {
                let goes_on = |run: &EntityName| self.goes_on_after(run, name);
                !written.is_current(wanted, self.ledger(name), goes_on)
            }
            (None, Some(wanted)) => *wanted != OrderContent::default(),
            (Some(written), None) => *written != OrderContent::default(),
            (None, None) => false,
        };
        if (stale || self.is_behind(name)) && self.active_node(name).is_some() {
            self.stale_orders.insert_mut(name.clone());
        } else {
            self.stale_orders.remove_mut(name);
        }
    }

    /// The generation that a node says it has, as far as one is believed: the next one is above it, and there is always a next one.
    #[must_use]
    pub fn held_generation(&self, name: &NodeName) -> Generation {
        self.reports.get(name).map_or(Generation::ZERO, |kept| kept.value.generation.min(MOST_BELIEVED))
    }

    /// Whether a node may have another order of this generation or a later one, from before a backup was restored: what is stored was
    /// written before, or the node has a later one. Its agent takes only a later one.
    fn is_behind(&self, name: &NodeName) -> bool {
        let written = self.orders.get(name).map(|kept| kept.value.generation);
        let held = self.held_generation(name);
        let is_of_former_epoch =
            written.is_some_and(|written| self.epoch > Epoch::ZERO && written.get() <= self.epoch.get());
        is_of_former_epoch || held > written.unwrap_or_default()
    }
}
