//! Several hosts on one machine: network namespaces with addresses of their own, on one bridge. Needs root, like every
//! administrator's tool for it.

use std::process::{Command, Output};

use crate::place::text;

/// Hosts on a bridge. Dropping them takes everything down again.
pub(crate) struct Hosts {
    /// A number that no other story of this machine has at the moment.
    net: u32,
    names: Vec<String>,
}

/// Runs a command as root would type it, and stops the test when it fails.
fn sh(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    text(&output.stdout)
}

impl Hosts {
    /// This many hosts, each at `10.N.0.11`, `.12` and so on, with the bridge at `10.N.0.1`.
    pub(crate) fn new(count: usize) -> Self {
        let net = std::process::id() % 200 + 20;
        let mut hosts = Self { net, names: Vec::new() };
        sh(&format!(
            "ip link add bw{net} type bridge && ip addr add 10.{net}.0.1/24 dev bw{net} && ip link set bw{net} up"
        ));
        for index in 1..=count {
            let name = format!("bw{net}-{index}");
            hosts.names.push(name.clone());
            let inside = format!("ip -n {name}");
            sh(&format!(
                "ip netns add {name} && ip link add {name} type veth peer name eth0 netns {name} && \
                 ip link set {name} master bw{net} up && {inside} addr add 10.{net}.0.{}/24 dev eth0 && \
                 {inside} link set eth0 up && {inside} link set lo up",
                index + 10
            ));
        }
        hosts
    }

    /// Where the bridge is: the address of whoever is outside of all of them.
    pub(crate) fn outside(&self) -> String {
        format!("10.{}.0.1", self.net)
    }

    /// The address of a host, counted from 1.
    pub(crate) fn address(&self, host: usize) -> String {
        format!("10.{}.0.{}", self.net, host + 10)
    }

    /// What a command is begun with to run on a host.
    pub(crate) fn on(&self, host: usize) -> Vec<String> {
        let words = ["ip", "netns", "exec", self.names.get(host - 1).unwrap()];
        words.into_iter().map(str::to_owned).collect()
    }

    /// Runs a command on a host.
    pub(crate) fn run(&self, host: usize, args: &[&str]) -> Output {
        let on = self.on(host);
        Command::new(on.first().unwrap()).args(on.iter().skip(1)).args(args).output().unwrap()
    }

    /// Pulls a host's cable out, or puts it back.
    pub(crate) fn cable(&self, host: usize, plugged: bool) {
        let state = if plugged { "up" } else { "down" };
        sh(&format!("ip link set {} {state}", self.names.get(host - 1).unwrap()));
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            drop(Command::new("ip").args(["link", "del", name]).output());
            drop(Command::new("ip").args(["netns", "del", name]).output());
        }
        drop(Command::new("ip").args(["link", "del", &format!("bw{}", self.net)]).output());
    }
}
