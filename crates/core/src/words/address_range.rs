//! Ranges of addresses: which texts are one, and which addresses are in it.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// A range of addresses: an address, or `ADDRESS/BITS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    network: IpAddr,
    bits: u32,
}

/// The ranges of local networks: of the machine itself, private (RFC 1918), link-local and unique local ones.
pub const LOCAL: [AddressRange; 8] = [
    AddressRange::v4([127, 0, 0, 0], 8),
    AddressRange::v4([10, 0, 0, 0], 8),
    AddressRange::v4([172, 16, 0, 0], 12),
    AddressRange::v4([192, 168, 0, 0], 16),
    AddressRange::v4([169, 254, 0, 0], 16),
    AddressRange::v6(Ipv6Addr::LOCALHOST, 128),
    AddressRange::v6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    AddressRange::v6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
];

impl AddressRange {
    const fn v4([a, b, c, d]: [u8; 4], bits: u32) -> Self {
        Self { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    const fn v6(network: Ipv6Addr, bits: u32) -> Self {
        Self { network: IpAddr::V6(network), bits }
    }

    /// Whether an address is in the range.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |own: u128, other: u128, width: u32| {
            let shift = width - self.bits;
            own.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
        };
        match (self.network, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => same(own.to_bits().into(), other.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => same(own.to_bits(), other.to_bits(), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for AddressRange {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither an address nor ADDRESS/BITS");
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let network: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if network.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > width { Err(wrong()) } else { Ok(Self { network, bits }) }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn has(range: &str, address: &str) -> bool {
        range.parse::<AddressRange>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn a_range_has_the_addresses_with_its_first_bits_and_of_its_family() {
        assert!(has("192.0.2.0/24", "192.0.2.255") && !has("192.0.2.0/24", "192.0.3.0"));
        assert!(has("192.0.2.7", "192.0.2.7") && !has("192.0.2.7", "192.0.2.8"));
        assert!(has("0.0.0.0/0", "203.0.113.9") && !has("0.0.0.0/0", "::1"));
        assert!(has("::/0", "2001:db8::1") && has("2001:db8::/32", "2001:db8:ffff::1"));
        assert_eq!("10.0.0.0/8".parse::<AddressRange>().unwrap().to_string(), "10.0.0.0/8");
        for wrong in ["", "10", "10.0.0.0/33", "::/129", "10.0.0.0/x", "host"] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn local_networks_are_those_that_no_stranger_is_in() {
        let is_local = |text: &str| LOCAL.iter().any(|range| range.contains(text.parse().unwrap()));
        for local in
            ["127.0.0.1", "10.7.0.1", "172.31.0.1", "192.168.1.1", "169.254.1.1", "::1", "fe80::1", "fd00::7"]
        {
            assert!(is_local(local), "{local}");
        }
        for other in ["8.8.8.8", "172.32.0.1", "192.0.2.1", "2001:db8::1", "100.64.0.1"] {
            assert!(!is_local(other), "{other}");
        }
    }
}
