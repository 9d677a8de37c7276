//! The addresses of a node or a service instance, by network interface.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::words::name::InterfaceName;

/// Addresses by interface, those of each interface in order of preference.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addresses(pub BTreeMap<InterfaceName, Vec<IpAddr>>);

impl Addresses {
    /// Every address, interface by interface in name order.
    pub fn all(&self) -> impl Iterator<Item = IpAddr> {
        self.0.values().flatten().copied()
    }

    /// The preferred one where only one can be given: the first IPv4 address, else the first of all.
    #[must_use]
    pub fn preferred(&self) -> Option<IpAddr> {
        self.all().find(IpAddr::is_ipv4).or_else(|| self.all().next())
    }
}
