//! The server of this machine: its configuration, its data directory, its authority, its port and its store.

use std::net::{IpAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use bellwether_api::client::{Access, CallError, Client, Identity};
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_server::authorities::trusted_file;
use bellwether_server::config::Config;
use bellwether_server::config::etcd::Etcd;
use bellwether_server::key_files::own_files;
use bellwether_server::pki::expires;
use tokio::net::TcpStream;

use super::connection::unready;
use super::finding::{Finding, FindingState};
use super::machine;

/// When the end of the authority's certificate is near: it has to be replaced before, or every node has to join again.
const SOON: Span = Span::from_secs(180 * 86_400);

/// What is found of etcd.
const CHECK_ETCD: &str = "server/etcd";

/// Longest time for a connection to an endpoint of etcd.
const CONNECT: Duration = Duration::from_secs(3);

pub(super) async fn look(path: &Path, findings: &mut Vec<Finding>) {
    let config = match Config::load(Some(path)) {
        Ok(config) => config,
        Err(error) => {
            let next = format!("mend {}", path.display());
            return findings.push(Finding::failed("server/configuration", format!("cannot {error}"), next));
        }
    };
    findings.push(Finding::ok("server/configuration", format!("{} is valid", path.display())));
    findings.push(machine::disk("server", &config.data_dir));
    let own = own_files(&config.data_dir);
    findings.extend(machine::private("server", &own, &config.data_dir.join("pki/ca.key")));
    let ca = trusted_file(&config.data_dir);
    let ca = match std::fs::read_to_string(&ca)
        .map_err(|error| format!("cannot read {}: {error}", ca.display()))
    {
        Ok(ca) => ca,
        Err(reason) => {
            let next = "make the installation: bellwether server init; or restore its data directory";
            return findings.push(Finding::failed("server/authority", reason, next));
        }
    };
    let now = Clock::system().now();
    findings.push(match expires(&ca) {
        Ok(end) => machine::certificate(
            "server/authority",
            (now, end),
            SOON,
            "replace it before: bellwether server ca rotate",
        ),
        Err(error) => {
            Finding::failed("server/authority", format!("cannot {error}"), "restore pki/ca.pem from a backup")
        }
    });
    findings.push(clock(config.clock_synchronized_file.as_deref()));
    findings.push(port(&config, ca).await);
    if let Some(etcd) = &config.etcd {
        findings.extend(members(etcd, &config.data_dir).await);
    }
}

/// Whether something says that the clock is synchronised.
fn clock(file: Option<&Path>) -> Finding {
    let check = "server/clock";
    let Some(file) = file else { return Finding::ok(check, "nothing is to say whether it is synchronised") };
    let shown = file.display();
    if file.exists() {
        return Finding::ok(check, format!("it is synchronised: {shown} exists"));
    }
    Finding::warning(
        check,
        format!("nothing says that it is synchronised: there is no {shown}"),
        "run systemd-timesyncd, or set clock_synchronized_file to what another program writes",
    )
}

/// Whether the server, or nobody, has its port.
async fn port(config: &Config, ca: String) -> Finding {
    let check = "server/port";
    match TcpListener::bind(config.listen) {
        Ok(_free) => Finding::warning(
            check,
            format!("the server does not run: nothing listens on {}", config.listen),
            "start it: systemctl start bellwether-server, or bellwether server run",
        ),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => match own_server(config, ca).await {
            Ok(()) => Finding::ok(check, format!("the server answers on {} and is ready", config.listen)),
            Err(error @ CallError::Problem(_)) => unready(check, &error),
            Err(error) => {
                let port = config.listen.port();
                let next = format!("see what has the port: ss -ltnp 'sport = :{port}'");
                let detail = format!("{} is in use, and not by this server: {error}", config.listen);
                Finding::failed(check, detail, next)
            }
        },
        Err(error) => {
            let detail = format!("cannot listen on {}: {error}", config.listen);
            Finding::failed(check, detail, "set listen to an address of this machine")
        }
    }
}

/// Asks the server of this machine by an address that its certificate has.
async fn own_server(config: &Config, ca: String) -> Result<(), CallError> {
    let port = config.listen.port();
    let own = |ip: IpAddr| if ip.is_unspecified() { None } else { Some(ip.to_string()) };
    let host = own(config.listen.ip()).filter(|ip| config.names.contains(ip));
    let host = host.or_else(|| config.names.first().cloned()).unwrap_or_else(|| "127.0.0.1".to_owned());
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let server = format!("https://{host}:{port}");
    Client::new(&Access { server, ca: Some(ca), identity: Identity::Nobody })?.ready().await
}

/// Whether the endpoints of etcd take connections, and the members that the server has learnt beside them.
async fn members(etcd: &Etcd, data_dir: &Path) -> Vec<Finding> {
    let learnt = etcd.learnt(data_dir).await;
    let (mut findings, mut others) = (Vec::new(), Vec::new());
    for endpoint in &etcd.endpoints {
        findings.push((endpoint, reachable(endpoint).await));
    }
    for member in learnt.iter().filter(|member| !etcd.endpoints.contains(member)) {
        let finding = reachable(member).await;
        others.push(if finding.state == FindingState::Ok {
            Finding::ok(CHECK_ETCD, format!("{member}, which the server has learnt, takes connections"))
        } else {
            Finding { state: FindingState::Warning, ..finding }
        });
    }
    let is_served = others.iter().any(|finding| finding.state == FindingState::Ok);
    let of_configured = findings.into_iter().map(|(endpoint, finding)| match finding.state {
        FindingState::Failed if is_served => Finding::warning(
            CHECK_ETCD,
            format!(
                "{endpoint} takes no connections: the server uses members of its etcd that it has learnt"
            ),
            "name those in [etcd] endpoints, if that member is gone for good",
        ),
        FindingState::Ok | FindingState::Warning | FindingState::Failed => finding,
    });
    of_configured.chain(others).collect()
}

/// Whether an endpoint of etcd takes connections. How it is, the server says once it runs.
async fn reachable(endpoint: &str) -> Finding {
    let check = CHECK_ETCD;
    let address = endpoint.split_once("://").map_or(endpoint, |(_, address)| address).trim_end_matches('/');
    let reason = match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => return Finding::ok(check, format!("{endpoint} takes connections")),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {CONNECT:?}"),
    };
    Finding::failed(
        check,
        format!("cannot connect to {endpoint}: {reason}"),
        "see whether etcd runs there: systemctl status etcd, etcdctl endpoint health",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_endpoint_that_is_gone_is_a_warning_while_a_member_that_was_learnt_is_there() {
        let (there, gone) =
            (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let [there_url, gone_url] = [&there, &gone].map(|of| format!("http://{}", of.local_addr().unwrap()));
        drop(gone);
        let etcd = Etcd {
            endpoints: vec![gone_url.clone()],
            prefix: "/bellwether".to_owned(),
            ca_file: None,
            identity: None,
            call_timeout: None,
            follow_members: true,
        };
        let dir = tempfile::tempdir().unwrap();
        let states = async |etcd: &Etcd| {
            members(etcd, dir.path()).await.iter().map(|finding| finding.state).collect::<Vec<_>>()
        };
        assert_eq!(states(&etcd).await, [FindingState::Failed]);
        let learnt = format!("cluster 1f\nconfigured {gone_url}\nmember {gone_url}\nmember {there_url}\n");
        std::fs::write(dir.path().join("etcd-members"), learnt).unwrap();
        assert_eq!(states(&etcd).await, [FindingState::Warning, FindingState::Ok]);
        drop(there);
        assert_eq!(states(&etcd).await, [FindingState::Failed, FindingState::Warning]);
        let alone = Etcd { follow_members: false, ..etcd };
        assert_eq!(states(&alone).await, [FindingState::Failed]);
    }

    #[tokio::test]
    async fn an_endpoint_is_reachable_while_something_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        assert_eq!(reachable(&endpoint).await.state, FindingState::Ok);
        drop(listener);
        let found = reachable(&endpoint).await;
        assert_eq!(found.state, FindingState::Failed);
        assert!(found.detail.starts_with(&format!("cannot connect to {endpoint}: ")), "{}", found.detail);
    }
}
