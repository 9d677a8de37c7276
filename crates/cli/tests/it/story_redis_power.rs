//! All members of an ensemble of a real Redis lose their power at once, and the log of the primary is gone: the others keep what they have, and a
//! person names the one to go on with.

use std::net::SocketAddr;

use bellwether_api::v1::ensemble::members::EnsembleMember;

use crate::place::{done, free_ports, text, wait_for};
use crate::redis_client::RedisClient;
use crate::story_redis_ensemble::{complete, installed, kill, primary, programs, spec, write};

/// Number of keys of a member; `None` while it does not answer.
fn keys(member: &EnsembleMember) -> Option<u32> {
    let address: SocketAddr = member.peer_url.clone()?.replace("redis://", "").parse().ok()?;
    RedisClient::connect(address).ok()?.ask("DBSIZE").ok()?.strip_prefix(':')?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_power_failure_a_primary_that_lost_its_log_empties_nobody_and_a_person_names_the_next() {
    let mut place = installed().await;
    let [port, _] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let members = complete(&place, 3).await;
    let former = primary(&members);
    let address = former.peer_url.clone().unwrap().replace("redis://", "");
    wait_for("all have the writes", async || {
        let are_written = (1..=20).all(|number| write(&address, number).is_some());
        are_written && members.iter().all(|member| keys(member) == Some(20))
    })
    .await;
    members.iter().for_each(|member| place.kill_agent(&member.node));
    members.iter().for_each(|member| kill(&programs(port, member)));
    let log = format!("{}/data/ensembles/cache/data/appendonlydir/appendonly.aof.1.incr.aof", former.node);
    std::fs::OpenOptions::new().write(true).open(place.path(&log)).unwrap().set_len(0).unwrap();
    members.iter().for_each(|member| place.resume_agent(&member.node));
    wait_for("a person is asked", async || {
        text(&place.run(&["why", "ensemble/cache"]).stdout).contains("more keys than the primary")
    })
    .await;
    let whole: Vec<&EnsembleMember> = members.iter().filter(|member| keys(member) == Some(20)).collect();
    assert_eq!(whole.len(), 2, "nothing is overwritten");
    assert!(done(&place, &["ensemble", "list"]).contains("0 of 3"), "nobody takes writes");
    assert!(done(&place, &["events", "--limit", "1000"]).contains("ensemble.failover_held"));
    let refused = place.run(&["ensemble", "failover", "cache"]);
    assert!(text(&refused.stderr).contains("does not work or is not heard of"), "{}", text(&refused.stderr));
    let to = whole.first().unwrap().number.to_string();
    done(&place, &["ensemble", "failover", "cache", "--to", &to, "--accept-data-loss", "--yes"]);
    let after = complete(&place, 3).await;
    assert_eq!(primary(&after).number.to_string(), to);
    wait_for("all have them again", async || after.iter().all(|member| keys(member) == Some(20))).await;
}
