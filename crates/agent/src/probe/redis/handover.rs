//! A Redis hands over its leadership: by `FAILOVER` to the replica that is least behind. Since a Redis reads its role from its configuration
//! when it starts, it rewrites that before and after; one that cannot is left alone.

use bellwether_core::local::handover::{Follower, ReplicaStep, after_handover, choose};
use bellwether_rt::fail::{self, FailPoint};
use bellwether_rt::observed;

use super::super::answer::ProbeError;
use super::super::begun::BegunHandover;
use super::super::limits::{FOLLOWER_LIMIT, LOOK};
use super::super::resp::{Redis, Reply};
use super::Info;
use crate::config::data_store::Login;

/// Longest time for which writers are kept waiting until the replica has caught up, in milliseconds; then the primary goes on as before.
const PAUSE_MS: &str = "5000";

/// Longest time since a replica's last word, in seconds: it sends one every second. As `min-replicas-max-lag` of Redis by default.
const MAX_SILENCE_SECS: u64 = 10;

/// Where a failover stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailoverProgress {
    /// None is under way, and it leads.
    Leads,
    /// One is under way.
    UnderWay,
    /// It follows.
    Follows,
}

/// A replica as it is before a handover.
struct FormerReplica {
    follower: Follower,
    /// Its own name for what it follows.
    upstream: Option<String>,
}

/// Hands over to a replica, if it leads, and waits until it follows. Answers the address of the new primary.
pub(in super::super) async fn hand_over(
    address: &str,
    login: &Login,
    begun: &BegunHandover,
) -> Result<String, ProbeError> {
    let mut own = Redis::connect(address, login).await?;
    let now = info(&mut own).await?;
    if let Some(reason) = refusal(&now) {
        return Err(ProbeError::Unknown(reason.to_owned()));
    }
    if progress(&now) == FailoverProgress::Leads {
        if is_watched(&mut own).await? {
            let reason = "a Sentinel watches it: hand over by SENTINEL FAILOVER";
            return Err(ProbeError::Unknown(reason.to_owned()));
        }
        fail_over(&mut own, &now, login, begun).await?;
    }
    if !follows(&mut own).await? {
        begun.end().await;
        return Err(ProbeError::Unknown("the replica did not catch up in time".to_owned()));
    }
    fail::pass(FailPoint::HandoverFollowed);
    let next = settle(address, login, begun).await?;
    fail::pass(FailPoint::HandoverEnded);
    Ok(next)
}

/// Has a primary fail over to one of its replicas, after it was remembered which others are to follow that one.
async fn fail_over(
    own: &mut Redis,
    now: &Info,
    login: &Login,
    begun: &BegunHandover,
) -> Result<(), ProbeError> {
    let mut known = Vec::new();
    for replica in replicas(now) {
        known.push(asked(replica, login).await);
    }
    let followers: Vec<Follower> = known.iter().map(|replica| replica.follower.clone()).collect();
    let next = choose(&followers, None).map_err(ProbeError::Unknown)?.id.clone();
    fail::pass(FailPoint::HandoverChosen);
    // Before anything has changed: one that cannot keep its role must not get another.
    own.text(&["CONFIG", "REWRITE"]).await?;
    Redis::connect(&next, login).await?.text(&["CONFIG", "REWRITE"]).await?;
    fail::pass(FailPoint::HandoverFilesWritten);
    let others = known.into_iter().filter(|other| other.follower.id != next);
    begun.begin(others.filter_map(|other| Some((other.follower.id, other.upstream?))).collect()).await?;
    fail::pass(FailPoint::HandoverStored);
    let (host, port) = host_and_port(&next);
    let accepted = own.text(&["FAILOVER", "TO", host, port, "TIMEOUT", PAUSE_MS]).await;
    if let Err(ProbeError::Unknown(_)) = &accepted {
        // It says no; where nothing was said, it may have begun.
        begun.end().await;
    }
    accepted?;
    fail::pass(FailPoint::HandoverBegun);
    Ok(())
}

