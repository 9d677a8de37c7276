//! What Redis is started with, what it says of itself, and how it becomes the primary or follows another one. Each starts as a replica of an
//! address at which nobody listens: it takes no writes, and gives no data away, before it was ordered to.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_core::local::member::replication::ReplicationStep;
use bellwether_core::records::ensemble::RedisSettings;
use bellwether_core::records::member::Replication;
use bellwether_rt::observed;

use super::append_only::AppendOnlyInfo;
use super::certificates::CertificateFiles;
use super::redis_access::{AccessFiles, RedisAccess};
use super::redis_info::{NOBODY_HOST, NOBODY_PORT, Tells, is_stale, replication};
use crate::config::data_store::TlsFiles;
use crate::config::recipe::Command;
use crate::probe::answer::ProbeError;
use crate::probe::redis::Info;
use crate::probe::redis::handover::is_watched;
use crate::probe::resp::{Redis as Connection, Reply};

/// Longest time for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Seconds after which a replica takes a silent connection for lost; its primary says something each 5 s.
const REPLICATION_TIMEOUT: &str = "15";

/// Seconds for which a replica may be silent and still counts as one that has writes.
const MAX_LAG: &str = "10";

/// Longest time in milliseconds for which a handover keeps writers waiting; then the primary goes on as before.
const HANDOVER_MS: &str = "5000";

/// A Redis of this node.
#[derive(Debug, Clone)]
pub(super) struct Redis {
    settings: RedisSettings,
    address: IpAddr,
    certificates: Option<CertificateFiles>,
    tls: Option<TlsFiles>,
    /// Who may use it; `None` before that is known.
    access: Option<RedisAccess>,
    /// The settings that say so.
    users: PathBuf,
}

/// What a Redis says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RedisAnswer {
    /// It does not answer, for this reason.
    Silent(String),
    /// It loads its data.
    Loads,
    /// It serves.
    Serving {
        /// What it says of its replication.
        said: Replication,
        /// Whether a Sentinel watches it.
        is_watched: bool,
        /// Whether it is a replica that has not been connected for longer than a reconnection takes: what is read there is old.
        is_stale: bool,
        /// What it says of its append-only file.
        file: AppendOnlyInfo,
    },
}

impl Redis {
    pub(super) fn new(
        settings: RedisSettings,
        address: IpAddr,
        directory: &Path,
        access: Option<RedisAccess>,
    ) -> Self {
        let users = AccessFiles::within(directory).settings();
        let certificates = settings.tls.then(|| CertificateFiles::within(directory));
        let tls = certificates.as_ref().map(|files| files.clients().client());
        Self { settings, address, certificates, tls, access, users }
    }

