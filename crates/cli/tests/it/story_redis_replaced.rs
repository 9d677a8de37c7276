//! Members of a real Redis are replaced on request under a client that counts what a replica had: a replica leaves once another one has the data, the primary
//! hands over first, and one that does not work leaves sooner than by itself. One whose agent is dead and whose node is decommissioned replicates no longer.

use std::time::Duration;

use bellwether_api::v1::ensemble::members::EnsembleMember;
use bellwether_api::v1::ensemble::replication::MemberRole;
use bellwether_api::v1::service::InstanceStatus;

use crate::place::{Setup, code, done, free_ports, text, wait_for};
use crate::redis_client::RedisClient;
use crate::story_redis_ensemble::{Writer, complete, installed, kill, primary, programs, spec};

fn address(member: &EnsembleMember) -> String {
    member.peer_url.clone().unwrap().replace("redis://", "")
}

/// What a Redis says of its replication; nothing while it does not answer.
fn replication(member: &EnsembleMember) -> String {
    let connected = RedisClient::connect(address(member)).ok();
    connected.and_then(|mut redis| redis.ask("INFO replication").ok()).unwrap_or_default()
}

/// The agent of a node is killed, and nothing else.
async fn agent_dies(place: &mut Setup, node: &str) {
    place.kill_agent(node);
    wait_for("its node is unreachable", async || done(place, &["node", "get", node]).contains("unreachable"))
        .await;
}

