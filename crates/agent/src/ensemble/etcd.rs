//! What etcd is started with, what it says of itself, and the changes of its members.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_core::local::member::change::{ChangeStep, MemberAnswer};
use bellwether_core::local::member::{MemberKey, Standing, StartWith};
use bellwether_core::records::ensemble::EtcdSettings;
use bellwether_core::records::member::{Membership, store_name};
use bellwether_core::records::probes::{ShardRole, StoreFacts};
use bellwether_core::words::counter::MemberNumber;
use bellwether_core::words::name::EnsembleName;
use bellwether_rt::observed;

use super::certificates::{CertificateFiles, SideFiles};
use super::directory::OwnDirectory;
use super::etcd_calls::{self, Initial, PATIENCE, make_at, read_from_quorum};
use super::program::is_there;
use crate::config::data_store::TlsFiles;
use crate::config::ensembles::EnsembleSettings;
use crate::config::recipe::Command;
use crate::probe::answer::ProbeError;
use crate::probe::etcd::{ask, errors, view};
use crate::probe::http::post;
use crate::probe::http::stream::{StreamedAnswer, post_streamed};

/// Longest time for restoring a snapshot: a database of 8 GB, the most that etcd is made for, at the speed of a slow disk.
pub(super) const RESTORE_DEADLINE: Duration = Duration::from_secs(30 * 60);

/// The programs that restore snapshots: the first came with etcd 3.5, and since 3.6 the other one cannot.
const RESTORERS: [&str; 2] = ["etcdutl", "etcdctl"];

/// The alarms of etcd, each with what it means, in words that fit after "member 1 ".
const ALARMS: [(&str, &str); 2] = [
    (
        "NOSPACE",
        "takes no writes: its database has reached its quota; compact it with etcdctl compact, defragment it with bellwether ensemble defragment, then end the alarm with etcdctl alarm disarm",
    ),
    ("CORRUPT", "has other data than the others; replace the member whose data differ"),
];

/// An etcd of this node.
#[derive(Debug, Clone)]
pub(super) struct Etcd {
    settings: EtcdSettings,
    address: IpAddr,
    /// Its own name.
    name: String,
    /// Its certificates, if it has TLS.
    certificates: Option<CertificateFiles>,
    /// Those that a client uses.
    tls: Option<TlsFiles>,
    /// Whether its store was adopted: others than those of the ensemble may be members of it.
    is_adopted: bool,
    /// The members that it is started with, if they were read from that store.
    initial: Option<Initial>,
}

impl Etcd {
    pub(super) fn new(
        (ensemble, number): (&EnsembleName, MemberNumber),
        settings: EtcdSettings,
        address: IpAddr,
        directory: &Path,
    ) -> Self {
        let certificates = settings.tls.then(|| CertificateFiles::within(directory));
        let tls = certificates.as_ref().map(|files| files.clients().client());
        let name = store_name(ensemble, number);
        Self { settings, address, name, certificates, tls, is_adopted: false, initial: None }
    }

    /// The same in a store that was adopted, or was not.
    pub(super) fn adopted(self, is_adopted: bool) -> Self {
        Self { is_adopted, ..self }
    }

    /// The same, to be started with these members.
    pub(super) fn joining(self, initial: Initial) -> Self {
        Self { initial: Some(initial), ..self }
    }

