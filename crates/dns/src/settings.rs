//! What a configuration file says of DNS, as text: checked here once, for agents and servers alike.

use std::net::SocketAddr;
use std::sync::Arc;

use bellwether_core::dns::zone::{ZoneOrigin, ZoneSettings};
use bellwether_core::words::name::{Datacentre, NodeName};
use bellwether_core::words::time::Span;

use crate::config::{Config, ForwardConfig};

/// Where names are answered when nothing else is said: for whoever is on this machine.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:8600";

/// What a configuration file says.
#[derive(Debug, Clone, Default)]
pub struct DnsSettings {
    /// Where to listen; [`DEFAULT_LISTEN`] if not said.
    pub listen: Option<Vec<String>>,
    /// The domain; `bw.internal` if not said.
    pub domain: Option<String>,
    /// The datacentre's name in names.
    pub datacentre: Option<String>,
    /// How long answers may be kept; not at all if not said.
    pub ttl: Option<String>,
    /// How long "there is none" may be kept; not at all if not said.
    pub negative_ttl: Option<String>,
    /// Who is asked about other names; they are refused if nobody is named.
    pub forward: Vec<String>,
}

/// DNS as it is to be served.
#[derive(Debug, Clone)]
pub struct DnsConfig {
    /// Where it listens, and whom it asks about other names.
    pub config: Config,
    /// What the zone is called.
    pub origin: Arc<ZoneOrigin>,
}

/// Which key says nothing allowed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    /// The key in its table.
    pub key: &'static str,
    /// Why not.
    pub reason: String,
}

impl DnsSettings {
    /// Checks every value. Names say `datacentre` unless the setting has another; `node` is the zone's name server.
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
        let origin =
            origin.map_err(|error| SettingError { key: "domain", reason: format!("could not {error}") })?;
        let upstreams = addresses("forward", &self.forward)?;
        let forward = (!upstreams.is_empty()).then(|| ForwardConfig::to(upstreams));
        Ok(DnsConfig { config: Config { forward, ..Config::on(listen) }, origin: Arc::new(origin) })
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
    fn nothing_said_is_a_whole_setting() {
        let names = DnsSettings::default().check("dc1", "web-1".parse().unwrap()).unwrap();
        assert_eq!(names.config.listen, ["127.0.0.1:8600".parse().unwrap()]);
        assert!(names.config.forward.is_none());
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        let text = |text: &str| Some(text.to_owned());
        let other = DnsSettings::default;
        for (setting, reason) in [
            (DnsSettings { listen: Some(vec![]), ..other() }, "listen: name at least one"),
            (
                DnsSettings { listen: Some(vec!["53".into()]), ..other() },
                "listen: \"53\": invalid socket address",
            ),
            (DnsSettings { domain: text(".."), ..other() }, "domain: could not use"),
            (
                DnsSettings { datacentre: text("service"), ..other() },
                "domain: could not use service as datacentre",
            ),
            (DnsSettings { datacentre: text("DC"), ..other() }, "datacentre: \"DC\""),
            (DnsSettings { ttl: text("5"), ..other() }, "ttl: \"5\""),
            (DnsSettings { forward: vec!["resolver".into()], ..other() }, "forward: \"resolver\""),
        ] {
            let said = refused(setting);
            assert!(said.starts_with(reason), "{said}");
        }
    }
}
