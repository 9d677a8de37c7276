//! `[probe.NAME]`: a data store of this node, how it is asked, and how often.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_core::records::probes::MAX_PROBES;
use bellwether_core::words::name::ProbeName;
use bellwether_core::words::time::Span;
use bellwether_rt::config_error::ConfigError;

use super::command::{command, directory, setting};
use super::config_path::ConfigPath;
use super::file::ProbeTable;
use super::recipe::{Command, DEFAULT_CHECK_TIMEOUT, DEFAULT_INTERVAL};

/// The kinds of data stores, for messages.
const KINDS: &str = "etcd, redis, sentinel, postgresql, zookeeper and exec";

/// Shortest interval: a store that is asked more often is kept from its work.
const MIN_INTERVAL: Span = Span::from_millis(100);

/// A data store of this node, and how it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreProbe {
    /// How it is asked.
    pub kind: StoreKind,
    /// Time between two probes.
    pub interval: Span,
    /// Longest time of a probe.
    pub timeout: Span,
    /// Whether the store hands over its leadership before an entity whose policy names it is changed.
    pub handover: bool,
}

/// A kind of data store, with where it is and as whom it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreKind {
    /// etcd, by its JSON gateway.
    Etcd {
        /// Its host and port.
        authority: String,
        /// TLS, for an address that begins with `https`.
        tls: Option<TlsFiles>,
    },
    /// Redis, by `INFO`.
    Redis {
        /// Its host and port.
        address: String,
        /// As whom.
        login: Login,
    },
    /// Redis Sentinel, by `SENTINEL MASTERS`.
    Sentinel {
        /// Its host and port.
        address: String,
        /// As whom.
        login: Login,
    },
    /// PostgreSQL, by SQL.
    Postgresql {
        /// Its host and port; the directory of its socket and the port.
        address: String,
        /// As whom.
        login: Login,
    },
    /// `ZooKeeper`, by `srvr`.
    Zookeeper {
        /// Its host and port.
        address: String,
    },
    /// A command that writes the answer.
    Exec(Command),
}

/// As whom a data store is asked. Files are read at each probe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Login {
    /// Name of the user.
    pub user: Option<String>,
    /// The file with the password.
    pub password_file: Option<PathBuf>,
}

/// Files of a TLS client. Read at each probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the authorities that are trusted.
    pub ca_file: PathBuf,
    /// The client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Reads the tables of all probes.
pub(super) fn all(
    tables: BTreeMap<String, (PathBuf, ProbeTable)>,
) -> Result<BTreeMap<ProbeName, StoreProbe>, ConfigError> {
    let mut probes = BTreeMap::new();
    for (name, (path, table)) in tables {
        let place = ConfigPath::new(&path, format!("probe.{name}"));
        probes.insert(place.read(&name)?, probe(&place, &table)?);
        if probes.len() > MAX_PROBES {
            return Err(place.refuse(format!("more than {MAX_PROBES} probes on this node")));
        }
    }
    Ok(probes)
}

fn probe(place: &ConfigPath, table: &ProbeTable) -> Result<StoreProbe, ConfigError> {
    let kind = kind(place, table)?;
    Ok(StoreProbe {
        handover: handover(&place.at("handover"), &kind, table.handover)?,
        kind,
        interval: interval(&place.at("interval"), table.interval.as_deref())?,
        timeout: place.at("timeout").span(table.timeout.as_deref(), DEFAULT_CHECK_TIMEOUT)?,
    })
}

fn handover(place: &ConfigPath, kind: &StoreKind, wanted: bool) -> Result<bool, ConfigError> {
    let of = match kind {
        StoreKind::Etcd { .. } | StoreKind::Redis { .. } => return Ok(wanted),
        StoreKind::Sentinel { .. } => "sentinel",
        StoreKind::Postgresql { .. } => "postgresql",
        StoreKind::Zookeeper { .. } => "zookeeper",
        StoreKind::Exec(_) => "exec",
    };
    if wanted {
        let reason =
            format!("a probe of {of} cannot hand over the leadership; only those of etcd and redis can");
        return Err(place.refuse(reason));
    }
    Ok(false)
}

fn interval(place: &ConfigPath, text: Option<&str>) -> Result<Span, ConfigError> {
    let interval = place.span(text, DEFAULT_INTERVAL)?;
    if interval < MIN_INTERVAL { Err(place.refuse(format!("at least {MIN_INTERVAL}"))) } else { Ok(interval) }
}

