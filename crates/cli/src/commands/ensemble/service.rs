//! The service agent of an ensemble, from the flags of commands.

use bellwether_api::v1::ensemble::Ensemble;
use bellwether_api::v1::ensemble::service::{
    CephSpec, EtcdSpec, ExecSpec, ProcessSpec, RedisSpec, ServiceAgentSpec, SystemdSpec,
};

use super::osds;
use crate::args::EnsembleFlags;
use crate::exit::Failure;

/// The service agent of a name that was checked, with its defaults.
pub(super) fn named(name: &str) -> ServiceAgentSpec {
    let none = ServiceAgentSpec::default();
    match name {
        "redis" => ServiceAgentSpec { redis: Some(RedisSpec::default()), ..none },
        "ceph" => ServiceAgentSpec { ceph: Some(CephSpec::default()), ..none },
        "process" => ServiceAgentSpec { process: Some(ProcessSpec::default()), ..none },
        "systemd" => ServiceAgentSpec { systemd: Some(SystemdSpec::default()), ..none },
        "exec" => ServiceAgentSpec { exec: Some(ExecSpec::default()), ..none },
        _ => ServiceAgentSpec { etcd: Some(EtcdSpec::default()), ..none },
    }
}

/// The service agent with the settings that are flags.
pub(super) fn with_flags(
    mut service: ServiceAgentSpec,
    change: &EnsembleFlags,
) -> Result<ServiceAgentSpec, Failure> {
    are_of(service.kind().unwrap_or("etcd"), change)?;
    let EnsembleFlags { client_port, peer_port, port, tls, program, unit, agent, .. } = change;
    if let Some(etcd) = &mut service.etcd {
        etcd.client_port = client_port.or(etcd.client_port);
        etcd.peer_port = peer_port.or(etcd.peer_port);
        etcd.tls = tls.or(etcd.tls);
    }
    if let Some(redis) = &mut service.redis {
        change_redis(redis, change);
    }
    if let Some(ceph) = &mut service.ceph {
        osds::changed(ceph, change);
    }
    if let Some(process) = &mut service.process {
        process.program = given("--program", program.as_ref(), &process.program)?;
        process.port = port.or(process.port);
    }
    if let Some(systemd) = &mut service.systemd {
        systemd.unit = given("--unit", unit.as_ref(), &systemd.unit)?;
        systemd.port = port.or(systemd.port);
    }
    if let Some(exec) = &mut service.exec {
        exec.agent = given("--agent", agent.as_ref(), &exec.agent)?;
        exec.port = port.or(exec.port);
    }
    Ok(service)
}

/// Refuses flags that are settings of another service agent.
fn are_of(kind: &str, change: &EnsembleFlags) -> Result<(), Failure> {
    let EnsembleFlags {
        client_port,
        peer_port,
        port,
        min_replicas_to_write,
        password_secret,
        no_password,
        tls,
        program,
        unit,
        agent,
        device,
        no_device,
        replicas,
        ..
    } = change;
    let flags: [(&str, bool, &[&str]); 13] = [
        ("--device", !device.is_empty(), &["ceph"]),
        ("--no-device", !no_device.is_empty(), &["ceph"]),
        ("--replicas", replicas.is_some(), &["ceph"]),
        ("--client-port", client_port.is_some(), &["etcd"]),
        ("--peer-port", peer_port.is_some(), &["etcd"]),
        ("--port", port.is_some(), &["redis", "ceph", "process", "systemd", "exec"]),
        ("--min-replicas-to-write", min_replicas_to_write.is_some(), &["redis"]),
        ("--password-secret", !password_secret.is_empty(), &["redis"]),
        ("--no-password", *no_password, &["redis"]),
        ("--tls", tls.is_some(), &["etcd", "redis"]),
        ("--program", program.is_some(), &["process"]),
        ("--unit", unit.is_some(), &["systemd"]),
        ("--agent", agent.is_some(), &["exec"]),
    ];
    if let Some((flag, _, of)) = flags.iter().find(|(_, is_given, of)| *is_given && !of.contains(&kind)) {
        let (of, first) = (of.join(", "), of.first().copied().unwrap_or_default());
        return Err(Failure::usage(format!(
            "use {flag}: it is a setting of {of}, and this is an ensemble of {kind}; leave it out, or create it with --service {first}"
        )));
    }
    Ok(())
}

fn change_redis(redis: &mut RedisSpec, change: &EnsembleFlags) {
    let EnsembleFlags { port, min_replicas_to_write, tls, password_secret, no_password, .. } = change;
    redis.port = port.or(redis.port);
    redis.min_replicas_to_write = min_replicas_to_write.or(redis.min_replicas_to_write);
    redis.tls = tls.or(redis.tls);
    if *no_password || !password_secret.is_empty() {
        redis.password_secrets.clone_from(password_secret);
    }
}

/// That a change has a Redis take no writes, as fewer replicas work than each is to need from then on.
pub(super) fn stops_writes(before: &Ensemble, after: &ServiceAgentSpec) -> Option<String> {
    let needed = |service: &ServiceAgentSpec| {
        service.redis.as_ref().map(|redis| u64::from(redis.min_replicas_to_write.unwrap_or(1)))
    };
    let (status, was) = (before.status.as_ref()?, needed(&before.service)?);
    // More than there can be are not waited for.
    let will = needed(after)?.min(status.voting.saturating_sub(1));
    let replicas = status.working.saturating_sub(1);
    (will > was && will > replicas).then(|| {
        format!("each write will need {will} replicas, and {replicas} of them work now: no write is taken until more do")
    })
}

/// A setting that has no default: of its flag, or as it was.
fn given(flag: &str, value: Option<&String>, before: &str) -> Result<String, Failure> {
    match value.map_or(before, String::as_str) {
        "" => Err(Failure::usage(format!("create the ensemble: {flag} is missing"))),
        value => Ok(value.to_owned()),
    }
}
