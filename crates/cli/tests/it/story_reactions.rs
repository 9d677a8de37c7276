//! Reactions on real Redis: a workflow promotes a replica when there is no primary, once for each time, whatever dies meanwhile.

use bellwether_api::v1::cluster::view::ClusterView;
use bellwether_api::v1::reaction::{FiringResult, ReactionState};
use bellwether_api::v1::rollout::RolloutState;

use crate::place::{Setup, code, done, text, wait_for};
use crate::story_probes::{decided, newest, primary, redis, state, three_redis, view};
use bellwether_api::v1::probes::StoreState;

/// Applies a workflow of one task, and a reaction that runs it.
fn react(place: &Setup, name: &str, script: &str, flags: &[&str]) {
    let documents = format!(
        "kind: task\nname: {name}\nsteps: [{{name: do, script: {{text: \"{script}\"}}}}]\n---\n\
         kind: stage\nname: {name}\ntasks: [{name}]\n---\nkind: workflow\nname: {name}\nstages: [{name}]\n"
    );
    let applied = place.run_with(&["apply", "-f", "-"], &documents);
    assert_eq!(code(&applied), 0, "{}", text(&applied.stderr));
    done(place, &[&["reaction", "create", name, name], flags].concat());
}

async fn runs(place: &Setup, workflow: &str) -> usize {
    let runs = place.client().runs("default").await.unwrap().items;
    runs.iter().filter(|run| run.workflow == workflow).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_primary_a_replica_is_promoted_by_a_run_and_each_step_is_told_in_order() {
    let (place, ports, mut stores) = three_redis().await;
    let script = format!("redis-cli -p {} replicaof no one", ports[1]);
    let on = "condition = no_primary and cluster = shop";
    react(&place, "promote", &script, &["--on", on, "--nodes", "name = db-2", "--for", "300ms"]);
    let idle = done(&place, &["reaction", "get", "promote"]);
    assert!(idle.contains("no condition that it is about is true"), "{idle}");

    let since = newest(&place).await;
    stores[0].kill();
    view(&place, "the promotion", |view: &ClusterView| primary(view) == Some("db-2")).await;
    let all = [
        "cluster.condition_raised - > store_down",
        "cluster.condition_raised - > no_primary",
        "cluster.primary_changed db-1 > db-2",
        "cluster.condition_cleared no_primary > -",
    ];
    decided(&place, since, &all).await;
    let events =
        place.client().events("default", Some(since), 1_000, std::time::Duration::ZERO).await.unwrap();
    let at = |kind: &str| {
        events.items.iter().position(|event| event.kind == kind).unwrap_or_else(|| panic!("no {kind}"))
    };
    let order = [
        at("cluster.condition_raised"),
        at("reaction.fired"),
        at("run.started"),
        at("cluster.primary_changed"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    chain_is_told(&place, since).await;
    let reaction = place.client().reaction("default", "promote").await.unwrap();
    assert_eq!((reaction.firings.len(), reaction.firings[0].result), (1, FiringResult::Started));
    assert_eq!(reaction.firings[0].subject, "cluster/shop/db");
    assert_eq!(runs(&place, "promote").await, 1);
    let shown = done(&place, &["reaction", "list"]);
    assert!(shown.contains("started run promote-"), "{shown}");
}

/// From any event of the chain the others are found: what is down led to the condition, that to the reaction, that to the run.
async fn chain_is_told(place: &Setup, since: u64) {
    let done = async || {
        let events = place.client().events("default", Some(since), 1_000, std::time::Duration::ZERO).await;
        events.unwrap().items.iter().find(|event| event.kind == "target.succeeded").map(|event| event.seq)
    };
    wait_for("the run", async || done().await.is_some()).await;
    let number = done().await.unwrap().to_string();
    let shown = done_lines(place, &["events", "--chain", &number]);
    let kinds: Vec<&str> =
        shown.iter().filter_map(|line| line.split_whitespace().find(|word| word.contains('.'))).collect();
    let chain = [
        "store.down",
        "cluster.condition_raised",
        "reaction.fired",
        "run.started",
        "rollout.started",
        "target.succeeded",
    ];
    assert_eq!(kinds.get(..6), Some(&chain[..]), "{shown:?}");
}

fn done_lines(place: &Setup, args: &[&str]) -> Vec<String> {
    done(place, args).lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_episode_has_one_run_though_servers_and_agents_die_and_an_observed_cluster_none() {
    let (mut place, ports, mut stores) = three_redis().await;
    let note = place.path("noted");
    let script = format!("echo $BELLWETHER_NODE >> {note}");
    react(&place, "note", &script, &["--on", "condition = store_down", "--cooldown", "0s"]);
    done(&place, &["cluster", "set", "shop", "--mode", "observe"]);
    stores[2].kill();
    view(&place, "the death", |view| state(view, "db-3") == Some(StoreState::Down)).await;
    let waits = async || {
        let reaction = place.client().reaction("default", "note").await.unwrap();
        reaction.matches.first().map(|of| of.state) == Some(ReactionState::Observed)
    };
    wait_for("the mode is why", waits).await;
    assert_eq!(runs(&place, "note").await, 0);

    // It fires once the cluster is active, on the node itself; no server and no agent that starts again has it done twice.
    done(&place, &["cluster", "set", "shop", "--mode", "active"]);
    let noted = || std::fs::read_to_string(&note).unwrap_or_default();
    wait_for("the run", async || noted() == "db-3\n").await;
    // One that an agent was killed in would be lost.
    let has_ended = async || {
        let runs = place.client().runs("default").await.unwrap().items;
        runs.iter().all(|run| run.state == RolloutState::Succeeded)
    };
    wait_for("its end", has_ended).await;
    place.kill_server();
    place.kill_agent("db-3");
    place.start_server().await;
    place.resume_agent("db-3");
    view(&place, "the server knows the store again", |view| state(view, "db-3") == Some(StoreState::Down))
        .await;
    let fired = async || {
        let reaction = place.client().reaction("default", "note").await.unwrap();
        reaction.matches.iter().all(|of| of.state == ReactionState::Fired) && reaction.firings.len() == 1
    };
    wait_for("it has fired for it", fired).await;

    // Another one has a run of its own, and the first again once it was up.
    stores[1].kill();
    wait_for("the run of another", async || noted() == "db-3\ndb-2\n").await;
    stores[2] = redis(&place, ports[2], Some(ports[0]));
    view(&place, "the store", |view| state(view, "db-3") == Some(StoreState::Up)).await;
    stores[2].kill();
    wait_for("the run of another episode", async || noted() == "db-3\ndb-2\ndb-3\n").await;
    assert_eq!(runs(&place, "note").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_and_bad_input_are_told_with_the_next_step() {
    let (place, _, mut stores) = three_redis().await;
    let create = |args: &[&str]| place.run(&[&["reaction", "create"], args].concat());
    for (args, said) in [
        (["a", "w", "--on", "conditio = x"], "conditio"),
        (["a", "w", "--on", ""], "missing; write a filter"),
        (["A", "w", "--on", "all"], "reaction"),
    ] {
        let refused = create(&args);
        assert_ne!(code(&refused), 0);
        assert!(text(&refused.stderr).contains(said), "{}", text(&refused.stderr));
    }
    let created = create(&["lost", "none", "--on", "condition = store_down and node = db-3"]);
    assert!(
        text(&created.stderr).contains("no run starts until there is workflow none"),
        "{}",
        text(&created.stderr)
    );
    stores[2].kill();
    let failed = async || {
        let reaction = place.client().reaction("default", "lost").await.unwrap();
        reaction.firings.iter().any(|firing| firing.result == FiringResult::Failed)
    };
    wait_for("it failed", failed).await;
    let shown = done(&place, &["reaction", "get", "lost"]);
    assert!(shown.contains("failed: ") && shown.contains("workflow none"), "{shown}");
    done(&place, &["reaction", "suspend", "lost"]);
    assert!(done(&place, &["reaction", "get", "lost"]).contains("it is suspended"));
    done(&place, &["reaction", "delete", "lost", "--yes"]);
}
