//! `ZooKeeper`, by `srvr`: the one command that it allows by default.

use std::collections::BTreeMap;

use bellwether_core::records::probes::{Amount, Shard, ShardRole, StoreFacts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::address::{broken, connect};
use super::answer::{MAX_ANSWER_BYTES, ProbeError};

/// Name of the software.
pub(super) const SOFTWARE: &str = "zookeeper";

/// Sends `srvr`, to which it answers and hangs up.
pub(super) async fn ask(address: &str) -> Result<StoreFacts, ProbeError> {
    let mut stream = connect(address).await?;
    stream.write_all(b"srvr").await.map_err(|error| broken(address, &error))?;
    let mut answer = Vec::new();
    let most = u64::try_from(MAX_ANSWER_BYTES).unwrap_or(u64::MAX);
    stream.take(most).read_to_end(&mut answer).await.map_err(|error| broken(address, &error))?;
    facts(address, &String::from_utf8_lossy(&answer))
}

pub(super) fn facts(address: &str, answer: &str) -> Result<StoreFacts, ProbeError> {
    if answer.contains("not currently serving requests") {
        return Err(ProbeError::Down(format!("{address}: it serves no requests: it is in no quorum")));
    }
    let fields: BTreeMap<&str, &str> = answer.lines().filter_map(|line| line.split_once(':')).collect();
    let field = |name: &str| fields.get(name).map(|value| value.trim());
    let role = match field("Mode") {
        Some("leader" | "standalone") => ShardRole::Primary,
        Some("follower") => ShardRole::Replica,
        Some("observer") => ShardRole::Learner,
        Some(other) => {
            return Err(ProbeError::Unknown(format!("{address}: the mode {other:?} is not known")));
        }
        None => {
            let line = answer.lines().next().unwrap_or_default();
            return Err(ProbeError::Unknown(format!(
                "{address}: the answer is not one of ZooKeeper: {line}"
            )));
        }
    };
    // The upper half is the epoch of the leader, the lower half counts from zero in each.
    let zxid = field("Zxid").and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
    let offset = zxid.map(|zxid| Amount { amount: zxid & 0xffff_ffff, unit: "transactions".to_owned() });
    let history = zxid.map(|zxid| format!("epoch {}", zxid >> 32));
    let version = field("Zookeeper version").and_then(|version| version.split(['-', ',']).next());
    let shard = Shard { role, history, offset, lag: None, upstream: None, streaming: None };
    Ok(StoreFacts {
        software: SOFTWARE.to_owned(),
        version: version.map(str::to_owned),
        cluster_id: None,
        member_id: None,
        shards: BTreeMap::from([("0".to_owned(), shard)]),
        members: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_srvr_answers() {
        let answer = "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2022-11-11 11:11 UTC\nLatency min/avg/max: 0/0.0/0\n\
                      Received: 1\nZxid: 0x300000007\nMode: follower\nNode count: 5\n";
        let found = facts("a:1", answer).unwrap();
        assert_eq!(found.version.as_deref(), Some("3.8.0"));
        let shard = &found.shards["0"];
        assert_eq!((shard.role, shard.history.as_deref()), (ShardRole::Replica, Some("epoch 3")));
        assert_eq!(shard.offset, Some(Amount { amount: 7, unit: "transactions".into() }));
        let down = facts("a:1", "This ZooKeeper instance is not currently serving requests\n");
        assert!(matches!(down, Err(ProbeError::Down(_))));
        assert!(matches!(facts("a:1", "HTTP/1.1 400 Bad Request"), Err(ProbeError::Unknown(_))));
        assert!(matches!(facts("a:1", ""), Err(ProbeError::Unknown(_))));
    }
}
