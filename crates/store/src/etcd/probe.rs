//! Monitoring etcd: whether it is one, whether it answers, whether it accepts writes. Owns the texts about it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::api::generated::maintenance_client::MaintenanceClient;
use super::api::generated::{StatusRequest, StatusResponse};
use super::connector::EtcdMember;
use super::fault::CallFault;
use super::remembered;
use super::shared::{EtcdClient, FULL};
use crate::error::OpenError;
use crate::health::{Condition, Health};

/// Asks every member, and returns the health reported by the first to answer.
/// Where none of the configured members answers, those are asked that were remembered.
pub(super) async fn open(shared: &EtcdClient, file: Option<&Path>) -> Result<Health, OpenError> {
    let members = shared.endpoints.members();
    let most = shared.endpoints.deadline();
    let answers = join_all(members.iter().map(|member| status(member, most))).await;
    let mut health = None;
    let mut refused = None;
    let (mut cluster, mut is_old_one) = (None, false);
    for (member, answer) in members.iter().zip(answers) {
        let refusal = match answer {
            Ok(status) if is_old(&status.version) => {
                is_old_one = true;
                OpenError::Etcd {
                    endpoint: member.address.clone(),
                    reason: format!("it is of version {:?}", status.version),
                    next: "use etcd 3.4 or later",
                }
            }
            Ok(status) => {
                let found = status.header.map(|header| header.cluster_id);
                if cluster.is_some() && cluster != Some(found) {
                    return Err(OpenError::Etcd {
                        endpoint: member.address.clone(),
                        reason: "it belongs to another etcd than the endpoint before it".to_owned(),
                        next: "name members of one etcd only",
                    });
                }
                cluster = Some(found);
                health.get_or_insert_with(|| tell(shared, &status, None));
                continue;
            }
            Err(fault) => {
                let next = advice(&fault, member);
                OpenError::Etcd { endpoint: member.address.clone(), reason: fault.reason(), next }
            }
        };
        if members.len() > 1 {
            tracing::warn!("cannot {refusal}");
        }
        shared.endpoints.move_on(member.place);
        refused.get_or_insert(refusal);
    }
    if let Some(id) = cluster.flatten() {
        shared.cluster.get_or_init(|| id);
    }
    match (health, refused) {
        (Some(health), _) => Ok(health),
        (None, Some(refused)) if is_old_one => Err(refused),
        (None, Some(refused)) => open_remembered(shared, file).await.ok_or(refused),
        (None, None) => unreachable!("every endpoint answers or is refused, and there is one"),
    }
}

/// The health as a remembered member reports it; `None` if none answers that is of the same etcd.
async fn open_remembered(shared: &EtcdClient, file: Option<&Path>) -> Option<Health> {
    let found = remembered::read(file?, shared.endpoints.configured()).await?;
    let urls = found.members.iter().filter(|url| shared.endpoints.permits(url) && !shared.endpoints.has(url));
    let members: Vec<EtcdMember> = urls.filter_map(|url| shared.endpoints.candidate(url)).collect();
    let most = shared.endpoints.deadline();
    let answers = join_all(members.iter().map(|member| status(member, most))).await;
    let is_of =
        |status: &StatusResponse| status.header.is_some_and(|header| header.cluster_id == found.cluster);
    let answers = members.iter().zip(answers).filter_map(|(member, answer)| Some((member, answer.ok()?)));
    let answers: Vec<(&EtcdMember, StatusResponse)> = answers.filter(|(_, status)| is_of(status)).collect();
    let (_, first) = answers.first()?;
    let urls: Vec<String> = answers.iter().map(|(member, _)| member.address.clone()).collect();
    tracing::warn!(
        members = urls.join(", "),
        "no configured endpoint of etcd answers: members are used that were learnt before"
    );
    shared.cluster.get_or_init(|| found.cluster);
    shared.endpoints.learn(&urls);
    // The configured ones come first, and do not answer.
    while !urls.contains(&shared.endpoints.current().address) {
        shared.endpoints.move_on(shared.endpoints.current().place);
    }
    Some(tell(shared, first, None))
}

