//! What a monitor of Ceph is made and started with, what it says of itself, and how another one is removed. It is asked at its own socket, which
//! costs nothing; the program `ceph`, which takes half a second of a processor, is run only for changes and questions to other monitors.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use bellwether_core::local::member::change::{ChangeStep, MemberAnswer};
use bellwether_core::local::member::{Standing, StartWith};
use bellwether_core::records::ensemble::CephSettings;
use bellwether_core::records::member::{Membership, store_name};
use bellwether_core::records::probes::StoreMember;
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use bellwether_rt::observed;
use serde_json::Value;

use super::admin_socket;
use super::ceph_files::CephFiles;
use crate::apply::CommandFacts;
use crate::apply::answer::answer;
use crate::config::ensembles::CephPrograms;
use crate::config::recipe::Command;

/// Longest time for an answer: an election takes up to nine seconds while one of the monitors is lost, and is no failure.
const PATIENCE: Duration = Duration::from_secs(12);

/// Time between two questions while there is no quorum.
const AGAIN: Duration = Duration::from_millis(250);

/// Seconds for which the program `ceph` tries to reach a monitor.
const CONNECT_S: &str = "10";

/// Longest time for one call of the programs of Ceph. They have no limit of their own, and wait for ever without a quorum.
const CALL: Duration = Duration::from_secs(20);

/// Most bytes of an answer.
const MAX_BYTES: usize = 1024 * 1024;

/// The configuration of all programs: none, since what is set on the machine is for others.
const NO_CONF: [&str; 2] = ["--conf", "/dev/null"];

/// A monitor of this node.
#[derive(Debug, Clone)]
pub(super) struct Ceph {
    ensemble: EnsembleName,
    settings: CephSettings,
    address: IpAddr,
    /// Its own name.
    pub(super) name: String,
    pub(super) files: CephFiles,
}

impl Ceph {
    pub(super) fn new(
        (ensemble, number): (&EnsembleName, MemberNumber),
        settings: CephSettings,
        address: IpAddr,
        directory: &Path,
    ) -> Self {
        let (name, files) = (store_name(ensemble, number), CephFiles::within(directory));
        Self { ensemble: ensemble.clone(), settings, address, name, files }
    }

    /// URL at which other members reach it.
    pub(super) fn peer_url(&self) -> String {
        format!("v2:{}", self.client())
    }

