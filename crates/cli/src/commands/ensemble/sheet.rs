//! An ensemble as it is shown.

use bellwether_api::v1::ensemble::Ensemble;
use bellwether_api::v1::ensemble::members::{EnsembleMember, MemberPhase};
use bellwether_api::v1::ensemble::passwords::PasswordState;
use bellwether_api::v1::ensemble::service::ServiceAgentSpec;
use bellwether_api::v1::ensemble::status::EnsembleStatus;
use bellwether_core::words::plural::Plural;
use bellwether_core::words::time::Span;

use super::{foreign, osds, requests, snapshots};
use crate::show::table;
use crate::show::time::date;

/// What the members of an ensemble run, and on which ports.
fn software(service: &ServiceAgentSpec) -> String {
    let ServiceAgentSpec { etcd, redis, ceph, process, systemd, exec } = service;
    let name = process.as_ref().map(|process| &process.program);
    let name = name.or(systemd.as_ref().map(|systemd| &systemd.unit));
    let name = name.or(exec.as_ref().map(|exec| &exec.agent));
    let of_etcd = etcd.iter().flat_map(|etcd| [etcd.client_port, etcd.peer_port]);
    let one = [
        redis.as_ref().and_then(|redis| redis.port),
        ceph.as_ref().and_then(|ceph| ceph.port),
        process.as_ref().and_then(|process| process.port),
        systemd.as_ref().and_then(|systemd| systemd.port),
        exec.as_ref().and_then(|exec| exec.port),
    ];
    let ports: Vec<String> = of_etcd.chain(one).flatten().map(|port| port.to_string()).collect();
    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
    let kind = service.kind().unwrap_or("-");
    match ports.as_slice() {
        [] => format!("{kind}{name}"),
        [port] => format!("{kind}{name} on port {port}"),
        ports => format!("{kind}{name} on ports {}", ports.join(" and ")),
    }
}

/// An ensemble with all its fields, one a line, then its members, and what happens to them.
pub(in crate::commands) fn sheet(ensemble: &Ensemble) -> String {
    let Ensemble { service, by, reason, .. } = ensemble;
    let tls = service.etcd.as_ref().map(|etcd| etcd.tls).or(service.redis.as_ref().map(|redis| redis.tls));
    let tls = match tls.map(|tls| tls.unwrap_or(true)) {
        Some(true) => "yes",
        Some(false) => "no",
        None if service.ceph.is_some() => "keys of its own",
        None => "-",
    };
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let mut lines = vec![
        format!("name            {}", ensemble.name),
        format!("service         {}", software(service)),
        format!("tls             {tls}"),
        format!("size            {}", ensemble.size),
        format!("filter          {}", ensemble.filter),
        format!("spread          {}", ensemble.spread.as_deref().unwrap_or("-")),
        format!("failover after  {}", Span::from_millis(ensemble.failover_after_ms)),
        format!("join within     {}", Span::from_millis(ensemble.join_within_ms)),
        format!("mode            {}", ensemble.mode),
        format!("snapshots       {}", snapshots::policy(ensemble.snapshots.as_ref())),
        format!("revision        {}", ensemble.revision),
        format!("changed         by {by}, {}{reason}", date(ensemble.at_ms)),
    ];
    if let Some(ceph) = &service.ceph {
        let devices = if ceph.devices.is_empty() { "-".to_owned() } else { ceph.devices.join(", ") };
        lines.push(format!("devices         {devices}"));
        lines.extend(ceph.replicas.map(|number| format!("replicas        {number} by default")));
    }
    let min_replicas = service.redis.as_ref().and_then(|redis| redis.min_replicas_to_write);
    let restored = ensemble.restore.as_ref();
    lines.extend(restored.map(|from| format!("founded from    {} on node {}", from.snapshot, from.node)));
    let secrets = service.redis.as_ref().map(|redis| match redis.password_secrets.as_slice() {
        [] => "none needed".to_owned(),
        [secret] => format!("the value of secret {secret}"),
        secrets => format!("the values of secrets {}", secrets.join(" and ")),
    });
    lines.extend(secrets.map(|secrets| format!("passwords       {secrets}")));
    let adopted = ensemble.adopt.as_ref();
    lines.extend(adopted.map(|from| format!("adopts          {}", from.endpoints.join(", "))));
    lines.extend(min_replicas.map(|number| format!("min replicas    {number} to write")));
    lines.push(String::new());
    lines.extend(planned(ensemble));
    lines.join("\n")
}

