//! The server's configuration: one TOML file. Every key has a default; an unknown key is refused with the list of known keys.

pub mod deciders;
mod discovery;
pub mod etcd;
mod hooks;
mod provider;
mod sinks;
pub mod value;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bellwether_core::decide::liveness::context::PresenceLimits;
use bellwether_core::decide::table::RetentionLimits;
use bellwether_core::words::name::{ProviderName, ServerName};
use bellwether_rt::config_error::ConfigError;
use deciders::DeciderSettings;
use etcd::Etcd;
use serde::Deserialize;
use value::span;

use crate::discovery::settings::DiscoverySettings;
use crate::hooks::settings::HookSettings;
use crate::http::limits::ConcurrencyLimits;
use crate::names::{self, ServerDns};
use crate::secrets::provider::ProviderSpec;
use crate::sinks::settings::SinkSettings;
use crate::store_rules::StoreRules;

/// Address of the TLS listener, unless the configuration names one.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:7420";

/// What exists once the system clock is synchronised by systemd-timesyncd, unless the configuration names another file.
const CLOCK_SYNCHRONIZED: &str = "/run/systemd/timesync/synchronized";

/// Name of a server that has a store of its own, unless the configuration names it.
const DEFAULT_NAME: &str = "server";

/// The server's configuration, validated.
#[derive(Debug, Clone)]
pub struct Config {
    /// Directory of the store, the keys and the first admin token. One server per directory.
    pub data_dir: PathBuf,
    /// Address of the TLS listener. Port 0 picks a free one.
    pub listen: SocketAddr,
    /// Address of a listener without TLS: loopback only, used by `dev` and `demo`.
    pub plain_listen: Option<SocketAddr>,
    /// Names and addresses in the server's certificate.
    pub names: Vec<String>,
    /// How long a node may be silent, and how many events are kept.
    pub settings: DeciderSettings,
    /// Tokens and certificate authority for the hooks of policies.
    pub hooks: HookSettings,
    /// DNS on this server; none if it does not answer DNS.
    pub dns: Option<ServerDns>,
    /// This server's name, unique among the servers of the installation.
    pub name: ServerName,
    /// URL at which agents, people and other servers reach this server, unless that is where it listens.
    pub address: Option<String>,
    /// How this server guards against defects of a shared store.
    pub rules: StoreRules,
    /// The etcd that several servers share; none for a store of this server's own, in its data directory.
    pub etcd: Option<Etcd>,
    /// What this server does when its own store failed.
    pub on_store_failure: OnStoreFailure,
    /// A file that exists once the system clock is synchronised, looked at when that is far later than the time at which this server ran
    /// last; none if the system clock is believed in any case.
    pub clock_synchronized_file: Option<PathBuf>,
    /// The programs that read secrets from elsewhere, by the names that secrets use.
    pub secret_providers: BTreeMap<ProviderName, ProviderSpec>,
    /// Where sinks may send events.
    pub sinks: SinkSettings,
    /// Where lists of members of clusters may be.
    pub discovery: DiscoverySettings,
    /// Most requests of each class at the same time.
    pub classes: ConcurrencyLimits,
}

/// What a server does when the store in its own data directory failed: its disk, or something damaged in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStoreFailure {
    /// It ends with a failure, so that its supervisor starts it again: then its files are checked.
    #[default]
    Exit,
    /// It goes on answering reads, and refuses every change until somebody restarts it.
    Stay,
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    data_dir: Option<PathBuf>,
    listen: Option<String>,
    names: Option<Vec<String>>,
    suspect_after: Option<String>,
    unreachable_after: Option<String>,
    events_kept: Option<u64>,
    services_kept: Option<String>,
    runs_kept: Option<String>,
    hooks: Option<hooks::Table>,
    hook_tokens: Option<BTreeMap<String, toml::Value>>,
    dns: Option<names::DnsTable>,
    name: Option<String>,
    address: Option<String>,
    reconnect_within: Option<String>,
    etcd: Option<etcd::Table>,
    on_store_failure: Option<OnStoreFailure>,
    clock_synchronized_file: Option<PathBuf>,
    secret_providers: Option<BTreeMap<String, provider::Table>>,
    sinks: Option<sinks::Table>,
    discovery: Option<discovery::Table>,
}

impl Config {
    /// Loads the configuration in `file`; the defaults without a file.
    ///
    /// # Errors
    /// [`ConfigError`] naming the file, key and reason.
    pub fn load(file: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = file else { return Self::check(File::default()) };
        Self::check(ConfigError::read_toml(path)?).map_err(|error| error.in_file(path))
    }

