//! What the tasks that read lists of members work with.

use std::sync::Arc;

use super::settings::DiscoverySettings;
use crate::leadership::Leadership;
use crate::transactor::Transactor;

/// What the tasks work with. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct DiscoveryContext {
    /// Commits what follows from a list.
    pub(crate) transactor: Transactor,
    /// When to read lists, and under which term to commit.
    pub(crate) leadership: Leadership,
    /// Where lists may be.
    pub(crate) settings: Arc<DiscoverySettings>,
}
