//! The agent of this machine: its configuration, its identity, its data directory, and what it says of itself.

use std::path::Path;

use bellwether_agent::config::Config;
use bellwether_agent::identity::{self, NodeCertificate};
use bellwether_agent::local::client;
use bellwether_agent::status::{self, AgentStatus};
use bellwether_api::client::{Access, CallError, Client, Identity, UnreachableCause};
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;

use super::connection::unready;
use super::finding::Finding;
use super::machine;
use crate::show::time::date;

/// When the end of a node's certificate is near: it is renewed at half of its 72 h.
const SOON: Span = Span::from_secs(24 * 3_600);

pub(super) async fn look(path: &Path, findings: &mut Vec<Finding>) {
    let config = match Config::load(path) {
        Ok(config) => config,
        Err(error) => {
            let next = format!("mend {}, and see: bellwether agent run --check", path.display());
            return findings.push(Finding::failed("agent/configuration", format!("cannot {error}"), next));
        }
    };
    findings.push(Finding::ok("agent/configuration", format!("{} is valid", path.display())));
    for reason in config.refused_definitions.values() {
        let next = "mend the definition: the agent runs without it";
        findings.push(Finding::warning("agent/services", format!("cannot {reason}"), next));
    }
    findings.push(machine::disk("agent", &config.data_dir));
    devices(&config, findings);
    findings.extend(config.ensembles.as_ref().and_then(|settings| members(&settings.dir)));
    let is_distrusted = match identity::certificate(&config.data_dir) {
        Ok(Some(certificate)) => joined(&config, certificate, findings).await,
        Ok(None) => {
            let next = "join: bellwether agent join --server ADDRESS --token-file FILE --name NODE";
            let detail = format!("this node has not joined: {} has no identity", config.data_dir.display());
            return findings.push(Finding::failed("agent/identity", detail, next));
        }
        Err(error) => {
            let next = "run this as root; if the file is damaged, join again: bellwether agent join --force";
            return findings.push(Finding::failed("agent/identity", format!("cannot {error}"), next));
        }
    };
    match client::status(&config.data_dir).await {
        Ok(status) => {
            running(&status, findings);
            findings.push(connection(&status, is_distrusted.then(|| join_again(&config))));
        }
        Err(error) => {
            let last = status::read(&config.data_dir).ok();
            if let Some(reason) = last.and_then(|status| status.decommissioned) {
                let detail = format!("the agent has ended: {reason}");
                return findings.push(Finding::failed("agent/process", detail, join_again(&config)));
            }
            let running = status::running_process(&config.data_dir);
            findings.push(silent(running, &error.to_string()));
        }
    }
}

/// An agent that does not answer; `running` is its process, if it runs all the same.
fn silent(running: Option<String>, error: &str) -> Finding {
    let check = "agent/process";
    match running {
        Some(process) => {
            let detail = format!("the agent runs, process {process}, and does not answer: cannot {error}");
            Finding::failed(check, detail, "restart it: systemctl restart bellwether-agent")
        }
        None => {
            let next = "start it: systemctl start bellwether-agent, or bellwether agent run";
            Finding::failed(check, error, next)
        }
    }
}

/// How a machine that the control plane does not know any more becomes a node again.
fn join_again(config: &Config) -> String {
    let (name, dir) = (&config.name, config.data_dir.display());
    let server = config.servers.join(",");
    format!(
        "join again with a new join token (bellwether join-token create --node {name}): bellwether agent join --force \
         --server {server} --token-file FILE --name {name} --data-dir {dir}"
    )
}

/// The devices that ensembles may have by their paths.
fn devices(config: &Config, findings: &mut Vec<Finding>) {
    let paths = config.ensembles.iter().flat_map(|settings| &settings.devices.paths);
    for (name, path) in paths.filter(|(_, path)| !path.exists()) {
        let detail = format!("{}, device {name} of [ensembles], does not exist", path.display());
        let next = "mend device_paths, or put the device in";
        findings.push(Finding::warning("agent/devices", detail, next));
    }
}

/// Room for the members of ensembles, of which former ones take some; `None` before there was one.
fn members(dir: &Path) -> Option<Finding> {
    let entries = std::fs::read_dir(dir).ok()?.filter_map(Result::ok);
    let is_former = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().contains(".set-aside-");
    let former = entries.filter(is_former).count();
    let mut room = machine::disk("agent/ensembles", dir);
    if former > 0 {
        let noun =
            if former == 1 { "directory of a former member is" } else { "directories of former members are" };
        room.detail.push_str(&format!("; {former} {noun} set aside there"));
        let remove = |next| format!("{next}: remove each *.set-aside-* that nobody needs");
        room.next = room.next.map(remove);
    }
    Some(room)
}

