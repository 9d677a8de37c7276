//! Hosts: network namespaces with addresses of their own on one bridge, and what is cut between them. Takes iproute2 alone:
//! what comes from a host that is cut off is thrown away by a routing rule of whoever it was meant for, without a word.

use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};

use crate::shell::sh;

/// Bridges that are tried for a free one; each is a network of its own, `10.N.0.0/16`.
const NUMBERS: std::ops::Range<u32> = 20..250;

/// Addresses of others that a host knows at once, at most: all hosts of a machine share one table of them, and one for which
/// there is no room in it cannot be reached.
const NEIGHBOURS: usize = 16;

/// Hosts on a bridge. Dropped, it kills whatever runs on them and takes them down.
#[derive(Debug)]
pub struct Network {
    /// Which network of this machine it is.
    number: u32,
    names: Vec<String>,
}

impl Network {
    /// This many hosts. Whoever is outside of all of them reaches them too, from [`Network::outside`].
    ///
    /// # Errors
    /// Without root, or when this machine makes no more network namespaces.
    pub fn new(count: usize) -> Result<Self> {
        make_room_for_neighbours(count)?;
        let made = |number: &u32| sh(&format!("ip link add bw{number} type bridge"));
        // Making the bridge takes the number: of two that try, one fails.
        let number = NUMBERS.into_iter().find(|number| made(number).is_ok());
        let number = number.context("could not add a bridge: hosts of one's own need root")?;
        let mut network = Self { number, names: Vec::new() };
        let outside = network.outside();
        sh(&format!("ip addr add {outside}/16 dev bw{number} && ip link set bw{number} up"))?;
        for host in 1..=count {
            network.add(host)?;
        }
        Ok(network)
    }

    fn add(&mut self, host: usize) -> Result<()> {
        let (number, name, address) = (self.number, format!("bw{}-{host}", self.number), self.address(host));
        self.names.push(name.clone());
        let inside = format!("ip -n {name}");
        // Rules are looked at in order, and that for addresses of one's own comes first by default: what is cut off comes
        // before it here.
        sh(&format!(
            "ip netns add {name} && ip link add {name} type veth peer name eth0 netns {name} && \
             ip link set {name} master bw{number} up && {inside} addr add {address}/16 dev eth0 && \
             {inside} link set eth0 up && {inside} link set lo up && \
             {inside} rule add pref 100 lookup local && {inside} rule del pref 0"
        ))?;
        Ok(())
    }

    /// The address of whoever is outside of all hosts.
    #[must_use]
    pub fn outside(&self) -> String {
        format!("10.{}.0.1", self.number)
    }

    /// The address of a host, counted from 1.
    #[must_use]
    pub fn address(&self, host: usize) -> String {
        let at = host + 10;
        format!("10.{}.{}.{}", self.number, at / 200, at % 200 + 2)
    }

    fn name(&self, host: usize) -> Result<&str> {
        let name = host.checked_sub(1).and_then(|index| self.names.get(index));
        name.map(String::as_str)
            .with_context(|| format!("there are {} hosts, and no {host}", self.names.len()))
    }

    /// What a command is begun with to run on a host.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn on(&self, host: usize) -> Result<Vec<String>> {
        let words = ["ip", "netns", "exec", self.name(host)?];
        Ok(words.into_iter().map(str::to_owned).collect())
    }

    /// Runs a command on a host.
    ///
    /// # Errors
    /// When there is no such host, or nothing can be started.
    pub fn run(&self, host: usize, args: &[&str]) -> Result<Output> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name(host)?]).args(args).stdin(Stdio::null());
        command.output().context("could not start ip")
    }

    /// Pulls a host's cable out, or puts it back.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn cable(&self, host: usize, plugged: bool) -> Result<()> {
        let state = if plugged { "up" } else { "down" };
        sh(&format!("ip link set {} {state}", self.name(host)?)).map(drop)
    }

    /// Lets nothing through any more from one host to another. The other way it goes on.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn cut(&self, from: usize, to: usize) -> Result<()> {
        self.heal(from, to)?;
        let address = self.address(from);
        sh(&format!("ip -n {} rule add pref 50 from {address} blackhole", self.name(to)?)).map(drop)
    }

    /// Lets everything through again from one host to another.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn heal(&self, from: usize, to: usize) -> Result<()> {
        let (address, name) = (self.address(from), self.name(to)?);
        sh(&format!(
            "! ip -n {name} rule list pref 50 | grep -q 'from {address} ' || \
             ip -n {name} rule del pref 50 from {address} blackhole"
        ))
        .map(drop)
    }

    /// Puts every cable back and lets everything through.
    ///
    /// # Errors
    /// When a host is gone.
    pub fn heal_all(&self) -> Result<()> {
        for name in &self.names {
            sh(&format!(
                "while ip -n {name} rule del pref 50 2>/dev/null; do :; done; ip link set {name} up"
            ))?;
        }
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names {
            let line =
                format!("ip netns pids {name} | xargs -r kill -9; ip link del {name}; ip netns del {name}");
            drop(sh(&line));
        }
        drop(sh(&format!("ip link del bw{}", self.number)));
    }
}

/// Lets this machine's table of neighbours hold those of so many hosts. It is never made smaller again: others may need it.
fn make_room_for_neighbours(hosts: usize) -> Result<()> {
    for limit in ["gc_thresh2", "gc_thresh3"] {
        let path = format!("/proc/sys/net/ipv4/neigh/default/{limit}");
        let kept = std::fs::read_to_string(&path).with_context(|| format!("could not read {path}"))?;
        let wanted = hosts.saturating_mul(NEIGHBOURS);
        if kept.trim().parse::<usize>().is_ok_and(|kept| kept < wanted) {
            std::fs::write(&path, wanted.to_string()).with_context(|| format!("could not write {path}"))?;
        }
    }
    Ok(())
}
