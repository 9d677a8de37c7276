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
use super::roles::{FailoverProgress, host_and_port, progress, refusal, replicas, unfit, upstream};
use crate::config::data_store::Login;
use crate::ledger::HandoverEntry;

/// Longest time for which writers are kept waiting until the replica has caught up, in milliseconds; then the primary goes on as before.
const PAUSE_MS: &str = "5000";

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
    let mut now = info(&mut own).await?;
    if let Some(reason) = refusal(&now) {
        return Err(ProbeError::Unknown(reason.to_owned()));
    }
    if progress(&now) == FailoverProgress::Leads && begun.left().is_some() {
        resolve(&mut own, login, begun).await?;
        now = info(&mut own).await?;
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
    let replicas = others.filter_map(|other| Some((other.follower.id, other.upstream?))).collect();
    begun.begin(HandoverEntry { next: next.clone(), replicas }).await?;
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
    let mut own = Redis::connect(address, login).await?;
    match progress(&info(&mut own).await?) {
        FailoverProgress::Leads => resolve(&mut own, login, begun).await?,
        FailoverProgress::UnderWay => {}
        FailoverProgress::Follows => drop(settle(address, login, begun).await?),
    }
    Ok(())
}

/// Finds out what became of a handover whose former primary leads: it did not take place, or that one was started anew before its
/// configuration said that it follows. Then it is made to follow: the one to which it handed over is the primary.
async fn resolve(own: &mut Redis, login: &Login, begun: &BegunHandover) -> Result<(), ProbeError> {
    let Some(next) = begun.left().map(|entry| entry.next).filter(|next| !next.is_empty()) else {
        begun.end().await;
        return Ok(());
    };
    let asking = async { info(&mut Redis::connect(&next, login).await?).await };
    let late = || ProbeError::Unknown(format!("no answer within {} s", FOLLOWER_LIMIT.as_secs()));
    let answer = observed::timeout(FOLLOWER_LIMIT, asking).await.unwrap_or_else(|_| Err(late()));
    let said = answer.map_err(|error| {
        let reason = format!("a handover to {next} was broken off, and that one may be the primary: {error}");
        ProbeError::Unknown(reason)
    })?;
    if upstream(&said).is_some() {
        // Whoever follows this one does so rightly.
        begun.end().await;
        return Ok(());
    }
    tracing::warn!(primary = %next, "started as a primary after a handover: it is made to follow the new primary");
    let (host, port) = host_and_port(&next);
    own.text(&["REPLICAOF", host, port]).await?;
    drop(own.text(&["CONFIG", "REWRITE"]).await);
    Ok(())
}

/// Makes a store that follows keep that role, and the replicas that a handover has left behind follow the primary. Answers the address of
/// that one.
pub(in super::super) async fn settle(
    address: &str,
    login: &Login,
    begun: &BegunHandover,
) -> Result<String, ProbeError> {
    let next = keep_role(address, login, begun).await?;
    let Some(mut left) = begun.left().map(|entry| entry.replicas) else { return Ok(next) };
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
async fn keep_role(address: &str, login: &Login, begun: &BegunHandover) -> Result<String, ProbeError> {
    let mut own = Redis::connect(address, login).await?;
    let now = info(&mut own).await?;
    // Who asked for its role before was told that it follows.
    let Some(upstream) = upstream(&now).filter(|_| progress(&now) == FailoverProgress::Follows) else {
        return Err(ProbeError::Unknown("its role changes at this moment".to_owned()));
    };
    // With a primary that was started anew as a replica of this one nobody leads, and no configuration may say so for ever.
    let asking = async { info(&mut Redis::connect(&upstream, login).await?).await };
    if let Ok(Ok(said)) = observed::timeout(FOLLOWER_LIMIT, asking).await
        && self::upstream(&said).is_some()
        && begun.left().is_some_and(|entry| entry.next == upstream)
    {
        let reason = format!("{upstream}, to which it handed over, is no primary: it is a replica");
        return Err(ProbeError::Unknown(reason));
    }
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
pub(crate) async fn is_watched(redis: &mut Redis) -> Result<bool, ProbeError> {
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

/// Whether a refusal says that there is a configuration file, which cannot be written.
fn is_unwritable(reason: &str) -> bool {
    reason.contains("Rewriting config file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_cannot_be_written_is_not_one_that_is_not_there() {
        assert!(is_unwritable("a:1: ERR Rewriting config file: Permission denied"));
        assert!(!is_unwritable("a:1: ERR The server is running without a config file"));
    }
}