    /// Its own name in the store.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    const fn scheme(&self) -> &'static str {
        if self.settings.tls { "https" } else { "http" }
    }

    /// URL at which other members reach it.
    pub(super) fn peer_url(&self) -> String {
        format!("{}://{}", self.scheme(), SocketAddr::new(self.address, self.settings.peer_port))
    }

    /// Where it listens.
    pub(super) fn listens(&self) -> [SocketAddr; 2] {
        [self.settings.client_port, self.settings.peer_port].map(|port| SocketAddr::new(self.address, port))
    }

    /// Where it serves clients.
    pub(super) fn client(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.settings.client_port)
    }

    fn authority(&self) -> String {
        self.client().to_string()
    }

    /// The command that starts it.
    pub(super) fn command(
        &self,
        program: &str,
        data: &Path,
        (ensemble, key): (&EnsembleName, &MemberKey),
        with: &StartWith,
    ) -> Command {
        let client = format!("{}://{}", self.scheme(), self.authority());
        let (peer, data_dir) = (self.peer_url(), data.display().to_string());
        let mut argv: Vec<String> = [
            program,
            "--name",
            &self.name,
            "--data-dir",
            &data_dir,
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
            "--initial-cluster-token",
            &key.identity,
            "--pre-vote=true",
        ]
        .map(str::to_owned)
        .into();
        argv.extend(self.certificates.iter().flat_map(tls_flags));
        let initial = |members: &BTreeMap<MemberNumber, String>| {
            let each = members.iter().map(|(number, url)| format!("{}={url}", store_name(ensemble, *number)));
            each.collect::<Vec<_>>().join(",")
        };
        let read = |initial: &Initial| {
            initial.iter().map(|(name, url)| format!("{name}={url}")).collect::<Vec<_>>().join(",")
        };
        let (state, members) = match with {
            StartWith::New => ("new", format!("{}={peer}", self.name)),
            StartWith::Existing(members) => {
                ("existing", self.initial.as_ref().map_or_else(|| initial(members), read))
            }
            // What its data say of the members holds.
            StartWith::Data => ("existing", format!("{}={peer}", self.name)),
        };
        argv.extend(["--initial-cluster-state", state, "--initial-cluster", &members].map(str::to_owned));
        Command { argv, workdir: data.to_owned(), env: BTreeMap::new(), stdin: None }
    }

    /// The command that makes data from a snapshot, as those of the first member of a new store.
    pub(super) fn restore(
        &self,
        program: &str,
        snapshot: &Path,
        (directory, key): (&OwnDirectory, &MemberKey),
    ) -> Command {
        let peer = self.peer_url();
        let argv = [
            program,
            "snapshot",
            "restore",
            &snapshot.display().to_string(),
            "--name",
            &self.name,
            "--initial-cluster",
            &format!("{}={peer}", self.name),
            "--initial-cluster-token",
            &key.identity,
            "--initial-advertise-peer-urls",
            &peer,
            "--data-dir",
            &directory.restored().display().to_string(),
        ];
        // The first API had other commands.
        let env = BTreeMap::from([("ETCDCTL_API".to_owned(), "3".to_owned())]);
        Command { argv: argv.map(str::to_owned).into(), workdir: directory.path.clone(), env, stdin: None }
    }

    /// What it says of itself. The members are read after something was read from a quorum, and are no older than that.
    pub(super) async fn answer(&self) -> MemberAnswer {
        // Of a store that was adopted, each of the others is asked, too.
        let patience = if self.is_adopted { PATIENCE.saturating_mul(3) } else { PATIENCE };
        let asked = observed::timeout(patience, self.asked()).await;
        let late = |_| Err(ProbeError::Unknown(format!("no answer within {}s", patience.as_secs())));
        asked.unwrap_or_else(late).unwrap_or_else(|error| MemberAnswer::Silent(error.to_string()))
    }

    /// Why it takes no writes although it serves, or should not.
    ///
    /// # Errors
    /// Nothing is known of it: it did not answer.
    pub(super) async fn alarm(&self) -> Result<Option<String>, ProbeError> {
        let authority = self.authority();
        let asked = observed::timeout(PATIENCE, errors(&authority, self.tls.as_ref())).await;
        let errors = asked.unwrap_or_else(|_| Err(ProbeError::Unknown("no answer in time".to_owned())))?;
        let is_raised = |alarm: &str| errors.iter().any(|error| error.contains(alarm));
        let raised = ALARMS.iter().find(|(alarm, _)| is_raised(alarm));
        Ok(raised.map(|(alarm, text)| format!("{text} (alarm {alarm})")))
    }

    async fn asked(&self) -> Result<MemberAnswer, ProbeError> {
        let authority = self.authority();
        let tls = self.tls.as_ref();
        let read = read_from_quorum(&authority, tls).await;
        let view = view(&authority, tls).await?;
        let facts = &view.facts;
        let role = facts.shards.values().map(|shard| shard.role).next();
        let own_id = facts.member_id.clone().unwrap_or_default();
        let own = facts.members.as_ref().and_then(|members| members.get(&own_id));
        if let Some(other) = own.and_then(|own| own.name.as_ref()).filter(|name| **name != self.name) {
            return Ok(MemberAnswer::Other(format!("{other} at {authority}")));
        }
        if role == Some(ShardRole::Learner) {
            return Ok(MemberAnswer::Learner);
        }
        read?;
        if self.is_adopted {
            return Ok(MemberAnswer::Serving(etcd_calls::membership(&view, Some(&own_id)).await));
        }
        Ok(MemberAnswer::Serving(Membership {
            own_id,
            is_leader: role == Some(ShardRole::Primary),
            cluster_id: None,
            leader: None,
            members: facts.members.clone().unwrap_or_default(),
        }))
    }

    /// Makes one step of a change. The error fits after "cannot ".
    pub(super) async fn make(&self, step: &ChangeStep) -> Result<(), String> {
        make_at(&self.authority(), self.tls.as_ref(), step).await
    }

    /// The revision of its data.
    pub(super) async fn revision(&self) -> Result<u64, String> {
        let authority = self.authority();
        let asked = post(&authority, self.tls.as_ref(), "/v3/maintenance/status", "{}");
        let asked = observed::timeout(PATIENCE, asked).await;
        let asked = asked.map_err(|_| format!("etcd does not answer within {}s", PATIENCE.as_secs()))?;
        let status = asked.map_err(|error| error.to_string())?;
        let revision =
            status.pointer("/header/revision").and_then(|revision| revision.as_str()?.parse().ok());
        revision.ok_or_else(|| "etcd does not say its revision".to_owned())
    }

    /// Has it give the space in its database that it does not need back to the disk. It answers once that is done, however long it takes.
    pub(super) async fn defragment(&self) -> Result<(), String> {
        let authority = self.authority();
        let asked = post(&authority, self.tls.as_ref(), "/v3/maintenance/defragment", "{}").await;
        asked.map(drop).map_err(|error| error.to_string())
    }

    /// Begins a snapshot of its data.
    pub(super) async fn snapshot(&self) -> Result<StreamedAnswer, String> {
        let authority = self.authority();
        let asked = post_streamed(&authority, self.tls.as_ref(), "/v3/maintenance/snapshot", "{}");
        let asked = observed::timeout(PATIENCE, asked).await;
        let asked = asked.map_err(|_| format!("etcd does not answer within {}s", PATIENCE.as_secs()))?;
        asked.map_err(|error| error.to_string())
    }

    /// What the other members say of this one, which the store knows by this id, or by its peer URL if that is not known.
    pub(super) async fn standing(&self, peers: &[String], store_id: Option<&String>) -> Standing {
        let own = self.peer_url();
        let others: Vec<&String> = peers.iter().filter(|url| **url != own).collect();
        if others.is_empty() {
            return Standing::Alone;
        }
        for url in others {
            let Some(authority) = self.client_of(url) else { continue };
            let asked = async {
                read_from_quorum(&authority, self.tls.as_ref()).await?;
                ask(&authority, self.tls.as_ref()).await
            };
            if let Ok(Ok(facts)) = observed::timeout(PATIENCE, asked).await
                && let Some(is_listed) = is_listed(&facts, store_id, &own)
            {
                return if is_listed { Standing::Listed } else { Standing::NotListed };
            }
        }
        Standing::Unknown
    }

    /// Where a member listens for clients that has this peer URL: all of them have the same ports.
    pub(super) fn client_of(&self, peer_url: &str) -> Option<String> {
        let address: SocketAddr = peer_url.split_once("://")?.1.parse().ok()?;
        Some(SocketAddr::new(address.ip(), self.settings.client_port).to_string())
    }
}

