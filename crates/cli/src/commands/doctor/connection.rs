//! The connection of the command line: whether the control plane answers, who the token is, and what the control plane says of itself.

use bellwether_api::client::{CallError, UnreachableCause};
use bellwether_api::v1::node::PresenceState;
use bellwether_api::v1::overview::{Overview, StuckSink};
use bellwether_api::v1::server::StoreCondition;
use bellwether_core::words::plural::Plural;
use bellwether_rt::clock::Clock;

use super::super::overview::{failing, impaired};
use super::finding::Finding;
use crate::args::Global;
use crate::context::Context;
use crate::exit::CA_FILE;
use crate::show::time::date;

/// How far the clock of this machine may be behind that of a server, in milliseconds.
const CLOCK_BEHIND_MS: u64 = 5_000;

/// How a wrong clock is set right.
const SET_CLOCK: &str = "set the clock, and have it synchronised: timedatectl set-ntp true";

pub(super) async fn look(global: &Global, findings: &mut Vec<Finding>) {
    let context = match Context::new(global) {
        Ok(context) => context,
        Err(failure) => {
            let next = "set the context again: bellwether context set NAME --server ADDRESS";
            return findings.push(Finding::failed("connection/context", failure.message, next));
        }
    };
    if let Err(error) = context.client.ready().await {
        findings.push(unready("connection/server", &error));
        if !matches!(error, CallError::Problem(_)) {
            return;
        }
    } else {
        findings.push(Finding::ok("connection/server", "a server answers and is ready"));
    }
    match context.client.who_am_i().await {
        Ok(who) => {
            findings.push(Finding::ok("connection/token", format!("the token is that of {}", who.actor)))
        }
        Err(error) => {
            let next = "give a token that is valid; who has an admin token makes one: bellwether token create NAME --role ROLE";
            return findings.push(Finding::failed("connection/token", unmet(&error), next));
        }
    }
    match context.client.overview(&context.namespace).await {
        Ok(overview) => overview_findings(&overview, Clock::system().now().as_millis(), findings),
        Err(error) => {
            let next = "see what the token may do: bellwether auth explain";
            findings.push(Finding::warning("control-plane", unmet(&error), next));
        }
    }
}

/// A server that does not answer, or is not ready.
pub(super) fn unready(check: &str, error: &CallError) -> Finding {
    let next = match error {
        CallError::Problem(_) => "see its log and its store: bellwether status",
        CallError::Setup { .. } => "mend the address or the CA certificate",
        CallError::Unreachable { cause: UnreachableCause::Clock, .. }
        | CallError::NoneReachable { cause: UnreachableCause::Clock, .. } => SET_CLOCK,
        CallError::Unreachable { cause: UnreachableCause::Certificate, .. }
        | CallError::NoneReachable { cause: UnreachableCause::Certificate, .. } => {
            let next = format!("give the authority of the control plane, which is in {CA_FILE}");
            return Finding::failed(check, unmet(error), next);
        }
        CallError::Unreachable { .. }
        | CallError::NoneReachable { .. }
        | CallError::Timeout { .. }
        | CallError::AnswerLost { .. }
        | CallError::Garbled { .. } => {
            "see whether the server runs there, and whether a firewall or a wrong address is between"
        }
    };
    Finding::failed(check, unmet(error), next)
}

/// What a call could not do, as a sentence.
fn unmet(error: &CallError) -> String {
    match error {
        CallError::Problem(problem) => problem.to_string(),
        CallError::Setup { .. }
        | CallError::Unreachable { .. }
        | CallError::NoneReachable { .. }
        | CallError::Timeout { .. }
        | CallError::AnswerLost { .. }
        | CallError::Garbled { .. } => format!("cannot {error}"),
    }
}

fn overview_findings(overview: &Overview, now_ms: u64, findings: &mut Vec<Finding>) {
    let own = env!("CARGO_PKG_VERSION");
    findings.push(if overview.server_version == own {
        Finding::ok("control-plane/version", format!("server and command line are {own}"))
    } else {
        let detail = format!("the server is {}, this command line {own}", overview.server_version);
        Finding::warning("control-plane/version", detail, "upgrade the older one")
    });
    findings.push(if overview.has_leader {
        Finding::ok("control-plane/leader", "a server leads")
    } else {
        let next = "see the servers: bellwether server list; and the log of each";
        Finding::failed("control-plane/leader", "no server leads: nothing is decided", next)
    });
    if let Some(leader) = &overview.leader {
        findings.push(clock(now_ms, leader.since_ms));
    }
    if let Some(store) = &overview.store {
        let check = "control-plane/store";
        let condition = store.condition.as_str().replace('_', " ");
        let detail = format!("the store ({}) is {condition}", store.engine.as_str());
        let reason = store.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
        let next = "mend the store; for etcd: etcdctl endpoint health, etcdctl alarm list";
        findings.push(match store.condition {
            StoreCondition::Writable if store.alarms.is_empty() => Finding::ok(check, detail),
            StoreCondition::Writable => {
                Finding::warning(check, format!("{detail}, with alarms: {}", store.alarms.join(", ")), next)
            }
            StoreCondition::ReadOnly | StoreCondition::Unreachable | StoreCondition::Failed => {
                Finding::failed(check, format!("{detail}{reason}"), next)
            }
        });
    }
    fleet_findings(overview, findings);
    for warning in &overview.warnings {
        let next = "see: bellwether status, bellwether events";
        findings.push(Finding::warning("control-plane/warning", warning.clone(), next));
    }
}

/// What does not work in the namespace, in the words of `status`: none of it is a fault of this machine.
fn fleet_findings(overview: &Overview, findings: &mut Vec<Finding>) {
    let away = overview.nodes.get(&PresenceState::Unreachable).copied().unwrap_or_default();
    if away > 0 {
        let detail = format!("{} unreachable", Plural(away, "node"));
        findings.push(Finding::warning(
            "fleet/nodes",
            detail,
            "see which: bellwether node list --unaccounted",
        ));
    }
    if let Some(counts) = failing(overview) {
        let next = "see what fails: bellwether get-failures";
        findings.push(Finding::warning("fleet/failing", counts, next));
    }
    for of in &overview.impaired_ensembles {
        let (detail, next) = impaired(of);
        findings.push(Finding::warning(format!("ensemble/{}", of.ensemble), detail, next));
    }
    for StuckSink { sink, reason, .. } in &overview.stuck_sinks {
        let next = format!("bellwether why sink/{sink}");
        findings.push(Finding::warning(format!("sink/{sink}"), format!("does not send: {reason}"), next));
    }
}

/// The clock of this machine, by a time of a server that has passed.
fn clock(now_ms: u64, passed_ms: u64) -> Finding {
    let check = "machine/clock";
    if now_ms.saturating_add(CLOCK_BEHIND_MS) < passed_ms {
        let detail =
            format!("the clock of this machine is behind: {} has passed at the leader", date(passed_ms));
        return Finding::failed(check, detail, SET_CLOCK);
    }
    Finding::ok(check, format!("it is {} here, which no time of the leader contradicts", date(now_ms)))
}
