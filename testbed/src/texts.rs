//! What parts are started with: command lines and configuration files.

use std::path::Path;

use crate::options::Options;

/// Where a member answers clients.
pub(crate) const ETCD_PORT: u16 = 2379;

/// Where members speak to each other.
const PEER_PORT: u16 = 2380;

/// Where a server listens.
pub(crate) const SERVER_PORT: u16 = 7420;

/// What starts a member of the etcd whose members are `all`, each with its name and address.
pub(crate) fn etcd(
    options: &Options,
    me: (&str, &str),
    all: &[(String, String)],
    home: &Path,
) -> Vec<String> {
    let (name, address) = me;
    let peer = |(name, address): &(String, String)| format!("{name}=http://{address}:{PEER_PORT}");
    let cluster: Vec<String> = all.iter().map(peer).collect();
    let (client, peer) = (format!("http://{address}:{ETCD_PORT}"), format!("http://{address}:{PEER_PORT}"));
    let data = home.join("data").display().to_string();
    let mut argv: Vec<String> = [
        "etcd",
        "--name",
        name,
        "--data-dir",
        &data,
        "--listen-client-urls",
        &client,
        "--advertise-client-urls",
        &client,
        "--listen-peer-urls",
        &peer,
        "--initial-advertise-peer-urls",
        &peer,
        "--initial-cluster",
        &cluster.join(","),
        "--logger",
        "zap",
        "--log-level",
        "warn",
    ]
    .map(str::to_owned)
    .to_vec();
    if options.pre_vote {
        argv.push("--pre-vote".to_owned());
    }
    if let Some(quota) = options.quota_bytes {
        argv.extend(["--quota-backend-bytes".to_owned(), quota.to_string()]);
    }
    argv
}

/// A server's configuration; without endpoints it keeps its own store.
pub(crate) fn server(name: &str, address: &str, endpoints: &[String], home: &Path) -> String {
    let data = home.join("data").display().to_string();
    let etcd =
        if endpoints.is_empty() { String::new() } else { format!("[etcd]\nendpoints = {endpoints:?}\n") };
    format!(
        "name = {name:?}\ndata_dir = {data:?}\nlisten = \"{address}:{SERVER_PORT}\"\n\
         address = \"https://{address}:{SERVER_PORT}\"\n{etcd}"
    )
}

/// An agent's configuration: it calls each of `servers` until one answers.
pub(crate) fn agent(options: &Options, name: &str, servers: &[String], home: &Path) -> String {
    let data = home.join("data").display().to_string();
    let sections = options.sections.replace("{home}", &home.display().to_string());
    format!("[agent]\nname = {name:?}\nserver = {servers:?}\ndata_dir = {data:?}\n{sections}\n")
}