    const fn scheme(&self) -> &'static str {
        if self.settings.tls { "rediss" } else { "redis" }
    }

    /// URL at which other members reach it.
    pub(super) fn peer_url(&self) -> String {
        format!("{}://{}", self.scheme(), self.client())
    }

    /// Where it serves clients and replicas.
    pub(super) const fn client(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.settings.port)
    }

    /// How many replicas it must have to take writes.
    pub(super) const fn min_replicas(&self) -> u32 {
        self.settings.min_replicas
    }

    /// The command that starts it.
    pub(super) fn command(&self, program: &str, data: &Path) -> Command {
        let (address, port) = (self.address.to_string(), self.settings.port.to_string());
        let (dir, min_replicas) = (data.display().to_string(), self.settings.min_replicas.to_string());
        let users = self.users.display().to_string();
        let settings: [&[&str]; 18] = [
            &["include", &users],
            &["bind", &address],
            &["dir", &dir],
            &["replicaof", NOBODY_HOST, NOBODY_PORT],
            &["replica-announce-ip", &address],
            &["replica-announce-port", &port],
            &["protected-mode", "no"],
            &["daemonize", "no"],
            &["appendonly", "yes"],
            &["save", ""],
            &["min-replicas-to-write", &min_replicas],
            &["min-replicas-max-lag", MAX_LAG],
            &["repl-timeout", REPLICATION_TIMEOUT],
            &["repl-ping-replica-period", "5"],
            &["repl-diskless-sync-delay", "0"],
            &["repl-diskless-load", "disabled"],
            &["replica-serve-stale-data", "yes"],
            &["replica-read-only", "yes"],
        ];
        let mut argv = vec![program.to_owned()];
        let flags = settings.iter().flat_map(|setting| {
            setting.iter().enumerate().map(|(index, word)| match index {
                0 => format!("--{word}"),
                _ => (*word).to_owned(),
            })
        });
        argv.extend(flags);
        match &self.certificates {
            None => argv.extend(["--port", &port].map(str::to_owned)),
            Some(files) => {
                let ports = ["--port", "0", "--tls-port", &port];
                let modes = ["--tls-auth-clients", "yes", "--tls-replication", "yes"];
                argv.extend(ports.into_iter().chain(modes).map(str::to_owned));
                let files = certificate_settings(files);
                argv.extend(files.into_iter().flat_map(|(name, file)| [format!("--{name}"), file]));
            }
        }
        Command { argv, workdir: data.to_owned(), env: BTreeMap::new(), stdin: None }
    }

    /// What it says of itself.
    pub(super) async fn answer(&self, tells: Tells) -> RedisAnswer {
        let asked = observed::timeout(PATIENCE, self.asked(tells)).await;
        let late = |_| Err(ProbeError::Unknown(format!("no answer within {}s", PATIENCE.as_secs())));
        asked.unwrap_or_else(late).unwrap_or_else(|error| RedisAnswer::Silent(error.to_string()))
    }

    async fn connect(&self) -> Result<Connection, ProbeError> {
        let address = self.client().to_string();
        let mut connection = Connection::connect_with(&address, self.tls.as_ref()).await?;
        if let Some((user, password)) = self.access.as_ref().map(RedisAccess::own_login) {
            match connection.call(&["AUTH", &user, password]).await {
                // One that was started without its users is open, and gets them.
                Err(error) if error.to_string().contains("WRONGPASS") => {}
                authenticated => drop(authenticated?),
            }
        }
        Ok(connection)
    }

    async fn asked(&self, tells: Tells) -> Result<RedisAnswer, ProbeError> {
        let mut connection = self.connect().await?;
        let mut info = Info::default();
        for section in ["server", "persistence", "replication", "keyspace"] {
            info.add(&connection.text(&["INFO", section]).await?);
        }
        if info.get("loading") == Some("1") {
            return Ok(RedisAnswer::Loads);
        }
        let is_watched = is_watched(&mut connection).await?;
        let said = replication(&info, self.scheme(), tells);
        let (is_stale, file) = (is_stale(&info), AppendOnlyInfo::of(&info));
        said.map(|said| RedisAnswer::Serving { said, is_watched, is_stale, file })
            .ok_or_else(|| ProbeError::Unknown(format!("{}: the answer has no role", self.client())))
    }

    /// Makes one step. The error fits after "cannot ".
    pub(super) async fn make(&self, step: &ReplicationStep) -> Result<(), String> {
        let (what, words) = match step {
            ReplicationStep::Done | ReplicationStep::Wait(_) => return Ok(()),
            ReplicationStep::Promote => {
                ("become the primary".to_owned(), command(["REPLICAOF", "NO", "ONE"]))
            }
            ReplicationStep::Detach => {
                ("follow nobody".to_owned(), command(["REPLICAOF", NOBODY_HOST, NOBODY_PORT]))
            }
            ReplicationStep::Follow(url) => {
                let (host, port) = host_and_port(url)?;
                (format!("follow {url}"), command(["REPLICAOF", &host, &port]))
            }
            ReplicationStep::HandOver(url) => {
                let (host, port) = host_and_port(url)?;
                let words = ["FAILOVER", "TO", &host, &port, "TIMEOUT", HANDOVER_MS];
                (format!("hand over to {url}"), words.map(str::to_owned).into())
            }
        };
        self.run(&words).await.map_err(|error| format!("{what}: {error}"))
    }

    /// Has it take writes only with so many replicas.
    pub(super) async fn ask_replicas(&self) -> Result<(), String> {
        let number = self.settings.min_replicas.to_string();
        let words = command(["CONFIG", "SET", "min-replicas-to-write"]).into_iter().chain([number]);
        let done = self.run(&words.collect::<Vec<_>>()).await;
        done.map_err(|error| format!("set min-replicas-to-write: {error}"))
    }

    /// Has it write its append-only file anew.
    pub(super) async fn rewrite(&self) -> Result<(), String> {
        let done = self.run(&["BGREWRITEAOF".to_owned()]).await;
        done.map_err(|error| format!("have it write its append-only file anew: {error}"))
    }

    /// Has it read its certificates anew.
    pub(super) async fn take_certificates(&self) -> Result<(), String> {
        let Some(files) = &self.certificates else { return Ok(()) };
        let settings =
            certificate_settings(files).into_iter().flat_map(|(name, file)| [name.to_owned(), file]);
        let words: Vec<String> = ["CONFIG", "SET"].map(str::to_owned).into_iter().chain(settings).collect();
        self.run(&words).await.map_err(|error| format!("have it read its certificates: {error}"))
    }

    /// Has it know these users from now on, without a restart. The error fits after "cannot ".
    pub(super) async fn take_access(&self, access: &RedisAccess) -> Result<(), String> {
        let failed = |error| format!("have it take its users: {error}");
        for words in access.commands() {
            self.run(&words).await.map_err(failed)?;
        }
        let surplus = access.surplus(&self.users().await.map_err(failed)?);
        if surplus.is_empty() {
            return Ok(());
        }
        let words: Vec<String> = ["ACL", "DELUSER"].map(str::to_owned).into_iter().chain(surplus).collect();
        self.run(&words).await.map_err(failed)
    }

    /// The names of its users.
    async fn users(&self) -> Result<BTreeSet<String>, String> {
        let asked = async { self.connect().await?.call(&["ACL", "USERS"]).await };
        let late = |_| Err(ProbeError::Unknown(format!("no answer within {}s", PATIENCE.as_secs())));
        let reply = observed::timeout(PATIENCE, asked).await.unwrap_or_else(late);
        let Reply::List(names) = reply.map_err(|error| error.to_string())? else {
            return Err("the answer is no list of users".to_owned());
        };
        let text = |name| if let Reply::Text(name) = name { Some(name) } else { None };
        Ok(names.into_iter().filter_map(text).collect())
    }

    async fn run(&self, words: &[String]) -> Result<(), String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let asked = async { self.connect().await?.call(&words).await };
        match observed::timeout(PATIENCE, asked).await {
            // One that fails over already says so.
            Ok(Err(error)) if error.to_string().contains("FAILOVER already in progress") => Ok(()),
            Ok(asked) => asked.map(drop).map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {}s", PATIENCE.as_secs())),
        }
    }
}

