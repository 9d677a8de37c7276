//! Free ports for programs of tests.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below those of connections that go out, and above those of well-known services.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// A port of loopback that is free now, each time another one. It is none of those that the system gives to connections that go out:
/// one of these could have it before the program that it is for is started.
///
/// # Panics
/// When none is free.
pub fn free_port() -> u16 {
    // Another run of the tests beside this one begins elsewhere.
    static TRIED: LazyLock<AtomicU16> = LazyLock::new(|| {
        let start = RandomState::new().build_hasher().finish().to_le_bytes();
        AtomicU16::new(u16::from_le_bytes([start[0], start[1]]))
    });
    let size = PORTS.end - PORTS.start;
    let tries = (0..size).map(|_| PORTS.start + TRIED.fetch_add(1, Ordering::Relaxed) % size);
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    tries.into_iter().find(is_free).expect("some port is free")
}

/// As many different ones.
pub fn free_ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}