fn kind(place: &ConfigPath, table: &ProbeTable) -> Result<StoreKind, ConfigError> {
    let named = [&table.etcd, &table.redis, &table.sentinel, &table.postgresql, &table.zookeeper];
    let count = named.iter().filter(|named| named.is_some()).count() + usize::from(table.exec.is_some());
    if count > 1 {
        return Err(place.refuse(format!(
            "it is of {count} kinds; name one of {KINDS}, and have another probe for each other store"
        )));
    }
    if count == 0 {
        return Err(place.refuse(format!("name one of {KINDS}, with where it is")));
    }
    let files = [("ca_file", &table.ca_file), ("cert_file", &table.cert_file), ("key_file", &table.key_file)];
    let unused = |keys: &[(&str, bool)], of: &str| match keys.iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(place.at(key).refuse(format!("a probe of {of} does not read it"))),
        None => Ok(()),
    };
    let login_given = [("user", table.user.is_some()), ("password_file", table.password_file.is_some())];
    let files_given = files.map(|(key, file)| (key, file.is_some()));
    let login = || -> Result<Login, ConfigError> {
        unused(&files_given, "this store")?;
        let file = table.password_file.as_deref().map(directory).transpose();
        let password_file = file.map_err(|reason| place.at("password_file").refuse(reason))?;
        Ok(Login { user: table.user.clone(), password_file })
    };
    if let Some(address) = &table.etcd {
        unused(&login_given, "etcd")?;
        return etcd(place, table, address);
    }
    if let Some(address) = &table.redis {
        return Ok(StoreKind::Redis { address: socket(&place.at("redis"), address)?, login: login()? });
    }
    if let Some(address) = &table.sentinel {
        return Ok(StoreKind::Sentinel { address: socket(&place.at("sentinel"), address)?, login: login()? });
    }
    if let Some(address) = &table.postgresql {
        let address = socket(&place.at("postgresql"), address)?;
        return Ok(StoreKind::Postgresql { address, login: login()? });
    }
    unused(&login_given, "this store")?;
    unused(&files_given, "this store")?;
    if let Some(address) = &table.zookeeper {
        return Ok(StoreKind::Zookeeper { address: socket(&place.at("zookeeper"), address)? });
    }
    let argv = table.exec.as_deref().unwrap_or_default();
    let setting = setting(place, &table.env, table.workdir.as_deref(), None)?;
    command(argv, &setting).map(StoreKind::Exec).map_err(|reason| place.at("exec").refuse(reason))
}

fn etcd(place: &ConfigPath, table: &ProbeTable, address: &str) -> Result<StoreKind, ConfigError> {
    let at = place.at("etcd");
    let form = || at.refuse("write an address like \"http://127.0.0.1:2379\"");
    let uri: http::Uri = address.parse().map_err(|_| form())?;
    let authority = uri.authority().filter(|authority| authority.port().is_some()).ok_or_else(form)?;
    if !matches!(uri.path(), "" | "/") {
        return Err(form());
    }
    let file = |key: &str, path: &Option<PathBuf>| {
        let path = path.as_deref().map(directory).transpose();
        path.map_err(|reason| place.at(key).refuse(reason))
    };
    let ca_file = file("ca_file", &table.ca_file)?;
    let cert = file("cert_file", &table.cert_file)?;
    let key = file("key_file", &table.key_file)?;
    let tls = match (uri.scheme_str(), ca_file, cert, key) {
        (Some("http"), None, None, None) => None,
        (Some("http"), ..) => {
            return Err(
                at.refuse("the address begins with http, so that no certificate is used; write https")
            );
        }
        (Some("https"), None, ..) => {
            return Err(place.at("ca_file").refuse("name the file of the authority to trust"));
        }
        (Some("https"), Some(ca_file), None, None) => Some(TlsFiles { ca_file, identity: None }),
        (Some("https"), Some(ca_file), Some(cert), Some(key)) => {
            Some(TlsFiles { ca_file, identity: Some((cert, key)) })
        }
        (Some("https"), ..) => return Err(place.refuse("cert_file and key_file belong together")),
        _ => return Err(form()),
    };
    Ok(StoreKind::Etcd { authority: authority.to_string(), tls })
}

/// A host and a port.
fn socket(place: &ConfigPath, address: &str) -> Result<String, ConfigError> {
    if address.contains('/') {
        return Err(place.refuse(format!("{address:?} is not HOST:PORT: write no scheme and no path")));
    }
    let parts =
        address.rsplit_once(':').filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    let wrong = || place.refuse(format!("{address:?} is not HOST:PORT"));
    parts.map(|_| address.to_owned()).ok_or_else(wrong)
}