fn command(words: [&str; 3]) -> Vec<String> {
    words.map(str::to_owned).into()
}

/// The settings that name its certificates.
fn certificate_settings(files: &CertificateFiles) -> [(&'static str, String); 3] {
    let files = files.clients();
    [
        ("tls-cert-file", files.certificate.display().to_string()),
        ("tls-key-file", files.key.display().to_string()),
        ("tls-ca-cert-file", files.ca.display().to_string()),
    ]
}

/// The host and the port of a URL, as Redis takes them.
fn host_and_port(url: &str) -> Result<(String, String), String> {
    let address = url.split_once("://").and_then(|(_, address)| address.parse::<SocketAddr>().ok());
    let address = address.ok_or_else(|| format!("use {url:?} as the URL of a member"))?;
    Ok((address.ip().to_string(), address.port().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_starts_as_a_replica_of_nobody() {
        let settings = RedisSettings { port: 6379, min_replicas: 1, tls: true, password_secrets: Vec::new() };
        let redis = Redis::new(settings, "10.0.0.1".parse().unwrap(), Path::new("/m"), None);
        let argv = redis.command("redis-server", Path::new("/m/data")).argv.join(" ");
        assert!(
            argv.contains("--include /m/access.conf ")
                && argv.contains("--replicaof 127.0.0.1 1 ")
                && argv.contains("--port 0 --tls-port 6379"),
            "{argv}"
        );
        assert_eq!(host_and_port("rediss://[fe80::1]:5").unwrap(), ("fe80::1".to_owned(), "5".to_owned()));
        assert!(host_and_port("redis://name:5").is_err());
    }
}