/// Keeps the health up to date until the store is closed.
pub(super) async fn run(shared: Arc<EtcdClient>, every: Duration) {
    loop {
        // Both arms only wait.
        tokio::select! {
            () = shared.closed.cancelled() => return,
            () = tokio::time::sleep(every) => {}
        }
        let member = shared.endpoints.current();
        let answer = match status(&member, shared.endpoints.patience()).await {
            Ok(answer) if answer.leader > 0 => Ok(answer),
            silent_or_alone => {
                shared.endpoints.move_on(member.place);
                shared.failed.notify_one();
                any(&shared).await.map_or(silent_or_alone, Ok)
            }
        };
        let before = shared.health.borrow().clone();
        let now = match answer {
            Ok(status) => tell(&shared, &status, Some(&before)),
            Err(fault) => {
                let next = advice(&fault, &member);
                let reason = format!("{}: {}; {next}", member.address, fault.reason());
                Health { condition: before.condition.unreachable(reason), ..before.clone() }
            }
        };
        shared.health.send_if_modified(|health| {
            let is_new = *health != now;
            if std::mem::discriminant(&health.condition) != std::mem::discriminant(&now.condition) {
                tracing::warn!(condition = ?now.condition, "the store's health changed");
            }
            *health = now;
            is_new
        });
    }
}

/// The answer of any member that knows a leader.
async fn any(shared: &EtcdClient) -> Option<StatusResponse> {
    let most = shared.endpoints.patience();
    let members = shared.endpoints.members();
    let answers = members.iter().map(|member| status(member, most));
    join_all(answers).await.into_iter().filter_map(Result::ok).find(|answer| answer.leader > 0)
}

/// The status of a member, within `most`.
pub(super) async fn status(member: &EtcdMember, most: Duration) -> Result<StatusResponse, CallFault> {
    let mut client = MaintenanceClient::new(member.calls.clone());
    match tokio::time::timeout(most, client.status(StatusRequest {})).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(status.into()),
        Err(_) => Err(CallFault::silent(most)),
    }
}

/// Whether a version is older than 3.4, or not a version.
fn is_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or_default());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    version < (3, 4)
}

/// The health that follows from a member's status.
fn tell(shared: &EtcdClient, status: &StatusResponse, before: Option<&Health>) -> Health {
    let alarms: Vec<String> = status.errors.iter().map(|error| error.trim().to_owned()).collect();
    let says = |word: &str| alarms.iter().any(|alarm| alarm.contains(word));
    let since = Instant::now();
    let condition = if says("NOSPACE") {
        Condition::ReadOnly { reason: FULL.to_owned(), since }
    } else if says("CORRUPT") {
        let reason = "etcd found its members to differ (CORRUPT); restore the one that is wrong, then disarm the alarm";
        Condition::ReadOnly { reason: reason.to_owned(), since }
    } else if status.leader == 0 {
        let reason = "etcd has no leader; see that most of its members run and reach each other";
        Condition::Unreachable { reason: reason.to_owned(), since }
    } else {
        Condition::Writable
    };
    let condition = match before {
        Some(before) => condition.since_before(&before.condition),
        None => condition,
    };
    let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
    Health {
        engine: "etcd",
        version: Some(status.version.clone()),
        endpoints: shared.endpoints.addresses(),
        size_bytes: positive(status.db_size),
        quota_bytes: positive(status.db_size_quota),
        alarms,
        condition,
        cut: None,
    }
}

/// What to try next.
fn advice(fault: &CallFault, member: &EtcdMember) -> &'static str {
    let (reason, is_secret) = (fault.clone().reason(), member.address.starts_with("https"));
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if says(&["UnknownIssuer", "invalid peer certificate: BadSignature"]) {
        "name the certificate of who signed etcd's as its CA file"
    } else if says(&["NotValidForName", "invalid peer certificate"]) {
        "use a name that etcd's certificate holds, and see that it is valid now"
    } else if says(&["fatal alert"]) {
        "give a client certificate that etcd's CA signed and that has not expired"
    } else if says(&["InvalidContentType", "corrupt message"]) {
        "it speaks no TLS: use http://, or give etcd certificates"
    } else if is_secret && says(&["closed", "reset", "eof", "broken pipe"]) {
        // etcd checks the client's certificate when the client already considers the connection established.
        "give a client certificate that etcd's CA signed and that has not expired; if it speaks no TLS, use http://"
    } else if says(&["refused"]) {
        "start etcd there, or correct the endpoint"
    } else if says(&["dns error", "lookup"]) {
        "correct the name of the endpoint"
    } else if says(&["no answer", "timed out", "deadline"]) {
        "see that etcd runs there and that nothing on the way drops what is sent"
    } else {
        "correct the endpoint: it must be the client port of an etcd 3.4 or later, and https:// if that speaks TLS"
    }
}
