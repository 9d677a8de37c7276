//! Which addresses webhooks may call. Names are resolved here, and what is connected to is what was checked: a name that resolves to
//! another address the next time leads nowhere else.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bellwether_core::words::address_range::AddressRange;
use hyper_util::client::legacy::connect::dns::Name;
use tower::Service;

/// Where clouds answer every program on the machine with the machine's own credentials and settings, besides the link-local addresses.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Addresses that are of no machine, but in examples.
const OF_NO_MACHINE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Which addresses may be called: all that are not special, and those that the configuration allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRules {
    /// Special addresses that may be called.
    pub allowed: Vec<AddressRange>,
    /// The table of the configuration that allows them, for messages.
    pub table: &'static str,
}

impl Default for AddressRules {
    fn default() -> Self {
        Self::of_sinks(Vec::new())
    }
}

impl AddressRules {
    /// The rules of `[sinks]`.
    #[must_use]
    pub const fn of_sinks(allowed: Vec<AddressRange>) -> Self {
        Self { allowed, table: "[sinks]" }
    }

    /// The rules of `[hooks]`.
    #[must_use]
    pub const fn of_hooks(allowed: Vec<AddressRange>) -> Self {
        Self { allowed, table: "[hooks]" }
    }

    /// Why an address may not be called; `None` if it may.
    #[must_use]
    pub fn refusal(&self, address: IpAddr) -> Option<String> {
        let address = inner(address);
        let why = special(address)?;
        let is_allowed = self.allowed.iter().any(|range| range.contains(address));
        (!is_allowed).then(|| {
            format!(
                "the address {address} is refused: {why}; allow_addresses in {} of the server's configuration allows it",
                self.table
            )
        })
    }
}

/// What is special about an address.
fn special(address: IpAddr) -> Option<&'static str> {
    let of = match address {
        IpAddr::V4(v4) => (v4.is_loopback(), v4.is_link_local(), v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => (v6.is_loopback(), v6.is_unicast_link_local(), v6.is_multicast()),
    };
    let is_unspecified = match address {
        IpAddr::V4(v4) => v4.octets().first() == Some(&0),
        IpAddr::V6(v6) => v6.is_unspecified(),
    };
    match of {
        _ if is_metadata(address) => Some("it is one of metadata of a cloud"),
        (true, _, _) => Some("it is the machine of the server itself"),
        (_, true, _) => Some("it is link-local, as those of metadata of clouds are"),
        (_, _, true) => Some("it is of many machines"),
        _ if is_unspecified => Some("it is no address of a machine"),
        _ if is_own(address) => Some("it is the machine of the server itself"),
        _ => None,
    }
}

/// Whether a cloud answers there; one of them has a whole range for that.
fn is_metadata(address: IpAddr) -> bool {
    let is_in_range = match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => matches!(v6.segments(), [0xfd00, 0xec2, ..]),
    };
    is_in_range || METADATA.contains(&address)
}

/// Whether it is an address of this machine. Nothing is sent to find out.
fn is_own(address: IpAddr) -> bool {
    // Where a socket can be bound to any address, as beside a floating one, that says nothing.
    let says_nothing =
        OF_NO_MACHINE.into_iter().any(|other| other.is_ipv4() == address.is_ipv4() && can_be_bound(other));
    is_its_own_source(address) || (!says_nothing && can_be_bound(address))
}

fn can_be_bound(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Whether what is sent to an address comes from it.
fn is_its_own_source(address: IpAddr) -> bool {
    let any =
        if address.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

/// The IPv4 address that an IPv6 address stands for.
fn inner(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [a, b, c, d, e, f, g, h] = v6.segments();
    let v4 = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match (a, b, c, d, e, f) {
        // Mapped; compatible, unless it is `::` or `::1`; behind a NAT64; in 6to4.
        (0, 0, 0, 0, 0, 0xffff) => v4(g, h),
        (0, 0, 0, 0, 0, 0) if g != 0 => v4(g, h),
        (0x64, 0xff9b, 0, 0, 0, 0) => v4(g, h),
        (0x2002, ..) => v4(b, c),
        _ => address,
    }
}

/// Resolves names to addresses that may be called.
#[derive(Debug, Clone)]
pub(crate) struct CheckedResolver {
    pub(crate) rules: Arc<AddressRules>,
}

/// That every address of a name is refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct AddressRefused(String);

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let rules = Arc::clone(&self.rules);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (mut permitted, mut refused) = (Vec::new(), None);
            for address in found {
                match rules.refusal(address.ip()) {
                    None => permitted.push(address),
                    Some(reason) => refused = Some(reason),
                }
            }
            match refused {
                Some(reason) if permitted.is_empty() => Err(io::Error::other(AddressRefused(reason))),
                _ => Ok(permitted.into_iter()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_refused_in_every_form_and_others_are_not() {
        let rules = AddressRules::default();
        for refused in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "169.254.169.254",
            "100.100.100.200",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "2002:7f00:1::",
        ] {
            assert!(rules.refusal(refused.parse().unwrap()).is_some(), "{refused}");
        }
        let others = [
            "10.255.254.253",
            "192.168.254.253",
            "172.31.254.253",
            "8.8.8.8",
            "fd12:3456::1",
            "2001:db8::1",
            "fd00:ec3::1",
        ];
        for permitted in others {
            assert_eq!(rules.refusal(permitted.parse().unwrap()), None, "{permitted}");
        }
    }

    #[test]
    fn an_address_of_this_machine_is_known_without_a_list() {
        assert!(is_own("127.0.0.1".parse().unwrap()) && !is_own("203.0.113.9".parse().unwrap()));
        // What is sent to a second address of an interface comes from its first one.
        let second = "127.0.0.2".parse().unwrap();
        assert!(is_own(second) && !is_its_own_source(second));
    }

    #[test]
    fn the_configuration_allows_ranges() {
        let range = |text: &str| text.parse::<AddressRange>().unwrap();
        let rules = AddressRules::of_sinks(vec![range("127.0.0.0/8"), range("fe80::/10")]);
        for permitted in ["127.0.0.1", "::ffff:127.0.0.9", "fe80::1"] {
            assert_eq!(rules.refusal(permitted.parse().unwrap()), None, "{permitted}");
        }
        assert!(rules.refusal("::1".parse().unwrap()).unwrap().contains("allow_addresses"));
        assert!(range("0.0.0.0/0").contains("9.9.9.9".parse().unwrap()));
        for wrong in ["", "a", "127.0.0.1/33", "::/129", "127.0.0.1/", "127.0.0.1/-1"] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
    }
}
