//! Several servers on one etcd, each on a host of its own: whatever happens to one of them, another goes on, and nothing is
//! lost, doubled or told twice.

use std::time::Duration;

use crate::bed::{Bed, options};
use crate::laws::{Watch, history};

/// What etcd keeps under a key of the installation.
pub(crate) fn kept(bed: &Bed, key: &str) -> String {
    tokio::task::block_in_place(|| bed.inner.etcdctl(1, &["get", &format!("/bellwether/bw/{key}")])).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_killed_and_stopped_in_the_middle_of_a_rollout_are_followed_by_others() {
    let mut bed = Bed::start(options()).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    bed.roll("v1").await;
    bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
    let killed = bed.leader_but(&[]).await;
    bed.obey(&format!("kill server-{killed}"));
    let next = bed.leader_but(&[killed]).await;
    bed.ended("v1").await;
    bed.obey(&format!("start server-{killed}"));

    // A clean stop leaves nothing behind that others would have to wait for.
    bed.roll("v2").await;
    bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
    bed.obey(&format!("stop server-{next}"));
    let stopped = format!("server-{next}");
    assert!(!kept(&bed, "leader").contains(&stopped), "its leadership is released");
    assert_eq!(kept(&bed, &format!("server/{stopped}")), "", "its membership is released");
    bed.ended("v2").await;
    bed.obey(&format!("start {stopped}"));

    // All at once.
    bed.roll("v3").await;
    bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
    let all: Vec<String> = (1..=3).map(|server| format!("server-{server}")).collect();
    all.iter().for_each(|server| bed.obey(&format!("kill {server}")));
    tokio::task::block_in_place(|| bed.inner.start_parts(&all)).unwrap();
    bed.ended("v3").await;
    watch.holds(&bed, 2, &["v1", "v2", "v3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_loses_etcd_or_stands_still_is_replaced_and_changes_nothing_afterwards() {
    let mut bed = Bed::start(options()).await;
    bed.make_entity(2);
    let watch = Watch::begin(&bed);
    let lost = bed.leader_but(&[]).await;
    bed.roll("v1").await;
    bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
    (1..=3).for_each(|member| bed.obey(&format!("cut server-{lost} etcd-{member}")));
    bed.leader_but(&[lost]).await;
    bed.ended("v1").await;
    let mut plane = None;
    bed.wait_for("its agents are with others", async || {
        plane = bed.ask(async |client| client.control_plane().await).await;
        let sessions = plane.iter().flat_map(|plane| plane.sessions.iter());
        let held: u64 =
            sessions.filter(|(name, _)| **name != format!("server-{lost}")).map(|(_, count)| count).sum();
        held == bed.inner.options.agents as u64
    })
    .await;
    bed.obey("heal");
    bed.wait_for("it is back among the servers", async || {
        bed.client(lost).control_plane().await.is_ok_and(|plane| plane.servers.len() == 3)
    })
    .await;

    let paused = bed.leader_but(&[]).await;
    bed.roll("v2").await;
    bed.until("some are in flight", |view| view.counts.in_flight > 0).await;
    bed.obey(&format!("pause server-{paused}"));
    bed.leader_but(&[paused]).await;
    bed.ended("v2").await;
    // What it had begun to say before it stood still is refused now.
    bed.obey(&format!("resume server-{paused}"));
    bed.wait_for("it is back among the servers", async || {
        let plane = bed.client(paused).control_plane().await;
        plane.is_ok_and(|plane| plane.servers.len() == 3 && plane.leader.is_some())
    })
    .await;
    bed.roll("v3").await;
    bed.ended("v3").await;
    watch.holds(&bed, 2, &["v1", "v2", "v3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_outlive_the_leader_of_etcd_and_a_server_whose_clock_is_an_hour_ahead_leads_well() {
    let mut bed = Bed::start(bellwether_testbed::Options { agents: 3, ..options() }).await;
    bed.make_entity(1);
    let watch = Watch::begin(&bed);
    bed.roll("v1").await;
    let member = etcd_leader(&bed);
    bed.obey(&format!("kill etcd-{member}"));
    let before = watch.written();
    bed.wait_for("writes go on", async || watch.written() > before + 10).await;
    bed.obey(&format!("start etcd-{member}"));
    bed.ended("v1").await;

    // Another hour, and it leads: the others are stopped until it does.
    bed.obey("clock server-1 +1h");
    let others = [2, 3].map(|server| format!("server-{server}"));
    others.iter().for_each(|server| bed.obey(&format!("stop {server}")));
    bed.leader_but(&[2, 3]).await;
    tokio::task::block_in_place(|| bed.inner.start_parts(&others)).unwrap();
    bed.roll("v2").await;
    bed.ended("v2").await;
    assert_eq!(bed.up().await, 3);
    // And back to those who know the time.
    bed.obey("stop server-1");
    bed.leader_but(&[1]).await;
    bed.obey("start server-1");
    bed.roll("v3").await;
    bed.ended("v3").await;
    watch.holds(&bed, 1, &["v1", "v2", "v3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_know_one_server_find_the_other_when_it_dies_and_spread_again_when_it_is_back() {
    let some = bellwether_testbed::Options { etcd: 1, servers: 2, agents_know: Some(1), ..options() };
    let mut bed = Bed::start(some).await;
    bed.make_entity(6);
    let agents = bed.inner.options.agents;
    let knows_it = |agent| {
        let file = bed.inner.home(&format!("agent-{agent}")).join("data/servers.json");
        std::fs::read_to_string(file).is_ok_and(|kept| kept.contains("server-2"))
    };
    bed.wait_for("every agent was told of the other server", async || (1..=agents).all(knows_it)).await;
    bed.obey("kill server-1");
    // One that starts while the server that it was configured with is gone finds the other too.
    bed.obey("kill agent-1");
    bed.obey("start agent-1");
    bed.wait_for("all call the other", async || bed.held(2).await == agents as u64).await;
    bed.roll("v1").await;
    bed.ended("v1").await;

    bed.obey("start server-1");
    // An agent comes back after 60 to 100 seconds without a failure, and begins to count anew if it is not answered then.
    let calm = Duration::from_secs(100);
    bed.wait_within(calm * 3, "it holds some again", async || bed.held(1).await > 0).await;
    bed.roll("v2").await;
    bed.ended("v2").await;
    // By then those that are to move have moved.
    bed.wait_within(calm * 3, "both hold some", async || {
        let (one, other) = (bed.held(1).await, bed.held(2).await);
        one > 1 && other > 1 && one + other == agents as u64
    })
    .await;
    let moved: Vec<String> = history(&bed).await.into_iter().map(|event| event.kind).collect();
    let lost = moved.iter().filter(|kind| matches!(kind.as_str(), "node.suspect" | "node.unreachable"));
    assert_eq!(lost.count(), 0, "nobody was found quiet for it: {moved:?}");
}

/// The member that leads, counted from 1.
pub(crate) fn etcd_leader(bed: &Bed) -> usize {
    let leads = |member: &usize| {
        let said = bed.inner.etcdctl(*member, &["endpoint", "status", "-w", "fields"]).unwrap_or_default();
        let value = |name: &str| {
            let line = said.lines().find(|line| line.starts_with(name))?;
            line.split(':').next_back().map(|value| value.trim().to_owned())
        };
        value("\"MemberID\"").is_some() && value("\"MemberID\"") == value("\"Leader\"")
    };
    tokio::task::block_in_place(|| (1..=bed.inner.options.etcd).find(leads)).unwrap()
}
