//! `[dns]`: where this machine answers for names, what they are called, and who is asked about others.

use std::net::SocketAddr;
use std::sync::Arc;

use bellwether_core::answer::zone::{Origin, Settings};
use bellwether_core::words::name::{Datacentre, Namespace, NodeName};
use bellwether_core::words::time::Span;
use bellwether_dns::config::{Config, Forward};

use super::ConfigError;
use super::check::Place;
use super::file;
use crate::names::Names;

/// Where names are answered when nothing else is said: for whoever is on this machine.
const DEFAULT_LISTEN: &str = "127.0.0.1:8600";

/// What DNS on this machine is made of.
pub(super) fn names(
    place: &Place,
    dns: &file::Dns,
    (namespace, node): (&Namespace, &NodeName),
) -> Result<Names, ConfigError> {
    let addresses = |key: &str, texts: &[String]| {
        let place = place.at(key);
        texts.iter().map(|text| place.read::<SocketAddr>(text)).collect::<Result<Vec<_>, _>>()
    };
    let listen = match &dns.listen {
        None => addresses("listen", &[DEFAULT_LISTEN.to_owned()])?,
        Some(listen) if listen.is_empty() => {
            return Err(place.at("listen").refuse("name at least one address"));
        }
        Some(listen) => addresses("listen", listen)?,
    };
    let datacentre = dns.datacentre.as_deref().unwrap_or(namespace.as_str());
    let datacentre: Datacentre = place.at("datacentre").read(datacentre)?;
    let mut settings = Settings::new(datacentre, node.clone());
    if let Some(domain) = &dns.domain {
        settings.domain.clone_from(domain);
    }
    let span = |key: &str, text: Option<&str>| text.map_or(Ok(Span::ZERO), |text| place.at(key).read(text));
    settings.ttl = span("ttl", dns.ttl.as_deref())?;
    settings.negative_ttl = span("negative_ttl", dns.negative_ttl.as_deref())?;
    let origin = Origin::new(settings).map_err(|error| place.refuse(format!("could not {error}")))?;
    let upstreams = addresses("forward", &dns.forward)?;
    let forward = (!upstreams.is_empty()).then(|| Forward::to(upstreams));
    Ok(Names { config: Config { forward, ..Config::on(listen) }, origin: Arc::new(origin) })
}
