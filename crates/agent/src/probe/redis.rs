//! Redis and what speaks like it, by `INFO`.

pub(crate) mod handover;
pub(crate) mod roles;

use std::collections::BTreeMap;

use bellwether_core::records::probes::{Amount, Shard, ShardRole, StoreFacts, StoreMember};

use super::answer::ProbeError;
use super::resp::Redis;
use crate::config::data_store::Login;

/// Name of the software.
pub(super) const SOFTWARE: &str = "redis";

/// Asks for the sections `server` and `replication`, and whether it is loading its data.
pub(super) async fn ask(address: &str, login: &Login) -> Result<StoreFacts, ProbeError> {
    let mut redis = Redis::connect(address, login).await?;
    let mut info = Info::default();
    for section in ["server", "persistence", "replication"] {
        info.add(&redis.text(&["INFO", section]).await?);
    }
    if info.get("loading") == Some("1") {
        return Err(ProbeError::Down(format!("{address}: it loads its data")));
    }
    facts(address, &info)
}

/// The fields of `INFO`.
#[derive(Debug, Default)]
pub(crate) struct Info(BTreeMap<String, String>);

impl Info {
    /// Adds the fields of a section.
    pub(crate) fn add(&mut self, text: &str) {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        self.0.extend(fields.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())));
    }

    /// The value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The values of the fields whose names begin so.
    pub(crate) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(name, _)| name.starts_with(prefix));
        named.map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }
}

pub(super) fn facts(address: &str, info: &Info) -> Result<StoreFacts, ProbeError> {
    let nonsense = || ProbeError::Unknown(format!("{address}: the answer has no role; is it Redis?"));
    let bytes = |amount| Amount { amount, unit: "bytes".to_owned() };
    let history = info.get("master_replid").map(str::to_owned);
    let (shard, members) = match info.get("role").ok_or_else(nonsense)? {
        "master" => {
            let offset = info.number("master_repl_offset").map(bytes);
            let shard = Shard {
                role: ShardRole::Primary,
                history,
                offset,
                lag: None,
                upstream: None,
                streaming: None,
            };
            (shard, Some(replicas(info)))
        }
        "slave" => {
            let syncing = info.get("master_sync_in_progress") == Some("1");
            let host = info.get("master_host").zip(info.get("master_port"));
            let shard = Shard {
                role: ShardRole::Replica,
                history,
                offset: info.number("slave_repl_offset").map(bytes),
                lag: None,
                upstream: host.map(|(host, port)| format!("{host}:{port}")),
                streaming: Some(info.get("master_link_status") == Some("up") && !syncing),
            };
            (shard, None)
        }
        other => return Err(ProbeError::Unknown(format!("{address}: the role {other:?} is not known"))),
    };
    Ok(StoreFacts {
        software: SOFTWARE.to_owned(),
        version: info.get("redis_version").map(str::to_owned),
        cluster_id: None,
        member_id: info.get("run_id").map(str::to_owned),
        shards: BTreeMap::from([("0".to_owned(), shard)]),
        members,
    })
}

/// The replicas that a primary knows, by address.
fn replicas(info: &Info) -> BTreeMap<String, StoreMember> {
    let lines = (0..).map_while(|index| info.get(&format!("slave{index}")));
    let member = |line: &str| {
        let fields: BTreeMap<&str, &str> =
            line.split(',').filter_map(|field| field.split_once('=')).collect();
        let address = format!("{}:{}", fields.get("ip")?, fields.get("port")?);
        let connected = fields.get("state").map(|state| *state == "online");
        let member = StoreMember { address: Some(address.clone()), connected, votes: true, name: None };
        Some((address, member))
    };
    lines.filter_map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<StoreFacts, ProbeError> {
        let mut info = Info::default();
        info.add(&text.replace('\n', "\r\n"));
        facts("a:1", &info)
    }

    #[test]
    fn a_primary_knows_its_replicas_and_a_replica_where_it_replicates_from() {
        let primary =
            of("redis_version:7.0.15\nrun_id:ab\nrole:master\nmaster_replid:77\nmaster_repl_offset:14\n\
                          slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=0\n\
                          slave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\n")
            .unwrap();
        assert_eq!(primary.shards["0"].role, ShardRole::Primary);
        let members = primary.members.unwrap();
        assert_eq!(
            (members["10.0.0.2:6379"].connected, members["10.0.0.3:6379"].connected),
            (Some(true), Some(false))
        );
        let replica = of("role:slave\nmaster_host:10.0.0.1\nmaster_port:6379\nmaster_link_status:up\n\
                          master_sync_in_progress:0\nslave_repl_offset:10\nmaster_replid:77\n")
        .unwrap();
        let shard = &replica.shards["0"];
        assert_eq!((shard.role, shard.streaming), (ShardRole::Replica, Some(true)));
        assert_eq!(
            (shard.upstream.as_deref(), shard.history.as_deref()),
            (Some("10.0.0.1:6379"), Some("77"))
        );
        let syncing = of("role:slave\nmaster_link_status:up\nmaster_sync_in_progress:1\n").unwrap();
        assert_eq!(syncing.shards["0"].streaming, Some(false));
        assert!(of("role:sentinel\n").is_err() && of("hello\n").is_err());
    }
}
