//! The table `[etcd]`: the etcd that several servers share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_rt::config_error::ConfigError;
use bellwether_store::{EtcdIdentity, EtcdSettings, remembered_members};
use serde::Deserialize;

use super::value::span;

/// Prefix of all keys, unless the configuration names one.
const PREFIX: &str = "/bellwether";

/// Interval between two looks at the members of etcd. One that failed is followed by a look at once.
const FOLLOW_EVERY: Duration = Duration::from_secs(10);

/// File in the data directory with the members of etcd.
const REMEMBERED: &str = "etcd-members";

/// The etcd that several servers share, validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Etcd {
    /// URLs of the members, `https://HOST:PORT`, at least one.
    pub endpoints: Vec<String>,
    /// Prefix of all keys.
    pub prefix: String,
    /// File with the authority of etcd's certificates; the system's own if absent.
    pub ca_file: Option<PathBuf>,
    /// Files of the client certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Deadline of one call, after which another member is tried.
    pub call_timeout: Option<Duration>,
    /// Whether the members that it has now are used beside the endpoints.
    pub follow_members: bool,
}

/// The table `[etcd]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    endpoints: Vec<String>,
    prefix: Option<String>,
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    call_timeout: Option<String>,
    follow_members: Option<bool>,
}

impl Etcd {
    /// The settings of the store, whose members are remembered in this directory.
    #[must_use]
    pub fn settings(&self, data_dir: &Path) -> EtcdSettings {
        let usual = EtcdSettings::new(self.endpoints.clone());
        let identity = self.identity.clone();
        EtcdSettings {
            ca_file: self.ca_file.clone(),
            identity: identity.map(|(cert_file, key_file)| EtcdIdentity { cert_file, key_file }),
            prefix: self.prefix.clone().into(),
            deadline: self.call_timeout.unwrap_or(usual.deadline),
            follow_every: self.follow_members.then_some(FOLLOW_EVERY),
            remembered: self.follow_members.then(|| data_dir.join(REMEMBERED)),
            ..usual
        }
    }
}

impl Etcd {
    /// URLs of the members that a server with this data directory has learnt; none if it follows none.
    pub async fn learnt(&self, data_dir: &Path) -> Vec<String> {
        match self.follow_members {
            true => remembered_members(&data_dir.join(REMEMBERED), &self.endpoints).await,
            false => Vec::new(),
        }
    }
}

impl Table {
    pub(super) fn check(self) -> Result<Etcd, ConfigError> {
        let value = ConfigError::value;
        if self.endpoints.is_empty() {
            return Err(value("etcd.endpoints", "it is empty; name at least one member".to_owned()));
        }
        for endpoint in &self.endpoints {
            let uri = endpoint.parse::<http::Uri>().ok();
            let known = uri.as_ref().is_some_and(|uri| {
                matches!(uri.scheme_str(), Some("http" | "https")) && uri.port_u16().is_some()
            });
            if !known {
                return Err(value("etcd.endpoints", format!("{endpoint:?} is not https://HOST:PORT")));
            }
        }
        let prefix = self.prefix.unwrap_or_else(|| PREFIX.to_owned());
        if prefix.is_empty() || prefix.ends_with('/') {
            return Err(value("etcd.prefix", format!("{prefix:?} is empty or ends with '/'")));
        }
        let identity = match (self.cert_file, self.key_file) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => return Err(value("etcd.key_file", "cert_file requires key_file".to_owned())),
            (None, Some(_)) => return Err(value("etcd.cert_file", "key_file requires cert_file".to_owned())),
        };
        let call_timeout = span("etcd.call_timeout", self.call_timeout)?.map(|span| span.to_duration());
        Ok(Etcd {
            endpoints: self.endpoints,
            prefix,
            ca_file: self.ca_file,
            identity,
            call_timeout,
            follow_members: self.follow_members.unwrap_or(true),
        })
    }
}
