//! Needs: an entity's dynamic part waits until the services it needs are there, and reports what is missing.

use bellwether_api::v1::service::definition::ServiceDefinition;

use crate::bench::Bench;
use crate::services::{listening_as, register, until, update_check};

/// A service with a TTL check that does not expire during the test.
fn patient(name: &str) -> ServiceDefinition {
    let mut definition = listening_as(name);
    for check in &mut definition.checks {
        check.ttl = Some("10m".to_owned());
    }
    definition
}

/// An entity whose parts write to the trace, with these needs.
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
async fn the_dynamic_part_waits_for_its_needs_and_reports_how_each_is_unmet() {
    let bench = Bench::new().await;
    let agent = bench.agent(&needing(&bench, "\"mysql\"")).await;
    until("the socket is there", async || register(&bench, &listening_as("mysqld")).await.is_ok()).await;
    bench.roll("v1").await;
    waits(&bench, "web: needs 1 functional of mysql: no node ever registered it; did you mean mysqld?").await;
    assert_eq!(bench.trace(), ["static v1 from []"], "the static part depends on nothing");
    let target = bench.target().await.unwrap();
    assert_eq!(target.phase, "blocked", "a wait is no failure: {target:?}");

    register(&bench, &patient("mysql")).await.unwrap();
    waits(&bench, "0 of 1 registered are functional; mysql on web-1 is failing: check alive: no update yet")
        .await;
    update_check(&bench, "mysql", "passing", "").await.unwrap();
    bench.runs("v1").await;
    let trace = bench.trace();
    assert_eq!(trace.get(1).map(String::as_str), Some("dynamic v1 from []"), "{trace:?}");

    // A need that was met and is lost again undoes nothing, and holds up the next step.
    update_check(&bench, "mysql", "failing", "").await.unwrap();
    until("mysql fails", async || {
        crate::services::level(&bench, "mysql").await.as_deref() == Some("failing")
    })
    .await;
    assert_eq!(bench.trace(), trace);
    bench.roll("v2").await;
    waits(&bench, "0 of 1 registered are functional").await;
    update_check(&bench, "mysql", "passing", "").await.unwrap();
    bench.runs("v2").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unmet_need_fails_the_step_after_its_timeout_or_is_waited_for_further() {
    let bench = Bench::new().await;
    let agent = bench.agent(&needing(&bench, "{ service = \"mysql\", timeout = \"300ms\" }")).await;
    bench.roll("v1").await;
    let evidence = bench.failure().await;
    let said = "dynamic: waited 300ms for 1 functional of mysql: no node ever registered it";
    assert_eq!(evidence.summary, said);
    agent.stop().await;

    let bench = Bench::new().await;
    let need = "{ service = \"mysql\", count = 2, timeout = \"100ms\", on_timeout = \"wait\" }";
    let agent = bench.agent(&needing(&bench, need)).await;
    bench.roll("v1").await;
    waits(&bench, "needs 2 functional of mysql: no node ever registered it (for longer than 100ms)").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_addressable_need_is_met_by_a_failing_instance() {
    let bench = Bench::new().await;
    let agent = bench.agent(&needing(&bench, "{ service = \"lb\", level = \"addressable\" }")).await;
    bench.roll("v1").await;
    waits(&bench, "needs 1 addressable of lb").await;
    register(&bench, &listening_as("lb")).await.unwrap();
    bench.runs("v1").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_dynamic_commands_run_again_when_a_followed_service_changes() {
    let bench = Bench::new().await;
    let config = crate::bench::tracing_entity(&bench, "follows = [\"app\"]");
    let agent = bench.agent(&config).await;
    until("the socket is there", async || register(&bench, &patient("app")).await.is_ok()).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    let first = ["static v1 from []", "dynamic v1 from []", "validate v1 from []"];
    assert_eq!(bench.trace(), first);
    update_check(&bench, "app", "passing", "").await.unwrap();
    let again = |trace: &[String]| trace.iter().filter(|line| line.starts_with("dynamic")).count();
    until("it ran again, because app passes", async || again(&bench.trace()) == 2).await;
    // App fails, and the commands run for that too.
    update_check(&bench, "app", "failing", "").await.unwrap();
    until("it ran again, because app does not", async || again(&bench.trace()) == 3).await;
    let trace = bench.trace();
    assert_eq!(trace.len(), 5, "only the dynamic part: {trace:?}");
    agent.stop().await;
    let agent = bench.agent_again(&config);
    bench.says("the agent is back", |status| status.connected_since_ms.is_some()).await;
    assert_eq!(bench.trace(), trace, "a restart is no change");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_with_needs_is_addressable_and_fails_until_they_are_met() {
    let bench = Bench::new().await;
    // Nothing else here needs the catalogue, and neither service belongs to an entity.
    let web = "[[service]]\nname = \"web\"\nneeds = [\"2 of mysql\"]\n";
    let agent = bench.agent(web).await;
    let says = async |service: &str, text: &str| {
        until(text, async || {
            let view = bench.client.service(crate::bench::NS, service, None, std::time::Duration::ZERO).await;
            view.is_ok_and(|view| {
                view.instances.iter().any(|one| format!("{} {}", one.status, one.reason) == text)
            })
        })
        .await;
    };
    says("web", "failing needs 2 functional of mysql: no node ever registered it").await;
    let why = bench.client.why(crate::bench::NS, "node/web-1").await.unwrap().lines.join("\n");
    assert!(why.contains("web of service web is not healthy: needs 2 functional of mysql"), "{why}");

    // This one only needs an address.
    let addressable = ServiceDefinition { needs: vec!["1 addressable of web".to_owned()], ..patient("api") };
    register(&bench, &addressable).await.unwrap();
    update_check(&bench, "api", "passing", "").await.unwrap();
    says("api", "passing ").await;

    for id in ["one", "two"] {
        register(&bench, &ServiceDefinition { id: Some(id.to_owned()), ..patient("mysql") }).await.unwrap();
        update_check(&bench, id, "passing", "").await.unwrap();
    }
    says("web", "passing ").await;
    // A need that was met and is lost again undoes nothing.
    update_check(&bench, "one", "failing", "").await.unwrap();
    until("one fails", async || crate::services::level(&bench, "mysql").await.as_deref() == Some("failing"))
        .await;
    says("web", "passing ").await;

    // Neither does a restart, after which the last update still counts.
    agent.stop().await;
    let agent = bench.agent_again(&format!("{web}tags = [\"again\"]\n"));
    says("mysql", "failing check alive").await;
    // The tag is the new agent's, so this registration was made by it.
    until("the new agent reports web", async || {
        let view = bench.client.service(crate::bench::NS, "web", None, std::time::Duration::ZERO).await;
        let instances = view.map_or_else(|_| Vec::new(), |view| view.instances);
        let again = instances.iter().find(|one| one.tags.iter().any(|tag| tag == "again"));
        assert!(again.is_none_or(|one| one.status == "passing"), "{again:?}");
        again.is_some()
    })
    .await;
    // A changed need was never met.
    agent.stop().await;
    let agent = bench.agent_again(&web.replace("2 of mysql", "3 of mysql"));
    says("web", "failing needs 3 functional of mysql: 1 of 2 registered are functional; one on web-1 is failing: check alive").await;
    agent.stop().await;
}
