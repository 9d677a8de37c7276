//! A person replaces members of a real etcd under a client that keeps count of what was acknowledged: one that works leaves once another one
//! votes, and one that lost its disk is removed first, long before that would have happened by itself.

use std::process::Command;

use bellwether_api::v1::ensemble::members::EnsembleMember;
use bellwether_api::v1::ensemble::{EnsembleSize, EnsembleSpec};

use crate::place::{Setup, code, done, free_ports, text, wait_for};
use crate::story_ensembles::{Writer, complete, etcds, installed, nothing_is_lost, spec};

/// The members, once one of them has gone, and there are so many again.
async fn without(place: &Setup, number: u64, size: usize) -> Vec<EnsembleMember> {
    let mut members = Vec::new();
    wait_for(&format!("member {number} is replaced"), async || {
        members = complete(place, size).await;
        members.iter().all(|member| member.number != number)
    })
    .await;
    members
}

/// What the command says that replaces a member.
fn replace(place: &Setup, number: u64, flags: &[&str]) -> (i32, String) {
    let number = number.to_string();
    let args: Vec<&str> = ["ensemble", "replace", "store", &number].iter().chain(flags).copied().collect();
    let said = place.run(&args);
    (code(&said), format!("{}{}", text(&said.stdout), text(&said.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_replaces_a_member_that_works_and_one_that_lost_its_disk() {
    let place = installed().await;
    let ports = free_ports();
    let spec = EnsembleSpec { failover_after: Some("7d".to_owned()), ..spec(3, ports, false) };
    place.client().set_ensemble("default", "store", &spec).await.unwrap();
    let first = complete(&place, 3).await;
    let addresses: Vec<String> = (1..=5).map(|number| format!("127.0.31.{number}:{}", ports[0])).collect();
    let writer = Writer::start(addresses.clone());

    let slow = first.get(1).unwrap().clone();
    let (asked, said) = replace(&place, slow.number, &[]);
    assert_eq!(asked, 64, "{said}");
    let added = said.find("next: member 4 is added on node").expect("the plan is shown");
    let removed = said.find(&format!("then: member {} on node {} is removed", slow.number, slow.node));
    assert!(removed.is_some_and(|removed| added < removed), "{said}");
    assert_eq!(complete(&place, 3).await, first, "nothing was done");
    let (agreed, said) = replace(&place, slow.number, &["--yes", "--reason", "its disk is slow"]);
    assert_eq!(agreed, 0, "{said}");
    let second = without(&place, slow.number, 3).await;
    assert!(second.iter().all(|member| member.node != slow.node));
    let events = done(&place, &["events", "--limit", "1000"]);
    assert!(events.contains("ensemble.replace_requested") && events.contains("its disk is slow"), "{events}");
    assert!(events.contains("somebody asked for another one in its place"), "{events}");

    // Removed while it runs, its data are missed before it ends.
    let lost = second.first().unwrap().clone();
    let removed = place.path(&format!("{}/data/removed", lost.node));
    std::fs::rename(place.path(&format!("{}/data/ensembles/store", lost.node)), &removed).unwrap();
    std::fs::remove_dir_all(&removed).unwrap();
    let why = async || text(&place.run(&["why", "ensemble/store"]).stdout);
    wait_for("its data are missed", async || why().await.contains("it runs without its data")).await;
    for pid in etcds(&place, &lost.node) {
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }
    wait_for("its node says why", async || why().await.contains("its data are gone")).await;
    let (agreed, said) = replace(&place, lost.number, &["--yes", "--reason", "a new disk"]);
    assert_eq!(agreed, 0, "{said}");
    let said = why().await;
    let line = format!("member {} is to be replaced, as was asked", lost.number);
    assert!(said.contains(&line) && said.contains("a new disk"), "{said}");
    without(&place, lost.number, 3).await;
    assert!(!why().await.contains("is to be replaced"));
    nothing_is_lost(writer, &addresses);

    // With a member on every node there is none for another one.
    let five = EnsembleSpec { size: Some(EnsembleSize::Number(5)), ..spec };
    place.client().set_ensemble("default", "store", &five).await.unwrap();
    let all = complete(&place, 5).await;
    let (refused, said) = replace(&place, all.first().unwrap().number, &["--yes"]);
    assert!(refused != 0 && said.contains("no other node may have a member in its place"), "{said}");
    assert_eq!(complete(&place, 5).await, all);
    let (unknown, said) = replace(&place, 1_000, &["--yes"]);
    assert!(unknown != 0 && said.contains("cannot find member 1000 of ensemble store"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_not_started_with_the_data_of_another_one() {
    let mut place = installed().await;
    let ports = free_ports();
    let spec = EnsembleSpec { failover_after: Some("7d".to_owned()), ..spec(3, ports, false) };
    place.client().set_ensemble("default", "store", &spec).await.unwrap();
    let members = complete(&place, 3).await;
    let [one, two, _] = members.as_slice() else { panic!("{members:?}") };
    let (one, two) = (one.node.clone(), two.node.clone());
    let data = |node: &str| place.path(&format!("{node}/data/ensembles/store/data"));
    let (own, other, kept) = (data(&one), data(&two), place.path("kept"));
    place.kill_agent(&one);
    for pid in etcds(&place, &one) {
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }
    wait_for("its etcd is gone", async || etcds(&place, &one).is_empty()).await;
    std::fs::rename(&own, &kept).unwrap();
    assert!(Command::new("cp").args(["-a", &other, &own]).status().unwrap().success());
    place.resume_agent(&one);
    let why = async || text(&place.run(&["why", "ensemble/store"]).stdout);
    wait_for("its node says why", async || why().await.contains("waits for its own data: those in")).await;
    assert!(etcds(&place, &one).is_empty(), "nothing answers as the other one");
    // Put back, it goes on.
    std::fs::remove_dir_all(&own).unwrap();
    std::fs::rename(&kept, &own).unwrap();
    assert_eq!(complete(&place, 3).await.len(), 3);
    wait_for("it works again", async || !why().await.contains("its own data")).await;
}
