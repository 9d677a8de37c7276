//! etcd, by its JSON gateway: ids are decimal texts, and fields that are zero are absent.

pub(super) mod handover;

use std::collections::BTreeMap;

use bellwether_core::records::probes::{Amount, DataStore, Shard, ShardRole, StoreFacts, StoreMember};
use serde::Deserialize;

use super::answer::{ProbeError, up};
use super::http::post;
use crate::config::data_store::TlsFiles;

/// Name of the software.
pub(super) const SOFTWARE: &str = "etcd";

/// What is said of a member that knows no leader.
const NO_LEADER: &str =
    "it has no leader, and serves no writes: a quorum of its members is lost, or an election goes on";

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Header {
    cluster_id: String,
    member_id: String,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    header: Header,
    version: String,
    leader: String,
    raft_index: String,
    is_learner: bool,
    /// Alarms, such as that its disk is full.
    errors: Vec<String>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Members {
    members: Vec<Member>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Member {
    #[serde(rename = "ID")]
    id: String,
    name: String,
    #[serde(rename = "peerURLs")]
    peer_urls: Vec<String>,
    #[serde(rename = "clientURLs")]
    client_urls: Vec<String>,
    #[serde(rename = "isLearner")]
    is_learner: bool,
}

/// What a member says of itself and of its store.
#[derive(Debug, Clone)]
pub(crate) struct EtcdView {
    /// What is reported of it.
    pub(crate) facts: StoreFacts,
    /// Id of the leader; `None` if it knows none.
    pub(crate) leader: Option<String>,
    /// The members with all of their URLs.
    pub(crate) listed: Vec<ListedMember>,
}

/// A member of the store, as it is listed.
#[derive(Debug, Clone)]
pub(crate) struct ListedMember {
    /// Its id.
    pub(crate) id: String,
    /// Where other members reach it.
    pub(crate) peer_urls: Vec<String>,
    /// Where clients reach it, as it says.
    pub(crate) client_urls: Vec<String>,
}

/// Asks for the status and for the members, as this member sees them.
pub(crate) async fn ask(authority: &str, tls: Option<&TlsFiles>) -> Result<StoreFacts, ProbeError> {
    Ok(view(authority, tls).await?.facts)
}

/// The same, with all URLs of the members and the leader.
pub(crate) async fn view(authority: &str, tls: Option<&TlsFiles>) -> Result<EtcdView, ProbeError> {
    let status = status(authority, tls).await?;
    // A learner answers its status alone.
    let members = match post(authority, tls, "/v3/cluster/member/list", "{}").await {
        Ok(members) => {
            let read = serde_json::from_value::<Members>(members);
            Some(read.map_err(|error| nonsense(authority, &error))?)
        }
        Err(_) if status.is_learner => None,
        Err(error) => return Err(error),
    };
    if status.header.member_id.is_empty() {
        return Err(ProbeError::Unknown(format!("{authority}: the answer has no member id; is it etcd?")));
    }
    let leader = Some(hex(&status.leader)).filter(|leader| !matches!(leader.as_str(), "" | "0"));
    let listed = members.iter().flat_map(|members| &members.members).map(|member| ListedMember {
        id: hex(&member.id),
        peer_urls: member.peer_urls.clone(),
        client_urls: member.client_urls.clone(),
    });
    let listed = listed.collect();
    Ok(EtcdView { facts: facts(status, members), leader, listed })
}

/// What a member says is wrong with it, such as alarms.
pub(crate) async fn errors(authority: &str, tls: Option<&TlsFiles>) -> Result<Vec<String>, ProbeError> {
    Ok(status(authority, tls).await?.errors)
}

/// A member that answered. One without a leader is up and serves no writes, which is the reason that it has.
pub(super) fn store(facts: StoreFacts) -> DataStore {
    let has_no_leader = facts.shards.values().any(|shard| shard.role == ShardRole::Vacant);
    let reason = if has_no_leader { NO_LEADER } else { "" };
    DataStore { reason: reason.to_owned(), ..up(facts) }
}

async fn status(authority: &str, tls: Option<&TlsFiles>) -> Result<Status, ProbeError> {
    let status = post(authority, tls, "/v3/maintenance/status", "{}").await;
    let status = status.map_err(|error| if tls.is_none() { or_https(error) } else { error })?;
    serde_json::from_value(status).map_err(|error| nonsense(authority, &error))
}

/// What else the failure of a call without TLS may mean.
fn or_https(error: ProbeError) -> ProbeError {
    let hinted = |reason| format!("{reason}; if it takes https alone, write https and ca_file");
    match error {
        ProbeError::Unknown(reason) => ProbeError::Unknown(hinted(reason)),
        ProbeError::Broken(reason) => ProbeError::Broken(hinted(reason)),
        ProbeError::Down(reason) => ProbeError::Down(reason),
    }
}

fn nonsense(authority: &str, error: &serde_json::Error) -> ProbeError {
    ProbeError::Unknown(format!("{authority}: the answer is not one of etcd: {error}"))
}

fn facts(status: Status, members: Option<Members>) -> StoreFacts {
    let role = if status.is_learner {
        ShardRole::Learner
    } else if status.leader == status.header.member_id {
        ShardRole::Primary
    } else if matches!(status.leader.as_str(), "" | "0") {
        ShardRole::Vacant
    } else {
        ShardRole::Replica
    };
    let offset = status.raft_index.parse().ok().map(|amount| Amount { amount, unit: "entries".to_owned() });
    let shard = Shard { role, history: None, offset, lag: None, upstream: None, streaming: None };
    let member = |member: Member| {
        let shown = StoreMember {
            name: Some(member.name).filter(|name| !name.is_empty()),
            address: member.peer_urls.into_iter().next(),
            votes: !member.is_learner,
            connected: None,
        };
        (hex(&member.id), shown)
    };
    StoreFacts {
        software: SOFTWARE.to_owned(),
        version: Some(status.version).filter(|version| !version.is_empty()),
        cluster_id: Some(hex(&status.header.cluster_id)),
        member_id: Some(hex(&status.header.member_id)),
        shards: BTreeMap::from([("0".to_owned(), shard)]),
        members: members.map(|members| members.members.into_iter().map(member).collect()),
    }
}

/// An id as etcd's own tools show it.
fn hex(decimal: &str) -> String {
    decimal.parse::<u64>().map_or_else(|_| decimal.to_owned(), |id| format!("{id:x}"))
}

#[cfg(test)]
mod tests {
    use bellwether_core::records::probes::StoreState;

    use super::*;

    fn role(status: &str) -> ShardRole {
        facts(serde_json::from_str(status).unwrap(), None).shards["0"].role
    }

    #[test]
    fn absent_fields_are_zero_and_ids_are_shown_in_hex() {
        let status = r#"{"header":{"cluster_id":"17237436991929493444","member_id":"10501334649042878790","raft_term":"2"},
            "version":"3.4.23","dbSize":"20480","leader":"10501334649042878790","raftIndex":"4"}"#;
        let members = r#"{"members":[{"ID":"10501334649042878790","name":"a","peerURLs":["http://a:2380"]},{"ID":"255","isLearner":true}]}"#;
        let facts =
            facts(serde_json::from_str(status).unwrap(), Some(serde_json::from_str(members).unwrap()));
        assert_eq!(facts.cluster_id.as_deref(), Some("ef37ad9dc622a7c4"));
        assert_eq!(facts.shards["0"].offset, Some(Amount { amount: 4, unit: "entries".into() }));
        let members = facts.members.unwrap();
        assert_eq!((members["ff"].votes, members["91bc3c398fb3c146"].votes), (false, true));
        assert_eq!(members["ff"].name, None, "a member that never started has no name");
    }

    #[test]
    fn roles() {
        assert_eq!(role(r#"{"header":{"member_id":"1"},"leader":"1"}"#), ShardRole::Primary);
        assert_eq!(role(r#"{"header":{"member_id":"1"},"leader":"2"}"#), ShardRole::Replica);
        assert_eq!(role(r#"{"header":{"member_id":"1"}}"#), ShardRole::Vacant);
        assert_eq!(role(r#"{"header":{"member_id":"1"},"leader":"2","isLearner":true}"#), ShardRole::Learner);
    }

    #[test]
    fn a_member_without_a_leader_is_up_with_that_as_its_reason() {
        let store = |status: &str| store(facts(serde_json::from_str(status).unwrap(), None));
        let alone = store(r#"{"header":{"member_id":"1"}}"#);
        assert_eq!((alone.state, alone.reason.as_str()), (StoreState::Up, NO_LEADER));
        assert_eq!(store(r#"{"header":{"member_id":"1"},"leader":"2"}"#).reason, "");
    }
}
