//! An etcd hands over its leadership: by `MoveLeader`, to the voter that is least behind and serves.

use bellwether_core::local::handover::{Follower, MAX_LAG_ENTRIES, choose};
use bellwether_rt::observed;
use serde_json::json;

use super::super::answer::ProbeError;
use super::super::http::post;
use super::super::limits::{FOLLOWER_LIMIT, LOOK};
use super::{Member, Members, Status, hex, nonsense, status};
use crate::config::data_store::TlsFiles;

/// Moves the leadership away from this member, if it leads, and waits until another one does. Answers the name of the new leader.
pub(in super::super) async fn hand_over(
    authority: &str,
    tls: Option<&TlsFiles>,
) -> Result<String, ProbeError> {
    let own = status(authority, tls).await?;
    let members = post(authority, tls, "/v3/cluster/member/list", "{}").await?;
    let members: Members = serde_json::from_value(members).map_err(|error| nonsense(authority, &error))?;
    if own.leader == own.header.member_id {
        let mut followers = Vec::new();
        for member in members.members.iter().filter(|member| member.id != own.header.member_id) {
            followers.extend(follower(member, &own, tls).await);
        }
        let next = choose(&followers, Some(MAX_LAG_ENTRIES)).map_err(ProbeError::Unknown)?;
        let target = json!({ "targetID": next.id }).to_string();
        post(authority, tls, "/v3/maintenance/transfer-leadership", &target).await?;
    }
    loop {
        let now = status(authority, tls).await?;
        if now.leader != now.header.member_id && !matches!(now.leader.as_str(), "" | "0") {
            let leader = members.members.iter().find(|member| member.id == now.leader);
            return Ok(leader.map_or_else(|| hex(&now.leader), name));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A member as a follower; `None` for one that has no vote.
async fn follower(member: &Member, own: &Status, tls: Option<&TlsFiles>) -> Option<Follower> {
    if member.is_learner {
        return None;
    }
    let mut answer = Err("it has told no address for clients".to_owned());
    for url in &member.client_urls {
        answer = asked(url, tls).await;
        if answer.is_ok() {
            break;
        }
    }
    let lag = answer.and_then(|answer| lag(member, own, &answer));
    Some(Follower { id: member.id.clone(), name: name(member), lag })
}

async fn asked(url: &str, tls: Option<&TlsFiles>) -> Result<Status, String> {
    let (authority, is_tls) = address(url)?;
    let tls = match (is_tls, tls) {
        (false, _) => None,
        (true, Some(files)) => Some(files),
        (true, None) => return Err(format!("{url}: the probe has no ca_file to trust it by")),
    };
    let late = || format!("{url}: no answer within {} s", FOLLOWER_LIMIT.as_secs());
    let answer = observed::timeout(FOLLOWER_LIMIT, status(&authority, tls)).await.map_err(|_| late())?;
    answer.map_err(|error| error.to_string())
}

/// Where a member serves its clients, and whether by TLS.
fn address(url: &str) -> Result<(String, bool), String> {
    let uri: http::Uri = url.parse().map_err(|_| format!("{url:?} is not an address"))?;
    let authority = uri.authority().ok_or_else(|| format!("{url:?} is not an address"))?;
    Ok((authority.to_string(), uri.scheme_str() == Some("https")))
}

/// How far a member is behind, or why it must not lead.
fn lag(member: &Member, own: &Status, answer: &Status) -> Result<u64, String> {
    if answer.header.member_id != member.id || answer.header.cluster_id != own.header.cluster_id {
        return Err("another member answers at its address".to_owned());
    }
    if answer.leader != own.header.member_id {
        return Err("it follows another leader".to_owned());
    }
    if let Some(alarm) = answer.errors.first() {
        return Err(format!("it has an alarm: {alarm}"));
    }
    let index =
        |status: &Status| status.raft_index.parse::<u64>().map_err(|_| "it tells no index".to_owned());
    Ok(index(own)?.saturating_sub(index(answer)?))
}

fn name(member: &Member) -> String {
    if member.name.is_empty() { hex(&member.id) } else { member.name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Status {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_member_that_does_not_follow_this_leader_or_has_an_alarm_must_not_lead() {
        let member: Member =
            serde_json::from_str(r#"{"ID":"2","name":"b","clientURLs":["http://b:2379"]}"#).unwrap();
        let own = read(r#"{"header":{"cluster_id":"9","member_id":"1"},"leader":"1","raftIndex":"40"}"#);
        let lag = |text: &str| lag(&member, &own, &read(text));
        let follows = r#"{"header":{"cluster_id":"9","member_id":"2"},"leader":"1","raftIndex":"37"}"#;
        assert_eq!(lag(follows), Ok(3));
        assert_eq!(lag(&follows.replace("37", "41")), Ok(0), "it was asked later");
        assert!(
            lag(&follows.replace(r#""leader":"1""#, r#""leader":"3""#))
                .unwrap_err()
                .contains("another leader")
        );
        assert!(lag(&follows.replace(r#""leader":"1","#, "")).unwrap_err().contains("another leader"));
        assert!(
            lag(&follows.replace(r#""member_id":"2""#, r#""member_id":"3""#))
                .unwrap_err()
                .contains("another member")
        );
        assert!(lag(&follows.replace(r#""9""#, r#""8""#)).unwrap_err().contains("another member"));
        let alarmed = follows.replace(r#""raftIndex""#, r#""errors":["NOSPACE"],"raftIndex""#);
        assert_eq!(lag(&alarmed).unwrap_err(), "it has an alarm: NOSPACE");
    }

    #[test]
    fn addresses_of_members() {
        assert_eq!(address("http://10.0.0.2:2379"), Ok(("10.0.0.2:2379".to_owned(), false)));
        assert_eq!(address("https://b:2379/"), Ok(("b:2379".to_owned(), true)));
        assert!(address("/run/etcd.sock").is_err());
        assert_eq!(name(&Member { id: "255".into(), ..Member::default() }), "ff");
    }
}
