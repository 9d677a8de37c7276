//! Redis Sentinel: it serves no data, and has an opinion about primaries. Its members are the primaries that it watches.

use std::collections::BTreeMap;

use bellwether_core::records::probes::{StoreFacts, StoreMember};

use super::answer::ProbeError;
use super::redis::Info;
use super::resp::{Redis, Reply};
use crate::config::data_store::Login;

/// Name of the software.
pub(super) const SOFTWARE: &str = "redis-sentinel";

/// Asks which primaries it watches.
pub(super) async fn ask(address: &str, login: &Login) -> Result<StoreFacts, ProbeError> {
    let mut redis = Redis::connect(address, login).await?;
    let mut info = Info::default();
    info.add(&redis.text(&["INFO", "server"]).await?);
    if info.get("redis_mode") != Some("sentinel") {
        return Err(ProbeError::Unknown(format!("{address}: it is not a Sentinel")));
    }
    let masters = redis.call(&["SENTINEL", "MASTERS"]).await?;
    let member_id = redis.text(&["SENTINEL", "MYID"]).await.ok();
    Ok(StoreFacts {
        software: SOFTWARE.to_owned(),
        version: info.get("redis_version").map(str::to_owned),
        cluster_id: None,
        member_id,
        shards: BTreeMap::new(),
        members: Some(watched(masters)),
    })
}

pub(super) fn watched(masters: Reply) -> BTreeMap<String, StoreMember> {
    let Reply::List(masters) = masters else { return BTreeMap::new() };
    masters.into_iter().filter_map(primary).collect()
}

/// A primary: a list of names and values in turn.
fn primary(reply: Reply) -> Option<(String, StoreMember)> {
    let Reply::List(items) = reply else { return None };
    let mut texts = items.into_iter().map(|item| match item {
        Reply::Text(text) => text,
        Reply::List(_) | Reply::Null => String::new(),
    });
    let mut fields = BTreeMap::new();
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        fields.insert(name, value);
    }
    let name = fields.remove("name")?;
    let address = fields.get("ip").zip(fields.get("port")).map(|(ip, port)| format!("{ip}:{port}"));
    let down = fields.get("flags").is_some_and(|flags| flags.split(',').any(|flag| flag.ends_with("_down")));
    Some((name.clone(), StoreMember { name: Some(name), address, votes: false, connected: Some(!down) }))
}