/// Ends a handover that was broken off, as far as that can be done now.
pub(in super::super) async fn end(
    address: &str,
    login: &Login,
    begun: &BegunHandover,
) -> Result<(), ProbeError> {
    let now = info(&mut Redis::connect(address, login).await?).await?;
    match progress(&now) {
        // It did not take place, or it leads again: whoever follows it does so rightly.
        FailoverProgress::Leads => begun.end().await,
        FailoverProgress::UnderWay => {}
        FailoverProgress::Follows => drop(settle(address, login, begun).await?),
    }
    Ok(())
}

/// Makes a store that follows keep that role, and the replicas that a handover has left behind follow the primary. Answers the address of
/// that one.
pub(in super::super) async fn settle(
    address: &str,
    login: &Login,
    begun: &BegunHandover,
) -> Result<String, ProbeError> {
    let next = keep_role(address, login).await?;
    let Some(mut left) = begun.left() else { return Ok(next) };
    let mut behind = Vec::new();
    for (replica, former) in left.clone() {
        match observed::timeout(FOLLOWER_LIMIT, follow(&replica, (&former, &next), login)).await {
            Ok(Ok(())) => drop(left.remove(&replica)),
            Ok(Err(error)) => behind.push(format!("{replica}: {error}")),
            Err(_) => behind.push(format!("{replica}: no answer in time")),
        }
    }
    begun.leave(left).await;
    if !behind.is_empty() {
        let behind = behind.join(", ");
        begun.failed(format!("replicas go on behind their former primary, and not {next}: {behind}"));
    }
    Ok(next)
}

/// Ends a failover that takes too long.
pub(in super::super) async fn abort(address: &str, login: &Login) -> Result<(), ProbeError> {
    Redis::connect(address, login).await?.text(&["FAILOVER", "ABORT"]).await.map(drop)
}

/// Makes a replica remember over its restart that it is one, and its primary that it is none, which may have changed without a word in
/// their configurations. One that runs without a file was never handed over, and is what its arguments say.
async fn keep_role(address: &str, login: &Login) -> Result<String, ProbeError> {
    let mut own = Redis::connect(address, login).await?;
    let now = info(&mut own).await?;
    // Who asked for its role before was told that it follows.
    let Some(upstream) = upstream(&now).filter(|_| progress(&now) == FailoverProgress::Follows) else {
        return Err(ProbeError::Unknown("its role changes at this moment".to_owned()));
    };
    match own.text(&["CONFIG", "REWRITE"]).await {
        Err(error @ ProbeError::Unknown(_)) if is_unwritable(&error.to_string()) => return Err(error),
        Ok(_) | Err(ProbeError::Unknown(_)) => {}
        Err(error @ (ProbeError::Down(_) | ProbeError::Broken(_))) => return Err(error),
    }
    fail::pass(FailPoint::OwnRoleKept);
    let primary = async { Redis::connect(&upstream, login).await?.text(&["CONFIG", "REWRITE"]).await };
    if let Ok(Err(error)) = observed::timeout(FOLLOWER_LIMIT, primary).await {
        tracing::warn!(primary = upstream, %error, "the primary may start as a replica");
    }
    fail::pass(FailPoint::RolesKept);
    Ok(upstream)
}

/// Makes a replica of the former primary follow the next one, also after its restart. One that somebody else has changed is left as it is.
async fn follow(address: &str, (former, next): (&str, &str), login: &Login) -> Result<(), ProbeError> {
    let mut replica = Redis::connect(address, login).await?;
    let now = info(&mut replica).await?;
    match after_handover(upstream(&now).as_deref(), former, next) {
        ReplicaStep::Leave => return Ok(()),
        ReplicaStep::Keep => {}
        ReplicaStep::Follow => {
            let (host, port) = host_and_port(next);
            replica.text(&["REPLICAOF", host, port]).await?;
            fail::pass(FailPoint::ReplicaMoved);
        }
    }
    // Its role stays: with the old configuration it would be a replica of a replica.
    drop(replica.text(&["CONFIG", "REWRITE"]).await);
    fail::pass(FailPoint::ReplicaKept);
    Ok(())
}