/// The members of an ensemble, and what happens to them.
pub(super) fn planned(ensemble: &Ensemble) -> Vec<String> {
    let Some(status) = &ensemble.status else { return vec!["nothing is known of its members".to_owned()] };
    let (has_primary, has_voters) = (
        ensemble.service.redis.is_some(),
        ensemble.service.etcd.is_some() || ensemble.service.ceph.is_some(),
    );
    let rows = status.members.iter().map(|member| {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let role = member.role.map(|role| role.to_string());
        vec![
            member.number.to_string(),
            member.node.clone(),
            member.state.to_string(),
            member.health.to_string(),
            date(member.since_ms),
            or_dash(if has_primary { &role } else { &member.store_id }),
            or_dash(&member.peer_url),
        ]
    });
    let special = if has_primary { "role" } else { "id" };
    let members = match status.members.is_empty() {
        true => "it has no members".to_owned(),
        false => table(&["member", "node", "state", "health", "since", special, "peer"], rows),
    };
    let verb = if has_voters { "vote" } else { "serve" };
    let mut lines = vec![
        format!("{} of {} members {verb}{}", status.voting, status.wanted, working(status)),
        String::new(),
        members,
    ];
    lines.extend(status.members.iter().filter_map(|member| member.message.clone()));
    lines.extend(passwords(status));
    lines.extend(foreign::lines(status));
    lines.extend(osds::lines(status));
    let mut upcoming = upcoming(status);
    upcoming.splice(..0, status.requests.iter().map(requests::line));
    if !upcoming.is_empty() {
        lines.push(String::new());
        lines.extend(upcoming);
    }
    lines.extend(
        status.refusals.iter().map(|of| format!("node {} cannot get a member: {}", of.node, of.reason)),
    );
    let shown = status.refusals.len() as u64;
    if status.refused > shown {
        lines.push(format!("{} more cannot get one", Plural(status.refused - shown, "node")));
    }
    lines
}

/// Which members take the passwords that clients are to use; nothing where they need none.
fn passwords(status: &EnsembleStatus) -> Option<String> {
    let of = |state: PasswordState| -> Vec<String> {
        let found = status.members.iter().filter(|member| member.passwords == Some(state));
        found.map(|member| member.number.to_string()).collect()
    };
    let told = [
        (of(PasswordState::Current), "current"),
        (of(PasswordState::Outdated), "not current yet"),
        (of(PasswordState::Unknown), "not known"),
    ];
    let told = told.iter().filter(|(members, _)| !members.is_empty());
    let told: Vec<String> =
        told.map(|(members, what)| format!("{what} on members {}", members.join(", "))).collect();
    (!told.is_empty()).then(|| format!("passwords of clients: {}", told.join("; ")))
}

/// How many members work, of how many that there are to be, and how many have yet to leave.
pub(super) fn working_of(status: &EnsembleStatus) -> String {
    let leaves =
        |member: &&EnsembleMember| matches!(member.state, MemberPhase::Leaving | MemberPhase::Removed);
    let leaving = match status.members.iter().filter(leaves).count() {
        0 => String::new(),
        leaving => format!(", {leaving} leaving"),
    };
    let foreign = foreign::number(status);
    format!("{} of {}{leaving}{foreign}{}", status.working, status.wanted, osds::working_of(status))
}

/// How many of the members that vote work, if not all of them do.
fn working(status: &EnsembleStatus) -> String {
    match status.working {
        working if working == status.voting => String::new(),
        0 => ", none works".to_owned(),
        1 => ", 1 works".to_owned(),
        working => format!(", {working} work"),
    }
}

/// What happens to the members of an ensemble next, line by line.
pub(super) fn upcoming(status: &EnsembleStatus) -> Vec<String> {
    let word = |index: usize| if index == 0 { "next" } else { "then" };
    let steps =
        status.steps.iter().enumerate().map(|(index, step)| format!("{}: {}", word(index), step.text));
    steps.chain(status.waiting.iter().map(|waiting| format!("it waits: {waiting}"))).collect()
}
