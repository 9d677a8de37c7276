//! The network of one host, which limits count towards where a peer has shown nothing.

use std::net::{IpAddr, Ipv6Addr};

/// The network of one host: its address, or the first 64 bits of an IPv6 address, since a host has all of these.
#[must_use]
pub fn host_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (!0 << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_network_whichever_of_its_addresses_it_uses() {
        let of = |text: &str| host_network(text.parse().unwrap()).to_string();
        assert_eq!(of("192.0.2.7"), "192.0.2.7");
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(
            (of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::2")),
            (of("2001:db8:1:2::"), of("2001:db8:1:2::"))
        );
        assert_ne!(of("2001:db8:1:3::1"), of("2001:db8:1:2::1"));
    }
}
