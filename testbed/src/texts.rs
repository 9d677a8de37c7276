//! Command lines and configuration files of the parts.

use std::path::Path;

use crate::options::Options;

/// Port on which a member serves clients.
pub(crate) const ETCD_PORT: u16 = 2379;

/// Port on which members talk to each other.
const PEER_PORT: u16 = 2380;

/// Port on which a server listens.
pub(crate) const SERVER_PORT: u16 = 7420;

/// The command line of an etcd member; `all` lists every member's name and address.
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

/// A server's configuration; without endpoints it uses its embedded store.
pub(crate) fn server(name: &str, address: &str, endpoints: &[String], home: &Path) -> String {
    let data = home.join("data").display().to_string();
    let etcd =
        if endpoints.is_empty() { String::new() } else { format!("[etcd]\nendpoints = {endpoints:?}\n") };
    format!(
        "name = {name:?}\ndata_dir = {data:?}\nlisten = \"{address}:{SERVER_PORT}\"\n\
         address = \"https://{address}:{SERVER_PORT}\"\n{etcd}"
    )
}

/// An agent's configuration with the `servers` to try in turn.
pub(crate) fn agent(options: &Options, name: &str, servers: &[String], home: &Path) -> String {
    let data = home.join("data").display().to_string();
    let sections = options.sections.replace("{home}", &home.display().to_string());
    format!("[agent]\nname = {name:?}\nserver = {servers:?}\ndata_dir = {data:?}\n{sections}\n")
}