    fn check(file: File) -> Result<Self, ConfigError> {
        let value = ConfigError::value;
        let listen = file.listen.as_deref().unwrap_or(DEFAULT_LISTEN);
        let listen: SocketAddr = listen
            .parse()
            .map_err(|error| value("listen", format!("{listen:?} is not ADDRESS:PORT: {error}")))?;
        let defaults = PresenceLimits::default();
        let limits = PresenceLimits {
            suspect: span("suspect_after", file.suspect_after)?.unwrap_or(defaults.suspect),
            unreachable: span("unreachable_after", file.unreachable_after)?.unwrap_or(defaults.unreachable),
            reconnect: span("reconnect_within", file.reconnect_within)?.unwrap_or(defaults.reconnect),
        };
        if limits.unreachable <= limits.suspect {
            let reason =
                format!("{} is not longer than suspect_after {}", limits.unreachable, limits.suspect);
            return Err(value("unreachable_after", reason));
        }
        let kept = kept(file.events_kept, file.services_kept, file.runs_kept)?;
        let dns = file.dns.map(|table| {
            table.check().map_err(|wrong| value("dns", format!("{}: {}", wrong.key, wrong.reason)))
        });
        let local = || vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        let etcd = file.etcd.map(etcd::Table::check).transpose()?;
        let sinks = file.sinks.unwrap_or_default().check()?;
        let discovery = file.discovery.unwrap_or_default().check(&sinks)?;
        let config = Self {
            name: own_name(file.name, etcd.is_some())?,
            address: file.address.map(address).transpose()?,
            rules: StoreRules::of(etcd.is_some()),
            etcd,
            on_store_failure: file.on_store_failure.unwrap_or_default(),
            clock_synchronized_file: Some(
                file.clock_synchronized_file.unwrap_or_else(|| PathBuf::from(CLOCK_SYNCHRONIZED)),
            ),
            secret_providers: provider::all(file.secret_providers.unwrap_or_default())?,
            sinks,
            discovery,
            classes: ConcurrencyLimits::default(),
            data_dir: file.data_dir.unwrap_or_else(|| PathBuf::from("/var/lib/bellwether/server")),
            listen,
            plain_listen: None,
            names: file.names.unwrap_or_else(local),
            settings: DeciderSettings { limits, kept },
            dns: dns.transpose()?,
            hooks: file.hooks.unwrap_or_default().check(file.hook_tokens.unwrap_or_default())?,
        };
        Ok(config.listening_on(listen).named_in_certificate())
    }

    /// The certificate is for the host of the address that others use, too.
    fn named_in_certificate(mut self) -> Self {
        let host = self.address.as_deref().and_then(|address| address.parse::<http::Uri>().ok());
        let host = host.and_then(|uri| Some(uri.host()?.trim_matches(['[', ']']).to_owned()));
        if let Some(host) = host.filter(|host| !self.names.contains(host)) {
            self.names.push(host);
        }
        self
    }

    /// The address under which others reach the server that listens here, as far as the configuration says it: a server that listens on
    /// all addresses has the first of its names that is not only this machine's own.
    #[must_use]
    pub fn advertised(&self, listens: SocketAddr) -> Option<String> {
        if let Some(address) = &self.address {
            return Some(address.clone());
        }
        if !listens.ip().is_unspecified() {
            return Some(format!("https://{listens}"));
        }
        let is_own = |name: &str| {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        };
        let name = self.names.iter().find(|name| !is_own(name))?;
        let is_v6 = name.parse::<std::net::Ipv6Addr>().is_ok();
        let host = if is_v6 { format!("[{name}]") } else { name.clone() };
        Some(format!("https://{host}:{}", listens.port()))
    }

    /// The same configuration with another address to listen on, which is added to the names in the certificate.
    #[must_use]
    pub fn listening_on(mut self, address: SocketAddr) -> Self {
        let name = address.ip().to_string();
        if !address.ip().is_unspecified() && !self.names.contains(&name) {
            self.names.push(name);
        }
        self.listen = address;
        self
    }

    /// The same configuration, in which nothing else has to speak for the system clock if it is accepted.
    #[must_use]
    pub fn accepting_clock(mut self, is_accepted: bool) -> Self {
        self.clock_synchronized_file.take_if(|_| is_accepted);
        self
    }
}

/// What is kept, and for how long.
fn kept(
    events: Option<u64>,
    services: Option<String>,
    runs: Option<String>,
) -> Result<RetentionLimits, ConfigError> {
    let defaults = RetentionLimits::default();
    let events = events.unwrap_or(defaults.events);
    if events < 1_000 {
        return Err(ConfigError::value("events_kept", format!("{events} is below 1000")));
    }
    let services = span("services_kept", services)?.unwrap_or(defaults.services);
    let runs = span("runs_kept", runs)?.unwrap_or(defaults.runs);
    Ok(RetentionLimits { events, services, runs })
}

