//! Clocks of nodes that are hours apart say nothing of their members: an etcd with certificates is founded, heals and grows over them, and nobody
//! is replaced.

use std::process::Command;

use bellwether_api::v1::ensemble::members::EnsembleMember;

use crate::place::{Setup, free_ports, wait_for};
use crate::story_clocks::by_clock;
use crate::story_ensembles::{complete, etcds, installed, node, spec};

fn numbers(members: &[EnsembleMember]) -> Vec<u64> {
    members.iter().map(|member| member.number).collect()
}

fn set_clock(place: &mut Setup, name: &str, offset: &str) {
    place.kill_agent(name);
    place.resume_agent_on(&by_clock(offset), name);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_on_nodes_whose_clocks_are_hours_apart_are_founded_healed_and_left_alone() {
    let mut place = installed().await;
    set_clock(&mut place, &node(1), "-2h");
    set_clock(&mut place, &node(2), "+2h");
    place.client().set_ensemble("default", "store", &spec(5, free_ports(), true)).await.unwrap();
    let first = complete(&place, 5).await;
    assert_eq!(numbers(&first), [1, 2, 3, 4, 5]);
    // What an agent counts with its clock begins anew with it.
    set_clock(&mut place, &node(3), "-20h");
    for number in 1..=3 {
        let before = etcds(&place, &node(number));
        assert_eq!(before.len(), 1, "{before:?}");
        assert!(Command::new("kill").args(["-9", &before[0]]).status().unwrap().success());
        wait_for("it is started again", async || {
            let now = etcds(&place, &node(number));
            now.len() == 1 && now != before
        })
        .await;
        wait_for("it is said to work", async || complete(&place, 5).await.len() == 5).await;
    }
    assert_eq!(numbers(&complete(&place, 5).await), numbers(&first), "nobody was replaced");
}