    /// Where it serves clients and other monitors.
    pub(super) const fn client(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.settings.port)
    }

    /// The command that starts it.
    pub(super) fn command(&self, program: &str, data: &Path) -> Command {
        let (own, data_dir) = (vector(&self.peer_url()), self.files.store().display().to_string());
        let settings = ["-f", "-i", &self.name, "--mon-data", &data_dir, "--public-addrv", &own];
        // Its socket is named from its directory: a path has no more than 107 bytes there.
        let outputs = [
            "--admin-socket",
            admin_socket::MONITOR,
            "--pid-file=",
            "--log-to-file=false",
            "--log-to-stderr=true",
            "--err-to-stderr=true",
            "--mon-cluster-log-to-file=false",
            "--debug-rocksdb=1/5",
            "--debug-mon=0/5",
            "--debug-paxos=0/5",
        ];
        // Clients of releases that do not prove that they had a ticket before.
        let security = ["--auth-allow-insecure-global-id-reclaim=false"];
        // As many copies have the pools that are made without a number of their own.
        let replicas = format!("--osd-pool-default-size={}", self.settings.replicas);
        let words = NO_CONF.iter().chain(&settings).chain(&outputs).chain(&security);
        let words = words.copied().chain([replicas.as_str()]);
        let argv = std::iter::once(program).chain(words).map(str::to_owned).collect();
        Command { argv, workdir: data.to_owned(), env: BTreeMap::new(), stdin: None }
    }

    /// Makes its store, with the monitors that it is to know, before it is started for the first time. The error fits after "cannot ".
    pub(super) async fn make(
        &self,
        (programs, facts): (&CephPrograms, &CommandFacts),
        fsid: &str,
        with: &StartWith,
    ) -> Result<(), String> {
        let known: Vec<(String, String)> = match with {
            StartWith::Data => return Ok(()),
            StartWith::New => vec![(self.name.clone(), self.peer_url())],
            // It is let in by those that it knows, and is not one of them before.
            StartWith::Existing(members) => {
                let named =
                    members.iter().map(|(number, url)| (store_name(&self.ensemble, *number), url.clone()));
                named.filter(|(name, _)| *name != self.name).collect()
            }
        };
        let map = self.files.map().display().to_string();
        let mut argv: Vec<String> =
            [&programs.monmaptool, "--create", "--clobber", "--fsid", fsid].map(str::to_owned).into();
        for (name, url) in &known {
            argv.extend(["--addv".to_owned(), name.clone(), vector(url)]);
        }
        argv.push(map.clone());
        let call = |argv: Vec<String>| self.call(argv, facts, CALL);
        call(argv).await.map_err(|error| format!("make its map of monitors: {error}"))?;
        let (store, keyring) =
            (self.files.store().display().to_string(), self.files.keyring().display().to_string());
        let words = [
            "--mkfs",
            "-i",
            &self.name,
            "--mon-data",
            &store,
            "--fsid",
            fsid,
            "--monmap",
            &map,
            "--keyring",
            &keyring,
        ];
        let argv =
            std::iter::once(programs.mon.as_str()).chain(NO_CONF).chain(words).map(str::to_owned).collect();
        call(argv).await.map(drop).map_err(|error| format!("make its store: {error}"))
    }

    /// What it says of itself, once it is one of a quorum, or after a while.
    pub(super) async fn answer(&self) -> MemberAnswer {
        let mut last = MemberAnswer::Silent(format!("no answer within {}s", PATIENCE.as_secs()));
        let asked = async {
            loop {
                last = match admin_socket::ask(&self.files.data(), admin_socket::MONITOR, "mon_status").await
                {
                    Ok(status) => match read(&status, &self.name) {
                        serving @ (MemberAnswer::Serving(_) | MemberAnswer::Other(_)) => return serving,
                        silent @ (MemberAnswer::Silent(_) | MemberAnswer::Learner) => silent,
                    },
                    Err(error) => MemberAnswer::Silent(error),
                };
                tokio::time::sleep(AGAIN).await;
            }
        };
        match observed::timeout(PATIENCE, asked).await {
            Ok(answer) => answer,
            Err(_) => last,
        }
    }

    /// Makes one step of a change. The error fits after "cannot ".
    pub(super) async fn change(
        &self,
        (programs, facts): (&CephPrograms, &CommandFacts),
        step: &ChangeStep,
        membership: &Membership,
    ) -> Result<(), String> {
        match step {
            ChangeStep::Remove(id) => {
                let urls = membership.members.iter().filter(|(other, _)| *other != id);
                let urls: Vec<&String> = urls.filter_map(|(_, member)| member.address.as_ref()).collect();
                let asked = self.administer((programs, facts), &urls, &["mon", "rm", id]).await;
                asked.map(drop).map_err(|error| format!("remove {id}: {error}"))
            }
            // A monitor joins by itself, and nobody can be told to lead.
            ChangeStep::Add(_)
            | ChangeStep::Promote(_)
            | ChangeStep::Transfer(_)
            | ChangeStep::TakeLead(..)
            | ChangeStep::Done
            | ChangeStep::Removed(_)
            | ChangeStep::Wait(_) => Ok(()),
        }
    }

    /// What the other monitors, which are at these URLs, say of this one.
    pub(super) async fn standing(
        &self,
        (programs, facts): (&CephPrograms, &CommandFacts),
        peers: &[String],
    ) -> Standing {
        let own = self.peer_url();
        let others: Vec<&String> = peers.iter().filter(|url| **url != own).collect();
        if others.is_empty() {
            return Standing::Alone;
        }
        let asked = self.administer((programs, facts), &others, &["mon", "dump", "-f", "json"]).await;
        let map = asked.ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        match map.as_ref().and_then(|map| map.get("mons")?.as_array()) {
            None => Standing::Unknown,
            Some(mons) if mons.iter().any(|mon| text(mon, "name") == Some(&self.name)) => Standing::Listed,
            Some(_) => Standing::NotListed,
        }
    }

    /// What the monitors at these URLs answer to the administrator, who asks with this program that has a deadline of its own.
    pub(super) async fn administer(
        &self,
        (programs, facts): (&CephPrograms, &CommandFacts),
        urls: &[&String],
        words: &[&str],
    ) -> Result<Vec<u8>, String> {
        let monitors = urls.iter().map(|url| url.as_str()).collect::<Vec<_>>().join(",");
        let keyring = self.files.administrator().display().to_string();
        let of =
            ["--connect-timeout", CONNECT_S, "-n", "client.admin", "--keyring", &keyring, "-m", &monitors];
        let all = NO_CONF.iter().chain(&of).chain(words);
        let argv = std::iter::once(programs.ceph.as_str()).chain(all.copied()).map(str::to_owned);
        self.call(argv.collect(), facts, CALL).await
    }

    async fn call(
        &self,
        argv: Vec<String>,
        facts: &CommandFacts,
        deadline: Duration,
    ) -> Result<Vec<u8>, String> {
        let command = Command { argv, workdir: self.files.data(), env: BTreeMap::new(), stdin: None };
        answer(&command, facts, deadline, MAX_BYTES).await
    }

    /// The command that starts its manager, which finds the monitors at these URLs.
    pub(super) fn manager_command(&self, program: &str, urls: &[String]) -> Command {
        let (dir, keyring) = (self.files.manager(), self.files.manager_keyring());
        let (data_dir, keyring) = (dir.display().to_string(), keyring.display().to_string());
        let (monitors, address) = (urls.join(","), self.address.to_string());
        let words = [
            "-f",
            "-i",
            &self.name,
            "-m",
            &monitors,
            "--mgr-data",
            &data_dir,
            "--keyring",
            &keyring,
            "--public-addr",
            &address,
            "--admin-socket",
            admin_socket::MANAGER,
            "--pid-file=",
            "--log-to-file=false",
            "--log-to-stderr=true",
            "--err-to-stderr=true",
        ];
        let argv = std::iter::once(program).chain(NO_CONF).chain(words).map(str::to_owned).collect();
        Command { argv, workdir: dir, env: BTreeMap::new(), stdin: None }
    }
}

