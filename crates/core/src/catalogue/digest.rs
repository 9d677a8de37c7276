//! The part of an instance that contributes to a digest of services.

use core::net::IpAddr;

use super::instance::Instance;
use crate::words::digest::Digest;

impl Digest {
    /// Adds the instance's names, port, addresses, tags and metadata, but not its state.
    pub(super) fn instance(&mut self, instance: &Instance) {
        self.add(instance.node.as_str().as_bytes());
        self.add(instance.name.as_str().as_bytes());
        self.add(&instance.port.unwrap_or_default().to_be_bytes());
        for (interface, addresses) in &instance.addresses.0 {
            self.add(interface.as_str().as_bytes());
            addresses.iter().for_each(|address| self.address(*address));
        }
        instance.tags.iter().for_each(|tag| self.add(tag.as_str().as_bytes()));
        for (key, value) in &instance.meta {
            self.add(key.as_bytes());
            self.add(value.as_bytes());
        }
    }

    fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(v4) => self.add(&v4.octets()),
            IpAddr::V6(v6) => self.add(&v6.octets()),
        }
    }
}
