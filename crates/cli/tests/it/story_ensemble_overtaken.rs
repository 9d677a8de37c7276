//! A backup of the control plane that is older than the members of a real Redis: nothing is done to those that run, no empty one takes the place of
//! one with data, and once the newer records are back all goes on as if nothing had been.

use std::collections::BTreeSet;

use bellwether_api::v1::ensemble::members::EnsembleMember;

use crate::place::{Setup, done, free_ports, text, wait_for};
use crate::story_redis_ensemble::{
    Writer, are_instances_of_a_service, complete, installed, primary, programs, spec,
};

fn numbers(members: &[EnsembleMember]) -> BTreeSet<u64> {
    members.iter().map(|member| member.number).collect()
}

/// Others have the places of all members.
async fn all_replaced(place: &Setup, before: &[EnsembleMember]) -> Vec<EnsembleMember> {
    let mut members = before.to_vec();
    for member in before {
        let number = member.number.to_string();
        done(place, &["ensemble", "replace", "cache", &number, "--yes"]);
        wait_for(&format!("member {number} is replaced"), async || {
            members = complete(place, 3).await;
            !numbers(&members).contains(&member.number)
        })
        .await;
    }
    members
}

fn copied(from: &str, to: &str) {
    assert!(std::process::Command::new("cp").args(["-a", from, to]).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_older_than_the_members_of_a_redis_change_nothing_and_newer_ones_mend_all() {
    let mut place = installed().await;
    let [port] = free_ports();
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let before = complete(&place, 3).await;
    let addresses: Vec<String> = (1..=5).map(|number| format!("127.0.34.{number}:{port}")).collect();
    let writer = Writer::start(addresses);
    let (config, file) = (place.path("server.toml"), place.path("all.backup"));
    let (store, newer) = (place.path("server/store"), place.path("newer"));
    place.kill_server();
    done(&place, &["server", "backup", "--config", &config, &file]);
    place.start_server().await;
    let members = all_replaced(&place, &before).await;
    let running = || members.iter().map(|member| programs(port, member)).collect::<Vec<_>>();
    let pids = running();
    assert!(pids.iter().all(|pids| pids.len() == 1), "{pids:?}");

    place.kill_server();
    copied(&store, &newer);
    std::fs::remove_dir_all(&store).unwrap();
    let restored = place.run(&["server", "restore", "--config", &config, &file]);
    assert!(restored.status.success(), "{}", text(&restored.stderr));
    place.start_server().await;
    let why = || done(&place, &["why", "ensemble/cache"]);
    wait_for("it is known that its members are newer", async || {
        why().contains("what is recorded of it is older than its members")
    })
    .await;
    writer.goes_on().await;
    let listed = place.client().ensemble("default", "cache").await.unwrap().status.unwrap().members;
    assert_eq!(numbers(&listed), numbers(&before), "no other one is chosen");
    assert_eq!(running(), pids, "those that serve are left alone");

    place.kill_server();
    std::fs::remove_dir_all(&store).unwrap();
    copied(&newer, &store);
    done(&place, &["server", "restore", "--in-place", "--config", &config]);
    place.start_server().await;
    assert_eq!(numbers(&complete(&place, 3).await), numbers(&members));
    are_instances_of_a_service(&place, &complete(&place, 3).await).await;
    assert_eq!(running(), pids, "they were never stopped");
    let address = primary(&members).peer_url.unwrap().replace("redis://", "");
    writer.all_is_at(&address, "after a restore of older records").await;
}
