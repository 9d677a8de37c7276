//! Applying: the parts in order, their environment, and every way of ending.

use std::fs;

use bellwether_agent::status::AgentStatus;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::node::NodeView;
use bellwether_api::v1::rollout::{NewRollout, RolloutOperation};

use crate::bench::{Bench, NODE, NS, tracing_entity};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_go_through_their_parts_in_order_with_the_previous_version_as_a_fact() {
    let bench = Bench::new().await;
    let agent = bench.agent(&tracing_entity(&bench, "")).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.roll("v2").await;
    let node = bench.runs("v2").await;
    let wanted = [
        "static v1 from []",
        "dynamic v1 from []",
        "validate v1 from []",
        "static v2 from [v1]",
        "dynamic v2 from [v1]",
        "validate v2 from [v1]",
    ];
    assert_eq!(bench.trace(), wanted);
    for category in ["configure", "validate"] {
        assert_eq!(node.statuses[category].state, "success", "{category}");
    }
    agent.stop().await;
    // The next agent has nothing to do.
    let agent = bench.agent_again(&tracing_entity(&bench, ""));
    bench.says("contact", |status| status.alive && status.connected_since_ms.is_some()).await;
    agent.stop().await;
    assert_eq!(bench.trace().len(), wanted.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_part_leaves_evidence_and_the_running_version_stays() {
    let bench = Bench::new().await;
    let script = "echo looking; if [ $BELLWETHER_VERSION = v2 ]; then echo no such package >&2; exit 3; fi";
    let agent = bench.agent(&format!("[entity.web]\nstatic = [\"/bin/sh\", \"-c\", {script:?}]\n")).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.roll("v2").await;
    let evidence = bench.failure().await;
    assert_eq!(evidence.exit_code, Some(3));
    assert_eq!(evidence.summary, "static: exit code 3");
    assert_eq!(evidence.tail, "looking\nno such package\n");
    let node = bench.sees("a failed status", |node| node.statuses["configure"].state == "failed").await;
    assert_eq!(node.running["web"], "v1");
    assert_eq!(node.statuses["configure"].reason, "web: static: exit code 3");
    let log = fs::read_to_string(bench.data_dir().join("logs/web.log")).unwrap();
    assert!(log.contains("no such package\n--- exit code 3"), "{log}");
    // A third version is not delayed by the second one's backoff.
    bench.roll("v3").await;
    bench.runs("v3").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn not_yet_is_retried_and_does_not_count_as_a_failure() {
    let bench = Bench::new().await;
    let ready = bench.path("ready");
    let script = format!("test -e {} || {{ echo mysql is missing; exit 75; }}", ready.display());
    let agent = bench.agent(&format!("[entity.web]\ndynamic = [\"/bin/sh\", \"-c\", {script:?}]\n")).await;
    bench.roll("v1").await;
    let pending = |node: &bellwether_api::v1::node::NodeView| {
        node.statuses.get("configure").is_some_and(|status| status.state == "pending")
    };
    let node = bench.sees("a pending status", pending).await;
    assert_eq!(node.statuses["configure"].reason, "web: dynamic: exit code 75, not yet");
    assert_eq!(bench.target().await.unwrap().phase, "blocked");
    fs::write(&ready, "").unwrap();
    bench.runs("v1").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entity_without_a_recipe_is_reported_with_the_next_step() {
    let bench = Bench::new().await;
    let agent = bench.agent("").await;
    bench.roll("v1").await;
    let evidence = bench.failure().await;
    let wanted = "this node has no recipe for entity web; add [entity.web] to agent.toml";
    assert_eq!(evidence.summary, wanted);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entity_that_left_the_order_no_longer_fails_its_node() {
    let bench = Bench::new().await;
    let agent = bench.agent("").await;
    bench.roll("v1").await;
    bench.failure().await;
    bench.sees("a failed status", |node| node.statuses.contains_key("configure")).await;
    bench.client.act_on_rollout(NS, "web", "abort", &RolloutOperation::default()).await.unwrap();
    // The abort takes effect a moment later.
    bench.until("a deletion", async || bench.client.delete_entity(NS, "web").await.ok()).await;
    bench.says("no such entity", |status| status.entities.is_empty()).await;
    let node = bench.sees("no status of it", |node| !node.statuses.contains_key("configure")).await;
    assert!(!node.statuses.contains_key("validate"), "{:?}", node.statuses);
    assert!(bench.client.failures(NS).await.unwrap().failed.is_empty());
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_entity_with_a_recipe_leaves_the_statuses_of_the_others() {
    let bench = Bench::new().await;
    let agent = bench.agent("[entity.web]\nstatic = [\"false\"]\n[entity.db]\nstatic = [\"true\"]\n").await;
    let db = EntitySpec { selector: "all".into(), ..EntitySpec::default() };
    bench.client.set_entity(NS, "db", &db).await.unwrap();
    let new = NewRollout { version: Some("d1".into()), ..NewRollout::default() };
    bench.client.start_rollout(NS, "db", &new).await.unwrap();
    bench.roll("v1").await;
    bench.failure().await;
    let failed = |node: &NodeView| {
        node.running.contains_key("db")
            && node.statuses.get("configure").is_some_and(|status| status.state == "failed")
    };
    bench.sees("a failed status", failed).await;
    bench
        .says("the failure", |status| status.entities.get("web").is_some_and(|web| web.problem.is_some()))
        .await;
    bench.client.act_on_rollout(NS, "web", "abort", &RolloutOperation::default()).await.unwrap();
    bench.until("a deletion", async || bench.client.delete_entity(NS, "web").await.ok()).await;
    bench.sees("success", |node| node.statuses["configure"].state == "success").await;
    let gone = |status: &AgentStatus| status.entities.get("web").is_none_or(|web| web.problem.is_none());
    bench.says("no failure of it", gone).await;
    assert!(bench.client.failures(NS).await.unwrap().failed.is_empty());
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_left_the_selector_drops_the_assignment_and_keeps_what_it_runs() {
    let bench = Bench::new().await;
    let process = "[entity.web.process]\nargv = [\"/bin/sleep\", \"600\"]\n";
    let agent = bench.agent(&format!("[entity.web]\n{process}")).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    let select = |selector: &str| EntitySpec { selector: selector.into(), ..EntitySpec::default() };
    bench.client.set_entity(NS, "web", &select("role=other")).await.unwrap();
    let status = bench
        .says("no assignment", |status| status.entities.get("web").is_some_and(|web| web.assigned.is_none()))
        .await;
    assert_eq!(status.entities["web"].line, "runs v1, no version assigned");
    let node = bench.sees("no status", |node| !node.statuses.contains_key("configure")).await;
    assert!(!node.statuses.contains_key("validate"), "{:?}", node.statuses);
    let ledger = bench.data_dir().join("ledger/entities/web.json");
    let entry = fs::read_to_string(&ledger).unwrap();
    assert!(entry.contains("\"pid\""), "{entry}");
    // When it is selected again, the running version needs no other apply.
    bench.client.set_entity(NS, "web", &select("all")).await.unwrap();
    bench
        .says("an assignment", |status| {
            status.entities.get("web").is_some_and(|web| web.assigned.as_deref() == Some("v1"))
        })
        .await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_node_starts_nothing_and_continues_when_resumed() {
    let bench = Bench::new().await;
    let agent = bench.agent(&tracing_entity(&bench, "")).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.client.pause_node(super::bench::NS, super::bench::NODE, "looking at it").await.unwrap();
    bench.says("the pause", |status| status.paused.is_some()).await;
    bench.roll("v2").await;
    // Whether or not the control plane assigns it, nothing runs here; a change of labels shows that reports continue.
    bench.sees("the node up", |node| node.presence.state == "up").await;
    assert_eq!(bench.trace().len(), 3);
    bench.client.resume_node(super::bench::NS, super::bench::NODE).await.unwrap();
    bench.runs("v2").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_step_begins_while_the_ledger_cannot_be_written() {
    let bench = Bench::new().await;
    let agent = bench.agent(&tracing_entity(&bench, "")).await;
    bench.sees("a report", |node| node.agent_version.is_some()).await;
    let (there, away) = (bench.data_dir().join("ledger/entities"), bench.data_dir().join("ledger/away"));
    fs::rename(&there, &away).unwrap();
    bench.roll("v1").await;
    let held = |node: &bellwether_api::v1::node::NodeView| {
        node.statuses.get("configure").is_some_and(|status| status.reason.contains("cannot write"))
    };
    let node = bench.sees("the reason", held).await;
    assert_eq!(node.statuses["configure"].state, "pending");
    assert!(bench.trace().is_empty());
    fs::rename(&away, &there).unwrap();
    bench.runs("v1").await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_part_is_killed_at_its_deadline_and_its_output_is_bounded() {
    let bench = Bench::new().await;
    let script = "yes flood | head -c 3000000; echo; echo now it hangs; sleep 600";
    let recipe = format!("[entity.web]\nstatic = [\"/bin/sh\", \"-c\", {script:?}]\ntimeout = \"2s\"\n");
    let agent = bench.agent(&recipe).await;
    bench.roll("v1").await;
    let evidence = bench.failure().await;
    assert_eq!(evidence.summary, "static: killed after the timeout of the part, 2s");
    assert!(evidence.tail.len() <= 2_048 && evidence.tail.ends_with("now it hangs\n"), "{}", evidence.tail);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_a_version_that_is_not_wanted_any_more_is_stopped_with_its_children() {
    let bench = Bench::new().await;
    let place = bench.path("started");
    let script = format!(
        "if test \"$BELLWETHER_VERSION\" = v2; then (trap '' TERM; sleep 600) & echo $! > {0}.new; mv {0}.new {0}; wait; fi",
        place.display()
    );
    let recipe = format!("[entity.web]\nstatic = [\"/bin/sh\", \"-c\", {script:?}]\ntimeout = \"10m\"\n");
    let agent = bench.agent(&recipe).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    bench.roll("v2").await;
    let child = bench.until("the part has started", async || fs::read_to_string(&place).ok()).await;
    bench.roll("v3").await;
    bench.runs("v3").await;
    let stat = format!("/proc/{}/stat", child.trim());
    bench
        .until("what it left running is gone", async || {
            let runs = fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
            (!runs).then_some(())
        })
        .await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_of_a_target_names_the_command_that_runs_its_part_and_its_limit() {
    let bench = Bench::new().await;
    let agent = bench.agent("[entity.web]\nstatic = [\"/bin/sleep\", \"300\"]\ntimeout = \"2m\"\n").await;
    bench.roll("v1").await;
    let why = bench
        .until("the command", async || {
            let why = bench.client.why(NS, &format!("target/web/{NODE}")).await.ok()?;
            why.lines.into_iter().find(|line| line.contains("; static: `/bin/sleep 300` for "))
        })
        .await;
    assert!(why.contains("applying v1, attempt 1"), "{why}");
    assert!(why.ends_with(", limit 2m"), "{why}");
    agent.stop().await;
}