/// The members once this one is none of them.
async fn without(place: &Setup, number: u64, size: usize) -> Vec<EnsembleMember> {
    let mut members = Vec::new();
    wait_for("it is replaced", async || {
        members = complete(place, size).await;
        members.iter().all(|member| member.number != number)
    })
    .await;
    members
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_redis_are_replaced_on_request_without_losing_what_a_replica_had() {
    let mut place = installed().await;
    let [port] = free_ports();
    let mut wanted = spec(3, port, false);
    wanted.failover_after = Some("1h".to_owned());
    place.client().set_ensemble("default", "cache", &wanted).await.unwrap();
    let first = complete(&place, 3).await;
    let addresses: Vec<String> = (1..=5).map(|number| format!("127.0.34.{number}:{port}")).collect();
    let writer = Writer::start(addresses);
    writer.goes_on().await;

    // A replica: first there is one more.
    let replica = first.iter().find(|member| member.role == Some(MemberRole::Replica)).unwrap();
    let number = replica.number.to_string();
    let asked = place.run(&["ensemble", "replace", "cache", &number]);
    let said = text(&asked.stderr);
    let (added, removed) = (said.find("is added on node"), said.find("somebody asked for another one"));
    assert!(code(&asked) == 64 && added.is_some() && added < removed, "{said}");
    done(&place, &["ensemble", "replace", "cache", &number, "--yes", "--reason", "a slow disk"]);
    let second = without(&place, replica.number, 3).await;
    writer.goes_on().await;
    wait_for("its program is stopped", async || programs(port, replica).is_empty()).await;
    assert_eq!(primary(&second).number, primary(&first).number, "the primary is none that leaves");

    // The primary: it hands over first.
    let before = primary(&second);
    done(&place, &["ensemble", "replace", "cache", &before.number.to_string(), "--yes"]);
    let third = without(&place, before.number, 3).await;
    writer.goes_on().await;
    let events = done(&place, &["events", "--limit", "1000"]);
    assert!(events.contains("has handed over to") && !events.contains("takes over from"), "{events}");

    // One whose node is gone, long before it would be by itself. Its node comes back, and the member is none any more.
    let gone = third.iter().find(|member| member.role == Some(MemberRole::Replica)).unwrap();
    place.kill_agent(&gone.node);
    kill(&programs(port, gone));
    wait_for("its node is unreachable", async || {
        done(&place, &["node", "get", &gone.node]).contains("unreachable")
    })
    .await;
    done(&place, &["ensemble", "replace", "cache", &gone.number.to_string(), "--yes"]);
    wait_for("another one has its place", async || {
        let status = place.client().ensemble("default", "cache").await.unwrap().status.unwrap();
        status.working == 3 && status.members.iter().filter(|of| of.number != gone.number).count() == 3
    })
    .await;
    place.resume_agent(&gone.node);
    let last = without(&place, gone.number, 3).await;
    assert!(programs(port, gone).is_empty() || last.iter().any(|of| of.node == gone.node));
    writer.all_is_at(&address(&primary(&last)), "redis: members replaced").await;

    // Who cannot be replaced stays, and why is said.
    done(&place, &["ensemble", "scale", "cache", "5"]);
    let all = complete(&place, 5).await;
    let refused = place.run(&["ensemble", "replace", "cache", &all[0].number.to_string(), "--yes"]);
    let told = text(&refused.stderr);
    assert!(code(&refused) != 0 && told.contains("no other node may have a member in its place"), "{told}");
    let service = place.client().service("default", "cache", None, Duration::ZERO).await.unwrap();
    assert_eq!(service.instances.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_of_a_decommissioned_node_gets_no_more_writes_though_its_redis_lives_and_no_agent_tells_it()
{
    let mut place = installed().await;
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let first = complete(&place, 3).await;
    let gone = first.iter().find(|member| member.role == Some(MemberRole::Replica)).unwrap();
    agent_dies(&mut place, &gone.node).await;
    assert!(replication(gone).contains("master_link_status:up"), "its Redis goes on without its agent");
    done(&place, &["node", "decommission", &gone.node, "--yes"]);
    let left = without(&place, gone.number, 3).await;
    wait_for("it is disconnected, and the others are not", async || {
        let counted = replication(&primary(&left)).contains("connected_slaves:2");
        counted && replication(gone).contains("master_link_status:down")
    })
    .await;
    kill(&programs(port, gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_primary_of_a_decommissioned_node_is_left_though_its_redis_lives_and_no_agent_tells_it() {
    let mut place = installed().await;
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let first = complete(&place, 3).await;
    let gone = primary(&first);
    let writer = Writer::start((1..=5).map(|number| format!("127.0.34.{number}:{port}")).collect());
    writer.goes_on().await;
    agent_dies(&mut place, &gone.node).await;
    let why = ["why", "ensemble/cache"];
    wait_for("its replicas keep it from being followed", async || {
        text(&place.run(&why).stdout).contains("still get data, although contact with the primary is lost")
    })
    .await;
    writer.goes_on().await;

    // While the former one takes writes still.
    done(&place, &["node", "decommission", &gone.node, "--yes"]);
    let left = without(&place, gone.number, 3).await;
    assert!(left.iter().all(|member| member.node != gone.node), "whole on other nodes: {left:?}");
    let next = primary(&left);
    assert!(first.iter().any(|member| member.number == next.number), "one that had the data: {next:?}");
    let events = done(&place, &["events", "--limit", "1000"]);
    let led = format!("takes over from member {}", gone.number);
    assert!(events.contains(&led) && !events.contains("has handed over to"), "{events}");
    wait_for("it has no replica, and the next primary has two", async || {
        let counted = replication(&next).contains("connected_slaves:2");
        let former = replication(&gone);
        counted && former.contains("role:master") && former.contains("connected_slaves:0")
    })
    .await;
    let refuses = |said: String| said.starts_with("-NOREPLICAS");
    wait_for("it takes no more writes", async || {
        let mut redis = RedisClient::connect(address(&gone)).unwrap();
        redis.ask("SET former 1").is_ok_and(refuses)
    })
    .await;
    let served = place.client().service("default", "cache", None, Duration::ZERO).await.unwrap();
    assert!(served.instances.iter().all(|instance| instance.node != gone.node), "{served:?}");
    writer.all_is_at(&address(&next), "the primary's node decommissioned").await;
    kill(&programs(port, &gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_whose_directory_is_removed_while_it_runs_goes_on_says_so_and_is_replaced_by_a_handover() {
    let place = installed().await;
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, true)).await.unwrap();
    let before = primary(&complete(&place, 3).await);
    let pids = programs(port, &before);
    let removed = place.path(&format!("{}/data/removed", before.node));
    std::fs::rename(place.path(&format!("{}/data/ensembles/cache", before.node)), &removed).unwrap();
    std::fs::remove_dir_all(&removed).unwrap();
    let why = async || text(&place.run(&["why", "ensemble/cache"]).stdout);
    wait_for("its data are missed", async || why().await.contains("it runs without its data")).await;
    // Its agent reaches it with new certificates, and clients find it, with a warning.
    let of_it = async || {
        let service = place.client().service("default", "cache", None, Duration::ZERO).await.unwrap();
        service.instances.into_iter().find(|instance| instance.node == before.node)
    };
    wait_for("it is an instance with a warning", async || {
        of_it().await.is_some_and(|instance| instance.status == InstanceStatus::Warning)
    })
    .await;
    let failures = text(&place.run(&["get-failures"]).stdout);
    assert!(failures.contains("runs without its data"), "{failures}");
    assert!(done(&place, &["status"]).contains("cache: 1 member warns"), "{}", done(&place, &["status"]));
    assert_eq!(programs(port, &before), pids, "it goes on");
    done(&place, &["ensemble", "replace", "cache", &before.number.to_string(), "--yes"]);
    without(&place, before.number, 3).await;
    let events = done(&place, &["events", "--limit", "1000"]);
    assert!(events.contains("has handed over to") && !events.contains("takes over from"), "{events}");
    wait_for("its program is stopped", async || programs(port, &before).is_empty()).await;
}
