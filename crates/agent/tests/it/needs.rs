//! Needs: an entity's dynamic part waits until the services it needs are there, and says what is missing.

use bellwether_api::v1::service::definition::Definition;

use crate::bench::Bench;
use crate::services::{listening_as, pulse, register, until};

/// An entity whose parts leave traces, with these needs.
fn needing(bench: &Bench, needs: &str) -> String {
    crate::bench::tracing_entity(bench, &format!("needs = [{needs}]"))
}

async fn waits(bench: &Bench, text: &str) {
    bench
        .sees(text, |node| {
            node.statuses
                .get("configure")
                .is_some_and(|status| status.state == "pending" && status.reason.contains(text))
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dynamic_part_waits_for_what_it_needs_and_says_which_kind_of_not_there_it_is() {
    let bench = Bench::new().await;
    let agent = bench.agent(&needing(&bench, "\"mysql\"")).await;
    until("the socket is there", async || register(&bench, &listening_as("mysqld")).await.is_ok()).await;
    bench.roll("v1").await;
    waits(&bench, "web: needs 1 functional of mysql: nobody ever offered it; did you mean mysqld?").await;
    assert_eq!(bench.trace(), ["static v1 from []"], "the static part depends on nothing");
    let target = bench.target().await.unwrap();
    assert_eq!(target.phase, "blocked", "a wait is no failure: {target:?}");

    register(&bench, &Definition { ..listening_as("mysql") }).await.unwrap();
    waits(&bench, "0 of 1 registered serve; mysql on web-1: check alive: nothing was said yet").await;
    pulse(&bench, "mysql", "passing", "").await.unwrap();
    bench.runs("v1").await;
    let trace = bench.trace();
    assert_eq!(trace.get(1).map(String::as_str), Some("dynamic v1 from []"), "{trace:?}");

    // A need that was met and is lost again undoes nothing, and gates the next step.
    until("mysql falls silent", async || {
        crate::services::level(&bench, "mysql").await.as_deref() == Some("failing")
    })
    .await;
    assert_eq!(bench.trace(), trace);
    bench.roll("v2").await;
    waits(&bench, "0 of 1 registered serve").await;
    pulse(&bench, "mysql", "passing", "").await.unwrap();
    bench.runs("v2").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_need_that_is_not_met_in_time_fails_the_step_or_is_waited_for_on() {
    let bench = Bench::new().await;
    let agent = bench.agent(&needing(&bench, "{ service = \"mysql\", timeout = \"300ms\" }")).await;
    bench.roll("v1").await;
    let evidence = bench.failure().await;
    let said = "dynamic: waited 300ms for 1 functional of mysql: nobody ever offered it";
    assert_eq!(evidence.summary, said);
    agent.stop().await;

    let bench = Bench::new().await;
    let need = "{ service = \"mysql\", count = 2, timeout = \"100ms\", on_timeout = \"wait\" }";
    let agent = bench.agent(&needing(&bench, need)).await;
    bench.roll("v1").await;
    waits(&bench, "needs 2 functional of mysql: nobody ever offered it (for longer than 100ms)").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_has_to_be_addressable_need_not_serve() {
    let bench = Bench::new().await;
    let agent = bench.agent(&needing(&bench, "{ service = \"lb\", level = \"addressable\" }")).await;
    bench.roll("v1").await;
    waits(&bench, "needs 1 addressable of lb").await;
    register(&bench, &listening_as("lb")).await.unwrap();
    bench.runs("v1").await;
    agent.stop().await;
}
