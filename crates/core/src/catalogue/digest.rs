//! A number for what services are made of, the same on every machine and over restarts.

use core::net::IpAddr;

use super::instance::Instance;

/// FNV-1a over parts, each ended by a byte that no text has.
pub(super) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Who it is, and where; not how well it serves.
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

    /// One part.
    pub(super) fn add(&mut self, part: &[u8]) {
        for byte in part.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The number.
    pub(super) const fn finish(&self) -> u64 {
        self.0
    }
}
