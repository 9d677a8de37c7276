//! The addresses of a node or a service instance, by network interface.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::words::name::InterfaceName;

/// Addresses by the interface that has them, each interface's in the order in which they are preferred.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addresses(pub BTreeMap<InterfaceName, Vec<IpAddr>>);

impl Addresses {
    /// Every address, interface by interface in name order.
    pub fn all(&self) -> impl Iterator<Item = IpAddr> {
        self.0.values().flatten().copied()
    }

    /// The one to be told where only one can be: the first of version 4, else the first.
    #[must_use]
    pub fn preferred(&self) -> Option<IpAddr> {
        self.all().find(IpAddr::is_ipv4).or_else(|| self.all().next())
    }
}
