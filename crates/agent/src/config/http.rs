//! `[http]`: where this machine answers for the catalogue over HTTP, and who may ask.

use std::net::SocketAddr;

use bellwether_core::words::name::{Datacentre, Namespace, NodeName};

use super::config_path::ConfigPath;
use super::error::ConfigError;
use super::file;
use crate::http::CatalogueHttp;

/// Where it is asked when nothing else is said: Consul's own port, for whoever is on this machine.
const DEFAULT_LISTEN: &str = "127.0.0.1:8500";

/// What discovery over HTTP on this machine is made of.
pub(super) fn http(
    place: &ConfigPath,
    http: &file::HttpTable,
    (namespace, node): (&Namespace, &NodeName),
) -> Result<CatalogueHttp, ConfigError> {
    let at = place.at("listen");
    let default = [DEFAULT_LISTEN.to_owned()];
    let texts = http.listen.as_deref().unwrap_or(&default);
    let listen: Vec<SocketAddr> = texts.iter().map(|text| at.read(text)).collect::<Result<_, _>>()?;
    if listen.is_empty() {
        return Err(at.refuse("name at least one address"));
    }
    let remote = listen.iter().find(|address| !address.ip().is_loopback());
    if let Some(address) = remote.filter(|_| !http.allow_remote) {
        return Err(at.refuse(format!(
            "{address} can be reached from other machines, and nobody is asked who they are; say allow_remote = \
             true if that is meant"
        )));
    }
    let datacentre = http.datacentre.as_deref().unwrap_or(namespace.as_str());
    let datacentre: Datacentre = place.at("datacentre").read(datacentre)?;
    Ok(CatalogueHttp { listen, datacentre, namespace: namespace.clone(), node: node.clone() })
}
