//! Hosts: network namespaces with their own addresses on one bridge, and partitions between them. Needs iproute2 only: a
//! routing rule on the receiving host silently drops what comes from a host that is cut off.

use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};

use crate::shell::sh;

/// Number of bridges tried until one is free; each has its own network `10.N.0.0/16`.
const NUMBERS: std::ops::Range<u32> = 20..250;

/// Most neighbour entries a host needs: all hosts of a machine share one table, and a neighbour that does not fit cannot be
/// reached.
const NEIGHBOURS: usize = 16;

/// Hosts on a bridge. Dropping it kills whatever runs on them and removes them.
#[derive(Debug)]
pub struct Network {
    /// Number of this network on the machine.
    number: u32,
    names: Vec<String>,
}

impl Network {
    /// Creates this many hosts. The machine itself reaches them from [`Network::outside`].
    ///
    /// # Errors
    /// Without root, or if the machine cannot create more network namespaces.
    pub fn new(count: usize) -> Result<Self> {
        make_room_for_neighbours(count)?;
        let made = |number: &u32| sh(&format!("ip link add bw{number} type bridge"));
        // Creating the bridge claims the number: of two that try, one fails.
        let number = NUMBERS.into_iter().find(|number| made(number).is_ok());
        let number = number.context("cannot add a bridge: hosts of one's own need root")?;
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
        // Rules are evaluated in order, and the rule for the host's own addresses is first by default: rules that drop must
        // precede it.
        sh(&format!(
            "ip netns add {name} && ip link add {name} type veth peer name eth0 netns {name} && \
             ip link set {name} master bw{number} up && {inside} addr add {address}/16 dev eth0 && \
             {inside} link set eth0 up && {inside} link set lo up && \
             {inside} rule add pref 100 lookup local && {inside} rule del pref 0"
        ))?;
        Ok(())
    }

    /// The address of the machine itself.
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

    /// The command prefix that runs a command on a host.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn on(&self, host: usize) -> Result<Vec<String>> {
        let words = ["ip", "netns", "exec", self.name(host)?];
        Ok(words.into_iter().map(str::to_owned).collect())
    }

    /// Runs a command on a host and returns its output.
    ///
    /// # Errors
    /// If there is no such host, or the command cannot be started.
    pub fn run(&self, host: usize, args: &[&str]) -> Result<Output> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name(host)?]).args(args).stdin(Stdio::null());
        command.output().context("cannot start ip")
    }

    /// Takes a host's network link down, or up again.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn cable(&self, host: usize, plugged: bool) -> Result<()> {
        let state = if plugged { "up" } else { "down" };
        sh(&format!("ip link set {} {state}", self.name(host)?)).map(drop)
    }

    /// Drops everything from one host to another. The other direction is not affected.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn cut(&self, from: usize, to: usize) -> Result<()> {
        self.heal(from, to)?;
        let address = self.address(from);
        sh(&format!("ip -n {} rule add pref 50 from {address} blackhole", self.name(to)?)).map(drop)
    }

    /// Stops dropping what one host sends to another.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn heal(&self, from: usize, to: usize) -> Result<()> {
        let (address, name) = (self.address(from), self.name(to)?);
        sh(&format!(
            "! ip -n {name} rule list pref 50 | grep -q 'from {address} ' || \
             ip -n {name} rule del pref 50 from {address} blackhole"
        ))
        .map(drop)
    }

    /// Heals all partitions and links.
    ///
    /// # Errors
    /// If a host is gone.
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

/// Enlarges the machine's neighbour table for this many hosts. It is never reduced, because others may need it.
fn make_room_for_neighbours(hosts: usize) -> Result<()> {
    for limit in ["gc_thresh2", "gc_thresh3"] {
        let path = format!("/proc/sys/net/ipv4/neigh/default/{limit}");
        let kept = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let wanted = hosts.saturating_mul(NEIGHBOURS);
        if kept.trim().parse::<usize>().is_ok_and(|kept| kept < wanted) {
            std::fs::write(&path, wanted.to_string()).with_context(|| format!("cannot write {path}"))?;
        }
    }
    Ok(())
}
