//! Members whose nodes are cut off: of three, one is replaced after its time and no other, and its node gives way once it is back; with two of them nothing is
//! changed, however long, and both are back with their nodes.

use std::time::Duration;

use bellwether_api::v1::ensemble::members::MemberPhase;
use bellwether_testbed::Options;
use tokio::time::Instant;

use super::member::{complete, programs, spec};
use super::small;
use crate::bed::Bed;

const AGENTS: usize = 5;

/// How long a member may be silent.
const FAILOVER: Duration = Duration::from_secs(30);

/// The numbers of the members that vote, in order.
async fn numbers(bed: &Bed) -> Vec<u64> {
    let view = bed.client(1).ensemble("default", "store").await.unwrap();
    let members = view.status.unwrap().members;
    let voting = members.iter().filter(|member| member.state == MemberPhase::Voting);
    voting.map(|member| member.number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_one_that_is_cut_off_is_replaced_and_two_that_are_cut_off_are_waited_for() {
    let sections = "[ensembles]\n".to_owned();
    let mut bed = Bed::start(Options { sections, ..small(0, 1, AGENTS) }).await;
    bed.client(1).set_ensemble("default", "store", &spec(3, Some("30s"))).await.unwrap();
    let first = complete(&bed, 3, "it is created").await;
    assert_eq!(numbers(&bed).await, [1, 2, 3]);

    let silent = first.last().unwrap();
    bed.obey(&format!("cut {}", silent.node));
    bed.wait_for("it is replaced, and no other one", async || numbers(&bed).await == [1, 2, 4]).await;
    assert_eq!(programs(&bed, &silent.node), 1, "nobody has told its node");
    bed.obey(&format!("heal {}", silent.node));
    bed.wait_for("its node gives way", async || programs(&bed, &silent.node) == 0).await;
    let three = complete(&bed, 3, "its node is back").await;

    let cut: Vec<String> = three.iter().skip(1).map(|member| member.node.clone()).collect();
    cut.iter().for_each(|node| bed.obey(&format!("cut {node}")));
    bed.wait_for("it is known", async || {
        let view = bed.client(1).ensemble("default", "store").await.unwrap();
        view.status.unwrap().waiting.is_some_and(|why| why.contains("quorum is lost"))
    })
    .await;
    let since = Instant::now();
    bed.wait_for("much longer than one may be silent", async || {
        assert_eq!(numbers(&bed).await, [1, 2, 4]);
        since.elapsed() > FAILOVER * 3
    })
    .await;
    cut.iter().for_each(|node| bed.obey(&format!("heal {node}")));
    complete(&bed, 3, "both are back").await;
    assert_eq!(numbers(&bed).await, [1, 2, 4]);
}
