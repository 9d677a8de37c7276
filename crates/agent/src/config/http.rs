//! `[http]`: where this node serves the catalogue over HTTP, and to whom.

use std::net::SocketAddr;

use bellwether_core::words::name::{Datacentre, Namespace, NodeName};
use bellwether_rt::config_error::ConfigError;

use super::config_path::ConfigPath;
use super::file;
use crate::http::host::host_name;
use crate::http::settings::CatalogueHttp;

/// Default address: Consul's port, on the loopback interface.
const DEFAULT_LISTEN: &str = "127.0.0.1:8500";

/// The configuration of discovery over HTTP on this node.
pub(super) fn http(
    place: &ConfigPath,
    http: &file::HttpTable,
    namespace: &Namespace,
    node: &NodeName,
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
            "{address} can be reached from other machines, without authentication; set allow_remote = true to \
             allow that"
        )));
    }
    let datacentre = http.datacentre.as_deref().unwrap_or(namespace.as_str());
    let datacentre: Datacentre = place.at("datacentre").read(datacentre)?;
    let hosts = http.hosts.iter().map(|text| {
        host_name(text).ok_or_else(|| {
            place.at("hosts").refuse(format!("{text:?} is not the name of a host, without a port"))
        })
    });
    let hosts = hosts.collect::<Result<_, _>>()?;
    Ok(CatalogueHttp { listen, datacentre, namespace: namespace.clone(), node: node.clone(), hosts })
}