/// Waits for the end of a failover: whether it follows then.
async fn follows(own: &mut Redis) -> Result<bool, ProbeError> {
    loop {
        let now = info(own).await?;
        match (progress(&now), upstream(&now)) {
            (FailoverProgress::Follows, Some(_)) => return Ok(true),
            (FailoverProgress::Leads, _) => return Ok(false),
            (FailoverProgress::Follows | FailoverProgress::UnderWay, _) => tokio::time::sleep(LOOK).await,
        }
    }
}

async fn info(redis: &mut Redis) -> Result<Info, ProbeError> {
    let mut info = Info::default();
    for section in ["server", "replication"] {
        info.add(&redis.text(&["INFO", section]).await?);
    }
    Ok(info)
}

/// Whether a Sentinel listens to what others say of it.
async fn is_watched(redis: &mut Redis) -> Result<bool, ProbeError> {
    let Reply::List(answer) = redis.call(&["PUBSUB", "NUMSUB", "__sentinel__:hello"]).await? else {
        return Ok(false);
    };
    Ok(answer.get(1).is_some_and(|count| *count != Reply::Text("0".to_owned())))
}

/// Asks a replica whether it may take over, and whom it follows; the primary's word of it says how far it is behind.
async fn asked(replica: Follower, login: &Login) -> FormerReplica {
    if replica.lag.is_err() {
        return FormerReplica { follower: replica, upstream: None };
    }
    let asking = async {
        let mut redis = Redis::connect(&replica.id, login).await?;
        info(&mut redis).await
    };
    let late = || ProbeError::Unknown(format!("no answer within {} s", FOLLOWER_LIMIT.as_secs()));
    let answer = observed::timeout(FOLLOWER_LIMIT, asking).await.unwrap_or_else(|_| Err(late()));
    let (unfit, upstream) = match answer {
        Ok(info) => (unfit(&info), upstream(&info)),
        Err(error) => (Some(error.to_string()), None),
    };
    let lag = replica.lag.and_then(|lag| unfit.map_or(Ok(lag), Err));
    FormerReplica { follower: Follower { lag, ..replica }, upstream }
}

/// Why a Redis hands over to nobody.
fn refusal(info: &Info) -> Option<&'static str> {
    match info.get("redis_mode") {
        Some("cluster") => Some("it is part of a Redis Cluster: hand over by CLUSTER FAILOVER on a replica"),
        Some(_) | None => None,
    }
}

fn progress(info: &Info) -> FailoverProgress {
    match (info.get("role"), info.get("master_failover_state")) {
        (_, Some(state)) if state != "no-failover" => FailoverProgress::UnderWay,
        (Some("slave"), _) => FailoverProgress::Follows,
        (_, _) => FailoverProgress::Leads,
    }
}

/// The replicas that a primary knows, with how far each is behind as it has confirmed last.
fn replicas(info: &Info) -> Vec<Follower> {
    let offset: u64 = info.get("master_repl_offset").and_then(|text| text.parse().ok()).unwrap_or_default();
    let lines = (0..).map_while(|index| info.get(&format!("slave{index}")));
    lines.filter_map(|line| replica(line, offset)).collect()
}

fn replica(line: &str, primary: u64) -> Option<Follower> {
    let field = |name: &str| {
        line.split(',')
            .find_map(|field| field.split_once('=').filter(|(key, _)| *key == name))
            .map(|(_, value)| value)
    };
    let number = |name: &str| field(name).and_then(|text| text.parse::<u64>().ok());
    let id = joined(field("ip")?, field("port")?);
    let lag = match (field("state"), number("offset"), number("lag")) {
        (Some("online"), Some(_), Some(silence)) if silence > MAX_SILENCE_SECS => {
            Err(format!("silent for {silence} s"))
        }
        (Some("online"), Some(offset), Some(_)) => Ok(primary.saturating_sub(offset)),
        (state, _, _) => Err(format!("not connected: {}", state.unwrap_or("state unknown"))),
    };
    Some(Follower { name: id.clone(), id, lag })
}