/// The server's name. It is required where servers share a store.
fn own_name(name: Option<String>, shares: bool) -> Result<ServerName, ConfigError> {
    let value = |reason: String| ConfigError::value("name", reason);
    match name {
        Some(name) => ServerName::parse(&name).map_err(|error| value(error.to_string())),
        None if shares => Err(value("missing; each server that shares an etcd needs a name".to_owned())),
        None => ServerName::parse(DEFAULT_NAME).map_err(|error| value(error.to_string())),
    }
}

fn address(text: String) -> Result<String, ConfigError> {
    let refuse = |reason: String| ConfigError::value("address", reason);
    let uri: http::Uri =
        text.parse().map_err(|error| refuse(format!("{text:?} is not https://HOST:PORT: {error}")))?;
    let whole = uri.scheme_str() == Some("https") && uri.host().is_some() && matches!(uri.path(), "" | "/");
    if whole {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err(refuse(format!("{text:?} is not https://HOST:PORT")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str, look: impl FnOnce(Result<Config, ConfigError>)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        look(Config::load(Some(file.path())));
    }

    #[test]
    fn an_empty_file_is_a_complete_configuration() {
        with("", |config| assert_eq!(config.unwrap().listen.to_string(), DEFAULT_LISTEN));
    }

    #[test]
    fn the_address_that_others_use_is_in_the_certificate_and_none_is_made_up() {
        with("address = \"https://cp-1.example:7420\"", |config| {
            let config = config.unwrap();
            assert!(config.names.contains(&"cp-1.example".to_owned()), "{:?}", config.names);
            assert_eq!(config.advertised(config.listen).as_deref(), Some("https://cp-1.example:7420"));
        });
        with("address = \"https://[fd00::1]:7420\"", |config| {
            assert!(config.unwrap().names.contains(&"fd00::1".to_owned()));
        });
        with("listen = \"0.0.0.0:7420\"", |config| {
            let config = config.unwrap();
            assert_eq!(config.advertised(config.listen), None);
        });
        with("listen = \"[::]:7420\"\nnames = [\"localhost\", \"fd00::1\", \"cp-1\"]", |config| {
            let config = config.unwrap();
            assert_eq!(config.advertised(config.listen).as_deref(), Some("https://[fd00::1]:7420"));
        });
        with("listen = \"10.0.0.1:7420\"", |config| {
            let config = config.unwrap();
            assert_eq!(config.advertised(config.listen).as_deref(), Some("https://10.0.0.1:7420"));
        });
    }

    #[test]
    fn unknown_keys_wrong_units_and_contradictions_are_refused_with_their_place() {
        let cases = [
            ("listn = \"x\"", "unknown field `listn`"),
            ("suspect_after = \"5\"", ": \"5\" is not a duration"),
            ("suspect_after = \"1m\"", "is not longer than suspect_after 1m"),
            ("listen = \"nowhere\"", "use listen"),
            ("events_kept = 1", "below 1000"),
            ("on_store_failure = \"panic\"", "expected `exit` or `stay`"),
            ("[hook_tokens]\n\"a b\" = { file = \"/x\", urls = [\"https://x\"] }", "use hook_tokens"),
            ("[hook_tokens]\nboard = \"/x\"", "it is sent to these URLs alone"),
            ("[hook_tokens]\nboard = { file = \"/x\", urls = [] }", "name at least one"),
            ("[hook_tokens]\nboard = { file = \"/x\", urls = [\"board\"] }", "\"board\" is not a URL like"),
            ("[hook_tokens]\nboard = { file = \"/x\", urls = [\"https://b/%2e%2e/\"] }", "is not a URL like"),
            ("[hook_tokens]\nboard = { file = \"/x\", urls = [\"https://b/?a\"] }", "is not a URL like"),
            ("[hooks]\nallow_addresses = [\"a\"]", "neither an address nor"),
            ("[secret_providers.vault]\ncommand = []", ": vault: command is empty"),
            ("[secret_providers.vault]\ncommand = [\"a\"]\ntimeout = \"5\"", "is not a duration"),
            ("[hooks]\nca = \"/x\"", "unknown field `ca`"),
            ("[sinks]\nallow_addresses = [\"a\"]", "neither an address nor"),
            ("[sinks]\ndirectory = \"events\"", "not an absolute path"),
            ("[discovery]\ndirectory = \"lists\"", "not an absolute path"),
        ];
        for (text, reason) in cases {
            with(text, |config| {
                let refusal = config.unwrap_err().to_string();
                assert!(refusal.contains(reason), "{text}: {refusal}");
                assert!(refusal.contains(" /"), "the file is named: {refusal}");
            });
        }
    }
}
