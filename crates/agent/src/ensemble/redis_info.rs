//! What a Redis says of its replication, by the fields of its `INFO`.

use bellwether_core::records::member::Replication;

use crate::probe::redis::Info;
use crate::probe::redis::roles::{self, is_connected, joined, upstream};

/// The host of the address that a replica of nobody follows.
pub(super) const NOBODY_HOST: &str = "127.0.0.1";

/// The port of that address, where nobody listens.
pub(super) const NOBODY_PORT: &str = "1";

/// Seconds without a connection after which what is read from a replica is old.
const STALE_AFTER: i64 = 5;

/// What is told that changes as the data do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tells {
    /// How far in the history it is.
    pub(super) position: bool,
    /// How many keys there are, also of one that takes writes: a person may have to decide between several.
    pub(super) keys: bool,
}

/// What the fields of `INFO` say of the replication; `None` if they are not those of Redis. A position that changes is told only if asked
/// for.
pub(super) fn replication(info: &Info, scheme: &str, tells: Tells) -> Option<Replication> {
    let is_primary = match info.get("role")? {
        "master" => true,
        "slave" => false,
        _ => return None,
    };
    let history = info.get("master_replid")?.to_owned();
    let former = info.get("master_replid2").filter(|id| id.bytes().any(|byte| byte != b'0'));
    let follows = followed(info);
    let is_copying = info.get("master_sync_in_progress") == Some("1");
    let streams = !is_primary && !is_copying && is_connected(info);
    let is_detached = !is_primary && follows.is_none();
    let position = if is_primary { "master_repl_offset" } else { "slave_repl_offset" };
    let offset = info.get(position).and_then(|text| text.parse().ok());
    let url = |address: String| format!("{scheme}://{address}");
    Some(Replication {
        is_primary,
        follows: follows.map(url),
        streams,
        is_whole: !is_copying,
        history,
        former: former.map(str::to_owned),
        offset: offset.filter(|_| tells.position || is_detached),
        replicas: if is_primary { replicas(info).into_iter().map(url).collect() } else { Vec::new() },
        takes_over: false,
        run: info.get("run_id")?.to_owned(),
        cannot_store: info.get("aof_last_write_status") == Some("err"),
        keys: match is_primary || streams {
            false => Some(keys(info)),
            true => tells.keys.then(|| rounded(keys(info))),
        },
    })
}

/// The address of the member that one follows; `None` if it follows nobody.
fn followed(info: &Info) -> Option<String> {
    let nobody = joined(NOBODY_HOST, NOBODY_PORT);
    upstream(info).filter(|address| *address != nobody)
}

/// Whether a replica has lost its connection for longer than a reconnection takes.
pub(super) fn is_stale(info: &Info) -> bool {
    let down = info.get("master_link_down_since_seconds").and_then(|text| text.parse::<i64>().ok());
    followed(info).is_some() && !is_connected(info) && down.is_some_and(|down| down >= STALE_AFTER)
}

/// The number of keys in all databases.
fn keys(info: &Info) -> u64 {
    let of = |line: &str| line.split(',').find_map(|field| field.strip_prefix("keys=")?.parse::<u64>().ok());
    info.with_prefix("db").filter_map(of).sum()
}

/// Down to two digits: the number of one that takes writes changes all the time.
fn rounded(keys: u64) -> u64 {
    let mut unit = 1;
    while keys / unit >= 100 {
        unit *= 10;
    }
    keys / unit * unit
}

/// The addresses of the replicas that a primary sends data to, in order.
fn replicas(info: &Info) -> Vec<String> {
    let known = roles::replicas(info);
    let mut connected: Vec<String> =
        known.into_iter().filter(|replica| replica.lag.is_ok()).map(|replica| replica.id).collect();
    connected.sort_unstable();
    connected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_one_that_takes_writes_are_counted_to_two_digits() {
        let counted = [0, 9, 99, 100, 137, 22_137, u64::MAX].map(rounded);
        assert_eq!(counted, [0, 9, 99, 100, 130, 22_000, 18_000_000_000_000_000_000]);
    }

    fn said(text: &str, tells_position: bool) -> Replication {
        let mut info = Info::default();
        info.add(&format!("run_id:77\n{text}").replace('\n', "\r\n"));
        replication(&info, "redis", Tells { position: tells_position, keys: false }).unwrap()
    }

    #[test]
    fn a_position_is_told_where_it_stands_still_or_was_asked_for() {
        let replica = "role:slave\nmaster_host:10.0.0.1\nmaster_port:6379\nmaster_link_status:up\n\
                       master_sync_in_progress:0\nslave_repl_offset:14\nmaster_replid:ab\nmaster_replid2:00\n";
        let streaming = said(replica, false);
        assert_eq!(streaming.follows.as_deref(), Some("redis://10.0.0.1:6379"));
        assert!(streaming.streams && streaming.is_whole && streaming.former.is_none());
        assert_eq!((streaming.offset, said(replica, true).offset), (None, Some(14)));
        let detached = replica.replace("10.0.0.1", NOBODY_HOST).replace("6379", NOBODY_PORT);
        let detached = said(&detached.replace(":up", ":down"), false);
        assert_eq!((detached.follows, detached.streams, detached.offset), (None, false, Some(14)));
        let keys =
            |databases: &str| said(&format!("{replica}{databases}").replace(":up", ":down"), false).keys;
        assert_eq!(
            (keys(""), keys("db0:keys=7,expires=0,avg_ttl=0\ndb3:keys=2,expires=1\n")),
            (Some(0), Some(9))
        );
        assert_eq!(streaming.keys, None);
        let copying = said(&replica.replace("progress:0", "progress:1"), false);
        assert!(!copying.streams && !copying.is_whole);
    }

    #[test]
    fn a_primary_names_the_replicas_that_get_its_data() {
        let primary = said(
            "role:master\nmaster_replid:ab\nmaster_replid2:cd\nmaster_repl_offset:20\n\
             slave0:ip=10.0.0.3,port=6379,state=online,offset=20,lag=0\n\
             slave1:ip=10.0.0.2,port=6379,state=online,offset=20,lag=1\n\
             slave2:ip=10.0.0.4,port=6379,state=wait_bgsave,offset=0,lag=0\n",
            false,
        );
        assert_eq!(primary.replicas, ["redis://10.0.0.2:6379", "redis://10.0.0.3:6379"]);
        assert!(primary.is_primary && primary.offset.is_none() && primary.keys.is_none());
        assert!(!primary.cannot_store);
        let full = said("role:master\nmaster_replid:ab\naof_last_write_status:err\n", false);
        assert!(full.cannot_store);
        assert_eq!(primary.former.as_deref(), Some("cd"));
    }

    #[test]
    fn a_replica_that_is_not_connected_for_longer_than_a_reconnection_takes_is_stale() {
        let of = |text: &str| {
            let mut info = Info::default();
            info.add(&text.replace('\n', "\r\n"));
            is_stale(&info)
        };
        let down = "role:slave\nmaster_host:10.0.0.1\nmaster_port:6379\nmaster_link_status:down\nmaster_link_down_since_seconds:5\n";
        assert!(of(down));
        assert!(
            !of(&down.replace("seconds:5", "seconds:4")) && !of(&down.replace("seconds:5", "seconds:-1"))
        );
        assert!(!of(&down.replace("status:down", "status:up")) && !of("role:master\n"));
        assert!(!of(&down.replace("10.0.0.1", NOBODY_HOST).replace("6379", NOBODY_PORT)));
    }
}