/// Of a node that has joined: its key, its certificate, its clock, its servers. Whether it does not trust the certificate of one of these.
async fn joined(config: &Config, certificate: NodeCertificate, findings: &mut Vec<Finding>) -> bool {
    findings.extend(machine::private("agent", &identity::own_files(&config.data_dir), &certificate.key));
    let now = Clock::system().now();
    let next = "have the agent run and reach a server, which renews it; once it has expired, join again: \
                bellwether agent join --force";
    findings.push(machine::certificate("agent/certificate", (now, certificate.expires), SOON, next));
    if now < certificate.issued {
        let detail = format!(
            "the clock of this machine is behind: the certificate is from {}",
            date(certificate.issued.as_millis())
        );
        let next = "set the clock, and have it synchronised: timedatectl set-ntp true";
        findings.push(Finding::failed("agent/clock", detail, next));
    }
    let mut is_distrusted = false;
    for server in &config.servers {
        let access =
            Access { server: server.clone(), ca: Some(certificate.ca.clone()), identity: Identity::Nobody };
        let ready = match Client::new(&access) {
            Ok(client) => client.ready().await,
            Err(error) => Err(error),
        };
        findings.push(match ready {
            Ok(()) => Finding::ok("agent/server", format!("{server} answers and is ready")),
            Err(
                error @ (CallError::Unreachable { cause: UnreachableCause::Certificate, .. }
                | CallError::NoneReachable { cause: UnreachableCause::Certificate, .. }),
            ) => {
                is_distrusted = true;
                let next = format!(
                    "if the certificate only lacks that address, add it to names in server.toml; else the authority was replaced while \
                     this node was away: {}",
                    join_again(config)
                );
                Finding::failed("agent/server", error.to_string(), next)
            }
            Err(error) => unready("agent/server", &error),
        });
    }
    is_distrusted
}

/// Whether a running agent is connected; `again` is the next step of one that does not trust its servers.
fn connection(status: &AgentStatus, again: Option<String>) -> Finding {
    if let Some(since) = &status.connected_since_ms {
        let detail = format!("connected to {} since {}", status.server, date(*since));
        return Finding::ok("agent/connection", detail);
    }
    let problem = status.problem.clone().unwrap_or_else(|| "no server has answered yet".to_owned());
    let next = again
        .unwrap_or_else(|| "see the findings on its servers above, and: bellwether agent status".to_owned());
    Finding::failed("agent/connection", problem, next)
}

/// What a running agent says of itself.
fn running(status: &AgentStatus, findings: &mut Vec<Finding>) {
    let own = env!("CARGO_PKG_VERSION");
    findings.push(if status.agent_version == own {
        Finding::ok("agent/process", format!("the agent runs, process {}, version {own}", status.pid))
    } else {
        let detail = format!("the agent is {}, this command line {own}", status.agent_version);
        Finding::warning("agent/process", detail, "restart it: systemctl restart bellwether-agent")
    });
    let refused = [
        (
            "agent/orders",
            &status.refused,
            "see docs: orders that a node does not accept; bellwether agent status",
        ),
        ("agent/catalogue", &status.misread, "upgrade the agent"),
        ("agent/status-file", &status.unwritable, "make room in its data directory, or mend its permissions"),
        (
            "agent/reload",
            &status.configuration.refused,
            "mend the configuration: bellwether agent run --check",
        ),
    ];
    for (check, reason, next) in refused {
        findings.extend(reason.as_ref().map(|reason| Finding::failed(check, reason.clone(), next)));
    }
    for (name, entity) in status.entities.iter().filter(|(_, entity)| entity.problem.is_some()) {
        let reason = entity.problem.clone().unwrap_or_default();
        let next = format!("see: bellwether agent status, bellwether why {}", status.node);
        findings.push(Finding::warning(format!("agent/entity/{name}"), reason, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_runs_and_does_not_answer_is_to_be_restarted_and_one_that_does_not_run_started() {
        let said = silent(Some("7".to_owned()), "read the answer: no answer within 15s");
        assert!(said.detail.contains("runs, process 7, and does not answer: cannot read"), "{said:?}");
        assert!(said.next.unwrap().contains("systemctl restart"));
        assert!(silent(None, "reach it").next.unwrap().contains("systemctl start"));
    }

    #[test]
    fn directories_of_former_members_are_told_beside_the_room_that_is_left() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!members(dir.path()).unwrap().detail.contains("set aside"));
        for name in ["store", "store.set-aside-1", "cache.set-aside-12"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let said = members(dir.path()).unwrap();
        assert!(said.detail.contains("; 2 directories of former members are set aside there"), "{said:?}");
        assert!(members(&dir.path().join("none")).is_none());
    }
}
