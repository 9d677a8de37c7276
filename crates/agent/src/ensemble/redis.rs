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

use super::certificates::CertificateFiles;
use super::redis_access::{AccessFiles, RedisAccess};
use crate::config::data_store::TlsFiles;
use crate::config::recipe::Command;
use crate::probe::answer::ProbeError;
use crate::probe::redis::Info;
use crate::probe::redis::handover::is_watched;
use crate::probe::redis::roles::{self, is_connected, joined, upstream};
use crate::probe::resp::{Redis as Connection, Reply};

/// Longest time for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The host of the address that a replica of nobody follows.
const NOBODY_HOST: &str = "127.0.0.1";

/// The port of that address, where nobody listens.
const NOBODY_PORT: &str = "1";

/// Seconds after which a replica takes a silent connection for lost; its primary says something each 5 s.
const REPLICATION_TIMEOUT: &str = "15";

/// Seconds without a connection after which what is read from a replica is old.
const STALE_AFTER: i64 = 5;

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
    pub(super) async fn answer(&self, tells_position: bool) -> RedisAnswer {
        let asked = observed::timeout(PATIENCE, self.asked(tells_position)).await;
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

    async fn asked(&self, tells_position: bool) -> Result<RedisAnswer, ProbeError> {
        let mut connection = self.connect().await?;
        let mut info = Info::default();
        for section in ["server", "persistence", "replication", "keyspace"] {
            info.add(&connection.text(&["INFO", section]).await?);
        }
        if info.get("loading") == Some("1") {
            return Ok(RedisAnswer::Loads);
        }
        let is_watched = is_watched(&mut connection).await?;
        let said = replication(&info, self.scheme(), tells_position);
        let is_stale = is_stale(&info);
        said.map(|said| RedisAnswer::Serving { said, is_watched, is_stale })
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

/// What the fields of `INFO` say of the replication; `None` if they are not those of Redis. A position that changes is told only if asked
/// for.
fn replication(info: &Info, scheme: &str, tells_position: bool) -> Option<Replication> {
    let is_primary = match info.get("role")? {
        "master" => true,
        "slave" => false,
        _ => return None,
    };
    let history = info.get("master_replid")?.to_owned();
    let former = info.get("master_replid2").filter(|id| id.bytes().any(|byte| byte != b'0'));
    let nobody = joined(NOBODY_HOST, NOBODY_PORT);
    let follows = upstream(info).filter(|address| *address != nobody);
    let is_copying = info.get("master_sync_in_progress") == Some("1");
    let streams = !is_primary && !is_copying && is_connected(info);
    let is_detached = !is_primary && follows.is_none();
    let position = if is_primary { "master_repl_offset" } else { "slave_repl_offset" };
    let offset = info.get(position).and_then(|text| text.parse().ok());
    let url = |address: String| format!("{scheme}://{address}");
    Some(Replication {
        is_primary,
        follows: follows.map(url),
        streams,
        is_whole: !is_copying,
        history,
        former: former.map(str::to_owned),
        offset: offset.filter(|_| tells_position || is_detached),
        replicas: if is_primary { replicas(info).into_iter().map(url).collect() } else { Vec::new() },
        takes_over: false,
        run: info.get("run_id")?.to_owned(),
        cannot_store: info.get("aof_last_write_status") == Some("err"),
        keys: (!is_primary && !streams).then(|| keys(info)),
    })
}

/// Whether a replica has lost its connection for longer than a reconnection takes.
fn is_stale(info: &Info) -> bool {
    let down = info.get("master_link_down_since_seconds").and_then(|text| text.parse::<i64>().ok());
    upstream(info).is_some() && !is_connected(info) && down.is_some_and(|down| down >= STALE_AFTER)
}

/// The number of keys in all databases.
fn keys(info: &Info) -> u64 {
    let of = |line: &str| line.split(',').find_map(|field| field.strip_prefix("keys=")?.parse::<u64>().ok());
    info.with_prefix("db").filter_map(of).sum()
}

/// The addresses of the replicas that a primary sends data to, in order.
fn replicas(info: &Info) -> Vec<String> {
    let known = roles::replicas(info);
    let mut connected: Vec<String> =
        known.into_iter().filter(|replica| replica.lag.is_ok()).map(|replica| replica.id).collect();
    connected.sort_unstable();
    connected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, tells_position: bool) -> Replication {
        let mut info = Info::default();
        info.add(&format!("run_id:77\n{text}").replace('\n', "\r\n"));
        replication(&info, "redis", tells_position).unwrap()
    }

    #[test]
    fn a_position_is_told_where_it_stands_still_or_was_asked_for() {
        let replica = "role:slave\nmaster_host:10.0.0.1\nmaster_port:6379\nmaster_link_status:up\n\
                       master_sync_in_progress:0\nslave_repl_offset:14\nmaster_replid:ab\nmaster_replid2:00\n";
        let streaming = said(replica, false);
        assert_eq!(streaming.follows.as_deref(), Some("redis://10.0.0.1:6379"));
        assert!(streaming.streams && streaming.is_whole && streaming.former.is_none());
        assert_eq!((streaming.offset, said(replica, true).offset), (None, Some(14)));
        let detached = replica.replace("10.0.0.1", NOBODY_HOST).replace("6379", NOBODY_PORT);
        let detached = said(&detached.replace(":up", ":down"), false);
        assert_eq!((detached.follows, detached.streams, detached.offset), (None, false, Some(14)));
        let keys =
            |databases: &str| said(&format!("{replica}{databases}").replace(":up", ":down"), false).keys;
        assert_eq!(
            (keys(""), keys("db0:keys=7,expires=0,avg_ttl=0\ndb3:keys=2,expires=1\n")),
            (Some(0), Some(9))
        );
        assert_eq!(streaming.keys, None);
        let copying = said(&replica.replace("progress:0", "progress:1"), false);
        assert!(!copying.streams && !copying.is_whole);
    }

    #[test]
    fn a_primary_names_the_replicas_that_get_its_data() {
        let primary = said(
            "role:master\nmaster_replid:ab\nmaster_replid2:cd\nmaster_repl_offset:20\n\
             slave0:ip=10.0.0.3,port=6379,state=online,offset=20,lag=0\n\
             slave1:ip=10.0.0.2,port=6379,state=online,offset=20,lag=1\n\
             slave2:ip=10.0.0.4,port=6379,state=wait_bgsave,offset=0,lag=0\n",
            false,
        );
        assert_eq!(primary.replicas, ["redis://10.0.0.2:6379", "redis://10.0.0.3:6379"]);
        assert!(primary.is_primary && primary.offset.is_none() && primary.keys.is_none());
        assert!(!primary.cannot_store);
        let full = said("role:master\nmaster_replid:ab\naof_last_write_status:err\n", false);
        assert!(full.cannot_store);
        assert_eq!(primary.former.as_deref(), Some("cd"));
    }

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