/// The address of a URL as the vector that Ceph takes.
fn vector(url: &str) -> String {
    format!("[{url}]")
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str()
}

/// What the answer to `mon_status` says.
fn read(status: &Value, own: &str) -> MemberAnswer {
    let (Some(name), Some(state)) = (text(status, "name"), text(status, "state")) else {
        return MemberAnswer::Silent("its status has no name, or no state".to_owned());
    };
    if name != own {
        return MemberAnswer::Other(format!("monitor {name}"));
    }
    let is_leader = match state {
        "leader" => true,
        "peon" => false,
        "synchronizing" => return MemberAnswer::Learner,
        other => return MemberAnswer::Silent(format!("it has no quorum, and is {other}")),
    };
    let entry = |mon: &Value| {
        let name = text(mon, "name")?.to_owned();
        let addresses = mon.pointer("/public_addrs/addrvec")?.as_array()?;
        let address = addresses.iter().find(|address| text(address, "type") == Some("v2"));
        let address =
            address.and_then(|address| text(address, "addr")).map(|address| format!("v2:{address}"));
        Some((name.clone(), StoreMember { name: Some(name), address, votes: true, connected: None }))
    };
    let mons = status.pointer("/monmap/mons").and_then(Value::as_array);
    let members = mons.into_iter().flatten().filter_map(entry).collect();
    MemberAnswer::Serving(Membership {
        own_id: name.to_owned(),
        is_leader,
        cluster_id: None,
        leader: None,
        members,
    })
}

/// The programs that are needed, with the names of their settings.
pub(super) fn programs(programs: &CephPrograms) -> [(&'static str, &str); 4] {
    [
        ("ceph_mon", &programs.mon),
        ("ceph_mgr", &programs.mgr),
        ("ceph", &programs.ceph),
        ("monmaptool", &programs.monmaptool),
    ]
}

#[cfg(test)]
mod tests;
