//! What a Redis says of its replication, as a handover reads it.

use bellwether_core::local::handover::Follower;

use super::Info;

/// Longest time since a replica's last word, in seconds: it sends one every second. As `min-replicas-max-lag` of Redis by default.
const MAX_SILENCE_SECS: u64 = 10;

/// Where a failover stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailoverProgress {
    /// None is under way, and it leads.
    Leads,
    /// One is under way.
    UnderWay,
    /// It follows.
    Follows,
}

/// Why a Redis hands over to nobody.
pub(super) fn refusal(info: &Info) -> Option<&'static str> {
    match info.get("redis_mode") {
        Some("cluster") => Some("it is part of a Redis Cluster: hand over by CLUSTER FAILOVER on a replica"),
        Some(_) | None => None,
    }
}

/// Where its failover stands.
pub(super) fn progress(info: &Info) -> FailoverProgress {
    match (info.get("role"), info.get("master_failover_state")) {
        (_, Some(state)) if state != "no-failover" => FailoverProgress::UnderWay,
        (Some("slave"), _) => FailoverProgress::Follows,
        (_, _) => FailoverProgress::Leads,
    }
}

/// The replicas that a primary knows, with how far each is behind as it has confirmed last.
pub(crate) fn replicas(info: &Info) -> Vec<Follower> {
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
pub(super) fn unfit(info: &Info) -> Option<String> {
    if info.get("role") != Some("slave") {
        return Some("it is no replica".to_owned());
    }
    if info.get("slave_priority") == Some("0") {
        return Some("it has the priority 0, never to be a primary".to_owned());
    }
    (!is_connected(info)).then(|| "it is not connected to its primary".to_owned())
}

/// Whether a replica is connected to its primary.
pub(crate) fn is_connected(info: &Info) -> bool {
    info.get("master_link_status") == Some("up")
}

/// Address of the primary of a replica.
pub(crate) fn upstream(info: &Info) -> Option<String> {
    info.get("role").filter(|role| *role == "slave")?;
    Some(joined(info.get("master_host")?, info.get("master_port")?))
}

/// An address of a host and a port.
pub(crate) fn joined(host: &str, port: &str) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The host and the port of an address, as Redis takes them.
pub(super) fn host_and_port(address: &str) -> (&str, &str) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    (host.trim_start_matches('[').trim_end_matches(']'), port)
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
    }
}
