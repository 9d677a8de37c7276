//! Settings of hooks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_core::words::name::Actor;

/// Settings of hooks.
#[derive(Debug, Clone, Default)]
pub struct HookSettings {
    /// Token files, by the names that policies use.
    pub tokens: BTreeMap<Actor, PathBuf>,
    /// File with the authorities (PEM) that hooks behind `https` are verified with; the system's own if absent.
    pub ca_file: Option<PathBuf>,
}
