//! The DNS settings of a configuration file, as text: checked here for agents and servers alike.

use std::net::SocketAddr;
use std::sync::Arc;

use bellwether_core::dns::zone::{ZoneOrigin, ZoneSettings};
use bellwether_core::words::name::{Datacentre, NodeName};
use bellwether_core::words::time::Span;

use crate::config::{Config, DnsLimits, ForwardConfig};

/// Default listening address: for programs on this machine only.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:8600";

/// The DNS settings of a configuration file.
#[derive(Debug, Clone, Default)]
pub struct DnsSettings {
    /// Listening addresses; [`DEFAULT_LISTEN`] by default.
    pub listen: Option<Vec<String>>,
    /// The domain; `bw.internal` by default.
    pub domain: Option<String>,
    /// The name of the datacentre in DNS names.
    pub datacentre: Option<String>,
    /// TTL of records; zero by default.
    pub ttl: Option<String>,
    /// TTL of "no such record"; zero by default.
    pub negative_ttl: Option<String>,
    /// Upstream resolvers for other names, which are refused without any.
    pub forward: Vec<String>,
    /// Ranges of the clients that are answered; local networks by default.
    pub allow: Option<Vec<String>>,
    /// Most answers over UDP in a second to each network that is not local; 50 by default.
    pub answers_per_second: Option<u32>,
}

/// The checked configuration.
#[derive(Debug, Clone)]
pub struct DnsConfig {
    /// Listening addresses and upstream resolvers.
    pub config: Config,
    /// The zone's domain and settings.
    pub origin: Arc<ZoneOrigin>,
}

/// The key with an invalid value, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    /// The key in its table.
    pub key: &'static str,
    /// The reason.
    pub reason: String,
}

impl DnsSettings {
    /// Checks every value. `datacentre` is the default for DNS names; `node` is the zone's name server.
    ///
    /// # Errors
    /// [`SettingError`] naming the key.
    pub fn check(self, datacentre: &str, node: NodeName) -> Result<DnsConfig, SettingError> {
        let listen = self.listen.unwrap_or_else(|| vec![DEFAULT_LISTEN.to_owned()]);
        if listen.is_empty() {
            return Err(SettingError { key: "listen", reason: "name at least one address".to_owned() });
        }
        let listen = addresses("listen", &listen)?;
        let datacentre = read::<Datacentre>("datacentre", self.datacentre.as_deref().unwrap_or(datacentre))?;
        let mut settings = ZoneSettings::new(datacentre, node);
        if let Some(domain) = self.domain {
            settings.domain = domain;
        }
        let span = |key, text: Option<String>| text.map_or(Ok(Span::ZERO), |text| read(key, &text));
        settings.ttl = span("ttl", self.ttl)?;
        settings.negative_ttl = span("negative_ttl", self.negative_ttl)?;
        let origin = ZoneOrigin::new(settings);
        let origin = origin.map_err(|error| SettingError { key: "domain", reason: error.to_string() })?;
        let upstreams = addresses("forward", &self.forward)?;
        let forward = (!upstreams.is_empty()).then(|| ForwardConfig::to(upstreams));
        let mut limits = DnsLimits::default();
        if let Some(allow) = self.allow {
            let ranges = allow.iter().map(|text| text.parse());
            limits.allowed =
                ranges.collect::<Result<_, _>>().map_err(|reason| SettingError { key: "allow", reason })?;
        }
        if let Some(most) = self.answers_per_second {
            limits.answers_per_second = most;
        }
        Ok(DnsConfig { config: Config { forward, limits, ..Config::on(listen) }, origin: Arc::new(origin) })
    }
}

fn addresses(key: &'static str, texts: &[String]) -> Result<Vec<SocketAddr>, SettingError> {
    texts.iter().map(|text| read(key, text)).collect()
}

fn read<T: std::str::FromStr<Err: std::fmt::Display>>(
    key: &'static str,
    text: &str,
) -> Result<T, SettingError> {
    text.parse().map_err(|error| SettingError { key, reason: format!("{text:?}: {error}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(setting: DnsSettings) -> String {
        let wrong = setting.check("dc1", "web-1".parse().unwrap()).unwrap_err();
        format!("{}: {}", wrong.key, wrong.reason)
    }

    #[test]
    fn empty_settings_have_defaults() {
        let names = DnsSettings::default().check("dc1", "web-1".parse().unwrap()).unwrap();
        assert_eq!(names.config.listen, ["127.0.0.1:8600".parse().unwrap()]);
        assert!(names.config.forward.is_none());
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_key() {
        let text = |text: &str| Some(text.to_owned());
        let other = DnsSettings::default;
        for (setting, reason) in [
            (DnsSettings { listen: Some(vec![]), ..other() }, "listen: name at least one"),
            (
                DnsSettings { listen: Some(vec!["53".into()]), ..other() },
                "listen: \"53\": invalid socket address",
            ),
            (DnsSettings { domain: text(".."), ..other() }, "domain: \"..\" is not a valid DNS domain"),
            (
                DnsSettings { datacentre: text("service"), ..other() },
                "domain: service is not a valid datacentre",
            ),
            (DnsSettings { datacentre: text("DC"), ..other() }, "datacentre: \"DC\""),
            (DnsSettings { ttl: text("5"), ..other() }, "ttl: \"5\""),
            (DnsSettings { forward: vec!["resolver".into()], ..other() }, "forward: \"resolver\""),
            (DnsSettings { allow: Some(vec!["lan".into()]), ..other() }, "allow: \"lan\" is neither"),
        ] {
            let said = refused(setting);
            assert!(said.starts_with(reason), "{said}");
        }
    }
}