/// The program that restores snapshots on this node.
pub(super) fn restorer(settings: &EnsembleSettings) -> String {
    let named = settings.etcdutl.clone();
    let installed = || RESTORERS.into_iter().find(|program| is_there(program));
    named.unwrap_or_else(|| installed().unwrap_or("etcdutl").to_owned())
}

/// The flags by which etcd speaks TLS alone, and takes nobody without a certificate.
fn tls_flags(files: &CertificateFiles) -> Vec<String> {
    let side = |prefix: &str, files: SideFiles| {
        let file = |flag: &str, path: PathBuf| [format!("--{prefix}{flag}"), path.display().to_string()];
        let files = [
            file("cert-file", files.certificate),
            file("key-file", files.key),
            file("trusted-ca-file", files.ca),
        ];
        files.into_iter().flatten().chain([format!("--{prefix}client-cert-auth")]).collect::<Vec<_>>()
    };
    [side("", files.clients()), side("peer-", files.peers())].concat()
}

/// Whether the store has a member; `None` if its answer has no members.
fn is_listed(facts: &StoreFacts, store_id: Option<&String>, peer_url: &str) -> Option<bool> {
    let members = facts.members.as_ref()?;
    Some(match store_id {
        Some(id) => members.contains_key(id),
        None => members.values().any(|member| member.address.as_deref() == Some(peer_url)),
    })
}
