//! Calls of a member of etcd, wherever it is: its members and whether they answer, and the changes of them.

use std::time::Duration;

use bellwether_core::local::member::change::ChangeStep;
use bellwether_core::records::member::Membership;
use bellwether_core::records::probes::ShardRole;
use bellwether_rt::observed;

use crate::config::data_store::TlsFiles;
use crate::probe::answer::ProbeError;
use crate::probe::etcd::EtcdView;
use crate::probe::http::{get, post};

/// Longest time for one answer: an election takes a second.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Longest time for the answer of a member that is asked whether it is there.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

/// What etcd says of a learner that has not caught up.
const BEHIND: &str = "can only promote a learner member which is in sync with leader";

/// The members that a new one is started with: names and peer URLs, its own among them.
pub(super) type Initial = Vec<(String, String)>;

/// Makes one step of a change through the member that serves here. The error fits after "cannot ".
pub(super) async fn make_at(
    authority: &str,
    tls: Option<&TlsFiles>,
    step: &ChangeStep,
) -> Result<(), String> {
    let of = |id: &str| decimal(id).map(|id| serde_json::json!({"ID": id}));
    let (what, path, body) = match step {
        ChangeStep::Add(url) => {
            let body = serde_json::json!({"peerURLs": [url], "isLearner": true});
            (format!("add {url}"), "/v3/cluster/member/add", body)
        }
        ChangeStep::Promote(id) => (format!("promote {id}"), "/v3/cluster/member/promote", of(id)?),
        ChangeStep::Transfer(id) | ChangeStep::TakeLead(_, id) => (
            format!("have {id} lead"),
            "/v3/maintenance/transfer-leadership",
            serde_json::json!({"targetID": decimal(id)?}),
        ),
        ChangeStep::Remove(id) => (format!("remove {id}"), "/v3/cluster/member/remove", of(id)?),
        ChangeStep::Done | ChangeStep::Removed(_) | ChangeStep::Wait(_) => return Ok(()),
    };
    match observed::timeout(PATIENCE, post(authority, tls, path, &body.to_string())).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("{what}: {error}")),
        Err(_) => Err(format!("{what}: no answer within {}s", PATIENCE.as_secs())),
    }
}

/// What keeps a change from being made, in words that fit after "it "; `None` if a learner is to be promoted that has not caught up yet: that one
/// says so itself, and is asked for again.
pub(super) fn hindrance(error: &str) -> Option<String> {
    (!error.contains(BEHIND)).then(|| format!("cannot {error}"))
}

/// Reads something that only a quorum can answer: a key that nobody has.
pub(super) async fn read_from_quorum(authority: &str, tls: Option<&TlsFiles>) -> Result<(), ProbeError> {
    post(authority, tls, "/v3/kv/range", r#"{"key": "AA==", "count_only": true}"#).await.map(drop)
}

/// The members that one reads, with whether those answer that are not itself.
pub(super) async fn membership(view: &EtcdView, own: Option<&String>) -> Membership {
    let facts = &view.facts;
    let mut members = facts.members.clone().unwrap_or_default();
    for listed in view.listed.iter().filter(|listed| own != Some(&listed.id)) {
        let answers = answers(&listed.id, &listed.peer_urls).await;
        if let Some(member) = members.get_mut(&listed.id) {
            member.connected = Some(answers);
        }
    }
    Membership {
        own_id: facts.member_id.clone().unwrap_or_default(),
        is_leader: facts.shards.values().any(|shard| shard.role == ShardRole::Primary),
        cluster_id: facts.cluster_id.clone(),
        leader: view.leader.clone(),
        members,
    }
}

/// Whether a member answers where others reach it, as one of this store: it lists itself.
async fn answers(id: &str, peer_urls: &[String]) -> bool {
    let Ok(number) = u64::from_str_radix(id, 16) else { return false };
    for authority in peer_urls.iter().filter_map(|url| url.strip_prefix("http://")) {
        let asked = observed::timeout(LOOK_PATIENCE, get(authority, "/members")).await;
        let Ok(Ok(listed)) = asked else { continue };
        let is_it = |member: &serde_json::Value| {
            let id = member.get("id");
            id.and_then(serde_json::Value::as_u64) == Some(number)
        };
        if listed.as_array().is_some_and(|listed| listed.iter().any(is_it)) {
            return true;
        }
    }
    false
}

/// An id as etcd's JSON has it.
fn decimal(id: &str) -> Result<String, String> {
    let number = u64::from_str_radix(id, 16);
    number
        .map(|number| number.to_string())
        .map_err(|error| format!("use {id:?} as the id of a member: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_learner_that_has_not_caught_up_hinders_nothing() {
        let of =
            |said: &str| hindrance(&format!("promote 5f: 10.0.0.1:2379: status 412: etcdserver: {said}"));
        assert_eq!(of("can only promote a learner member which is in sync with leader"), None);
        let hindered = of("re-configuration failed due to not enough started members").unwrap_or_default();
        assert!(
            hindered.starts_with("cannot promote 5f: ") && hindered.ends_with("started members"),
            "{hindered}"
        );
    }
}