/// Why a replica must not take over, by its own word.
fn unfit(info: &Info) -> Option<String> {
    if info.get("role") != Some("slave") {
        return Some("it is no replica".to_owned());
    }
    if info.get("slave_priority") == Some("0") {
        return Some("it has the priority 0, never to be a primary".to_owned());
    }
    (info.get("master_link_status") != Some("up")).then(|| "it is not connected to its primary".to_owned())
}

/// Address of the primary of a replica.
fn upstream(info: &Info) -> Option<String> {
    info.get("role").filter(|role| *role == "slave")?;
    Some(joined(info.get("master_host")?, info.get("master_port")?))
}

fn joined(host: &str, port: &str) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The host and the port of an address, as Redis takes them.
fn host_and_port(address: &str) -> (&str, &str) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// Whether a refusal says that there is a configuration file, which cannot be written.
fn is_unwritable(reason: &str) -> bool {
    reason.contains("Rewriting config file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Info {
        let mut info = Info::default();
        info.add(&text.replace('\n', "\r\n"));
        info
    }

    #[test]
    fn replicas_that_are_not_connected_or_silent_must_not_take_over() {
        let known = replicas(&of(
            "role:master\nmaster_repl_offset:100\nslave0:ip=10.0.0.2,port=6379,state=online,offset=90,lag=1\n\
             slave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\n\
             slave2:ip=10.0.0.4,port=6379,state=online,offset=100,lag=11\n\
             slave3:ip=fe80::1,port=6380,state=online,offset=120,lag=0\n",
        ));
        let said: Vec<_> = known.iter().map(|replica| (&*replica.id, replica.lag.clone())).collect();
        assert_eq!(
            said,
            [
                ("10.0.0.2:6379", Ok(10)),
                ("10.0.0.3:6379", Err("not connected: wait_bgsave".to_owned())),
                ("10.0.0.4:6379", Err("silent for 11 s".to_owned())),
                ("[fe80::1]:6380", Ok(0)),
            ]
        );
        assert_eq!(host_and_port("[fe80::1]:6380"), ("fe80::1", "6380"));
        assert_eq!(replicas(&of("role:master\nmaster_repl_offset:100\n")), []);
    }

    #[test]
    fn what_a_replica_says_of_itself_may_forbid_it() {
        let fit = "role:slave\nmaster_link_status:up\nslave_priority:100\n";
        assert_eq!(unfit(&of(fit)), None);
        assert!(unfit(&of(&fit.replace("100", "0"))).unwrap().contains("priority 0"));
        assert!(unfit(&of(&fit.replace("up", "down"))).unwrap().contains("not connected"));
        assert!(unfit(&of("role:master\n")).unwrap().contains("no replica"));
    }

    #[test]
    fn a_failover_is_over_when_none_is_under_way() {
        let state =
            |role: &str, state: &str| progress(&of(&format!("role:{role}\nmaster_failover_state:{state}\n")));
        assert_eq!(state("master", "no-failover"), FailoverProgress::Leads);
        assert_eq!(state("master", "waiting-for-sync"), FailoverProgress::UnderWay);
        assert_eq!(state("slave", "failover-in-progress"), FailoverProgress::UnderWay);
        assert_eq!(state("slave", "no-failover"), FailoverProgress::Follows);
        assert_eq!(progress(&of("role:master\n")), FailoverProgress::Leads, "before 6.2");
        assert_eq!(upstream(&of("role:slave\nmaster_host:::1\nmaster_port:2\n")).as_deref(), Some("[::1]:2"));
        assert_eq!(upstream(&of("role:master\n")), None);
        assert!(
            refusal(&of("redis_mode:cluster\n")).is_some()
                && refusal(&of("redis_mode:standalone\n")).is_none()
        );
        assert!(is_unwritable("a:1: ERR Rewriting config file: Permission denied"));
        assert!(!is_unwritable("a:1: ERR The server is running without a config file"));
    }
}
