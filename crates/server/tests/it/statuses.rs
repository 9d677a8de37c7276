//! Statuses, expiry, and logs of failed runs, as nodes and people see them.

use std::time::Duration;

use bellwether_api::client::{NodeKnowledge, NodeLogKey};
use bellwether_api::problem::Code;
use bellwether_api::v1::log::NewLog;
use bellwether_api::v1::report::{EntityReport, Report, TargetHealth};
use bellwether_api::v1::status::{Status, StatusState};

use crate::harness::{Installation, Node, policy, problem, set_entity, until, version};

fn status(state: &str, update: u64) -> Status {
    Status { update, ..state.parse::<StatusState>().unwrap().into() }
}

async fn says(node: &Node, category: &str, status: Status) {
    let mut report = node.empty_report();
    report.statuses.insert(category.into(), status);
    node.client.report("default", &report).await.unwrap();
}

/// Waits until a status of the node has this state.
async fn shows(installation: &Installation, node: &str, category: &str, word: &str) -> Status {
    let looking = async {
        loop {
            let view = installation.admin().node("default", node).await.unwrap();
            if let Some(status) = view.statuses.get(category).filter(|status| status.state == word) {
                return status.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looking).await.expect("the status never looked as expected")
}

#[tokio::test]
async fn a_node_that_refuses_its_orders_is_marked_in_lists_the_summary_and_every_why() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    set_entity(&admin, policy("1", "0s")).await;
    let node = installation.node("web-1").await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let number = node.assigned("v1").await;
    node.runs("v1", number, TargetHealth::Healthy).await;
    until(&admin, |view| view.progress.last_known_good.as_deref() == Some("v1")).await;
    let reason = "cannot accept an order of term 2: the store was set back";
    let refuses = Status { reason: reason.into(), ..status("failed", 0) };
    let mut report = node.empty_report();
    let entity = EntityReport {
        running: Some("v1".to_owned()),
        answering: number,
        healthy_for_ms: Some(10_000),
        health: TargetHealth::Healthy,
        ..EntityReport::default()
    };
    report.entities.insert("web".to_owned(), entity);
    report.statuses.insert("orders".into(), refuses);
    node.client.report("default", &report).await.unwrap();
    shows(&installation, "web-1", "orders", "failed").await;
    let listed = admin.nodes("default", false).await.unwrap().items;
    let refusals: Vec<_> = listed.iter().map(|view| view.order_refusal.as_deref()).collect();
    assert_eq!(refusals, [Some(reason)]);
    let overview = admin.overview("default").await.unwrap();
    assert_eq!((overview.refusing, overview.first_refusing), (1, Some(format!("web-1: {reason}"))));
    for subject in ["entity/web", "node/web-1", "target/web/web-1"] {
        let lines = admin.why("default", subject).await.unwrap().lines.join("\n");
        let expected = format!("web-1: on v1, does not accept orders: {reason}");
        assert!(lines.contains(&expected), "{subject}: {lines}");
    }
    node.runs("v1", number, TargetHealth::Healthy).await;
    let overview = admin.overview("default").await.unwrap();
    assert_eq!((overview.refusing, overview.first_refusing), (0, None));
}

#[tokio::test]
async fn failed_and_silent_statuses_are_distinguished_in_one_call() {
    let mut installation = Installation::new().await;
    let (web, db) = (installation.node("web-1").await, installation.node("db-1").await);
    let empty = installation.admin().failures("default").await.unwrap();
    assert!(empty.failed.is_empty() && empty.silent.is_empty() && empty.unreachable.is_empty());
    says(&web, "configure", Status { reason: "web: exit code 1".into(), ..status("failed", 0) }).await;
    // It was set an hour ago, by the node's clock, with a lifetime of ten minutes.
    let old = Status { lifetime_ms: Some(600_000), age_ms: Some(3_600_000), ..status("failed", 7) };
    says(&db, "backup", old.clone()).await;
    let silent = shows(&installation, "db-1", "backup", "unknown").await;
    assert_eq!(silent.last_state, Some(StatusState::Failed));
    // It is recorded once, however often the node repeats it or the server restarts.
    installation.restart().await;
    let db = installation.node_again(db);
    says(&db, "backup", old).await;
    let failures = installation.admin().failures("default").await.unwrap();
    let names: Vec<&str> = failures.failed.iter().map(|each| each.node.as_str()).collect();
    assert_eq!(names, ["web-1"]);
    assert_eq!((failures.silent[0].node.as_str(), failures.silent[0].category.as_str()), ("db-1", "backup"));
    let events = installation.admin().events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    let fell = events.iter().filter(|event| event.after.as_deref() == Some("backup=unknown")).count();
    assert_eq!(fell, 1);
}

#[tokio::test]
async fn people_set_what_is_not_the_agents_own() {
    let installation = Installation::new().await;
    let _node = installation.node("web-1").await;
    let (operator, viewer) = (installation.token("operator").await, installation.token("viewer").await);
    let set = async |category: &str, status: Status| {
        operator.set_status("default", "web-1", category, &status).await
    };
    set("backup", Status { lifetime_ms: Some(1_000), ..status("success", 0) }).await.unwrap();
    shows(&installation, "web-1", "backup", "unknown").await;
    for category in ["provision", "configure", "validate"] {
        let (code, detail) = problem(set(category, status("success", 0)).await);
        assert_eq!(code, Code::Refused, "{detail}");
    }
    for wrong in [status("unknown", 0), Status { lifetime_ms: Some(1), ..status("success", 0) }] {
        assert_eq!(problem(set("backup", wrong).await).0, Code::Invalid);
    }
    let denied = viewer.set_status("default", "web-1", "backup", &status("success", 0)).await;
    assert_eq!(problem(denied).0, Code::Forbidden);
    assert!(viewer.failures("default").await.unwrap().failed.is_empty());
}

#[tokio::test]
async fn the_last_log_of_each_failure_is_kept_within_bounds() {
    let mut installation = Installation::new().await;
    let (web, db) = (installation.node("web-1").await, installation.node("db-1").await);
    let log = |run: &str, text: &str| NewLog { run: run.into(), text: text.into() };
    for run in ["1-1-1", "2-1-1"] {
        web.client.keep_log(own_log("configure", "web"), &log(run, &format!("run {run}"))).await.unwrap();
    }
    installation.restart().await;
    let (web, db) = (installation.node_again(web), installation.node_again(db));
    let admin = installation.admin();
    let kept = admin.node_log(own_log("configure", "web")).await.unwrap();
    assert_eq!((kept.run.as_str(), kept.text.as_str(), kept.bytes), ("2-1-1", "run 2-1-1", 9));
    let before = admin.node_logs("default", "web-1").await.unwrap().items;
    assert!(before.iter().all(|head| head.text.is_empty()));
    // The same run again, as after a restart of the agent, writes nothing.
    web.client.keep_log(own_log("configure", "web"), &log("2-1-1", "run 2-1-1")).await.unwrap();
    assert_eq!(admin.node_logs("default", "web-1").await.unwrap().items, before);
    for number in 0..20 {
        web.client.keep_log(own_log("validate", &format!("e{number}")), &log("3-1-1", "x")).await.unwrap();
    }
    let heads = admin.node_logs("default", "web-1").await.unwrap().items;
    assert_eq!(heads.len(), 16);
    assert!(heads.iter().all(|head| head.entity != "web" && head.entity != "e0"), "the oldest went");
    let refused = [
        (
            problem(db.client.keep_log(own_log("configure", "web"), &log("1-1-1", "")).await).0,
            Code::Forbidden,
        ),
        (problem(admin.keep_log(own_log("configure", "web"), &log("1-1-1", "")).await).0, Code::Forbidden),
        (problem(web.client.keep_log(own_log("configure", "web"), &log("../x", "")).await).0, Code::Invalid),
        (
            problem(web.client.keep_log(own_log("configure", "web"), &log("1", &"x".repeat(65_537))).await).0,
            Code::Invalid,
        ),
        (problem(admin.node_log(own_log("configure", "db")).await).0, Code::NotFound),
        (problem(admin.node_logs("default", "ghost").await).0, Code::NotFound),
    ];
    for (code, wanted) in refused {
        assert_eq!(code, wanted);
    }
}

/// The log of `web-1` for a category and entity.
const fn own_log<'a>(category: &'a str, entity: &'a str) -> NodeLogKey<'a> {
    NodeLogKey { namespace: "default", node: "web-1", category, entity }
}

/// Sets one state after the other in one category of a node, alternating with a person who sets it too.
async fn chatter(node: Node, admin: bellwether_api::client::Client, round: u64) {
    let states = ["success", "failed", "running", "pending"];
    for number in 0..12_u64 {
        let state = states[usize::try_from((number * 7 + round) % 4).unwrap()];
        let lifetime_ms = (number % 3 == 0).then_some(1_000);
        let said =
            Status { lifetime_ms, age_ms: Some(number * 400), ..status(state, round * 100 + number + 1) };
        says(&node, "backup", said.clone()).await;
        // Repeated, as after an interruption: no change.
        says(&node, "backup", said).await;
        if number % 4 == 1 {
            let by_hand = status(states[usize::try_from(round % 4).unwrap()], 0);
            admin.set_status("default", &node.name, "backup", &by_hand).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_updates_of_many_nodes_and_restarts_never_make_two_states_of_one() {
    let mut installation = Installation::new().await;
    let tasks = bellwether_rt::tasks::Tasks::new();
    let mut nodes = Vec::new();
    for name in ["a", "b", "c", "d"] {
        nodes.push(installation.node(name).await);
    }
    for round in 0..3 {
        nodes = nodes.into_iter().map(|node| installation.node_again(node)).collect();
        let chats: Vec<_> = nodes
            .iter()
            .flat_map(|node| {
                // Two agents with one identity at the same time: one is a clone of the other.
                [round, round + 50].map(|round| (installation.node_again(node.clone()), round))
            })
            .map(|(node, round)| tasks.spawn("chatter", chatter(node, installation.admin(), round)))
            .collect();
        for chat in chats {
            chat.await.unwrap().unwrap();
        }
        installation.restart().await;
    }
    let admin = installation.admin();
    let events = admin.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    for node in nodes {
        let shown = admin.node("default", &node.name).await.unwrap().statuses["backup"].state;
        let subject = format!("node/{}", node.name);
        let mut last = None;
        for event in events.iter().filter(|event| event.subject == subject && event.kind == "status.changed")
        {
            assert_eq!(event.before, last, "each change begins where the one before ended");
            assert_ne!(event.before, event.after);
            last = event.after.clone();
        }
        let now = format!("backup={shown}");
        // It may have expired between the two reads, which is then one more change.
        assert!(last == Some(now) || shown == "unknown", "{last:?} {shown}");
    }
}

#[tokio::test]
async fn people_delete_what_is_not_the_agents_own() {
    let installation = Installation::new().await;
    let node = installation.node("web-1").await;
    let (operator, viewer) = (installation.token("operator").await, installation.token("viewer").await);
    says(&node, "backup", status("failed", 7)).await;
    assert_eq!(problem(viewer.delete_status("default", "web-1", "backup").await).0, Code::Forbidden);
    assert_eq!(problem(operator.delete_status("default", "web-1", "validate").await).0, Code::Refused);
    assert_eq!(problem(operator.delete_status("default", "web-1", "scrub").await).0, Code::NotFound);
    assert_eq!(problem(operator.delete_status("default", "web-2", "backup").await).0, Code::NotFound);
    operator.delete_status("default", "web-1", "backup").await.unwrap();
    let shown = async || installation.admin().node("default", "web-1").await.unwrap().statuses;
    assert!(!shown().await.contains_key("backup"));
    says(&node, "backup", status("failed", 7)).await;
    assert!(!shown().await.contains_key("backup"), "the agent only repeats it");
    operator.set_status("default", "web-1", "backup", &status("success", 0)).await.unwrap();
    says(&node, "backup", status("failed", 7)).await;
    assert_eq!(shown().await["backup"].state, "success");
    says(&node, "backup", status("running", 8)).await;
    assert_eq!(shown().await["backup"].state, "running");
    says(&node, "scrub", status("success", 9)).await;
    assert!(!shown().await.contains_key("backup"), "its node no longer reports it");
}

#[tokio::test]
async fn large_reports_that_expire_together_hold_up_no_rollout() {
    let installation = Installation::lenient().await;
    let admin = installation.admin();
    let mut nodes = Vec::new();
    for number in 0..40 {
        let node = installation.node(&format!("web-{number}")).await;
        let mut report = node.empty_report();
        // Each is as large as a report may be, and all fall silent in one pass of the leader: more than a transaction has room for.
        for category in 0..64 {
            let reason = "x".repeat(500);
            let lifetime_ms = (category == 0).then_some(1_000);
            let status = Status { reason, lifetime_ms, ..status("failed", 0) };
            report.statuses.insert(format!("category-{category}"), status);
        }
        node.client.report("default", &report).await.unwrap();
        nodes.push(node);
    }
    shows(&installation, "web-0", "category-0", "unknown").await;
    shows(&installation, "web-39", "category-0", "unknown").await;
    set_entity(&admin, policy("100%", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    nodes[39].assigned("v1").await;
    assert!(admin.overview("default").await.unwrap().warnings.is_empty());
}

#[tokio::test]
async fn a_report_that_arrives_after_a_later_one_is_refused_and_changes_nothing() {
    let installation = Installation::new().await;
    let node = installation.node("web-1").await;
    let numbered = |sequence, state: &str| {
        let mut report = node.empty_report();
        report.statuses.insert("backup".into(), status(state, sequence));
        Report { sequence, ..report }
    };
    node.client.report("default", &numbered(2, "success")).await.unwrap();
    let (code, detail) = problem(node.client.report("default", &numbered(1, "failed")).await);
    assert!(code == Code::Conflict && detail.contains("a later one is known"), "{detail}");
    shows(&installation, "web-1", "backup", "success").await;
    node.client.report("default", &numbered(3, "failed")).await.unwrap();
    shows(&installation, "web-1", "backup", "failed").await;
}

/// One that has nothing new to say finds out as well.
#[tokio::test]
async fn an_agent_whose_last_report_is_not_the_last_of_its_node_is_asked_for_another() {
    let installation = Installation::new().await;
    let node = installation.node("web-1").await;
    node.client.report("default", &Report { sequence: 2, ..node.empty_report() }).await.unwrap();
    let is_asked = async |reported| {
        let known = NodeKnowledge { reported, ..NodeKnowledge::default() };
        let wait = Duration::from_millis(1);
        node.client.sync("default", "web-1", known, wait).await.unwrap().report_requested
    };
    while !is_asked(Some(1)).await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!is_asked(Some(2)).await && !is_asked(Some(3)).await && !is_asked(None).await);
}

#[tokio::test]
async fn as_many_statuses_and_entities_as_a_node_may_have_arrive_in_one_report() {
    let installation = Installation::patient().await;
    let (admin, node) = (installation.admin(), installation.node("web-1").await);
    let mut report = node.empty_report();
    report.statuses = (0..64).map(|number| (format!("c{number}"), status("success", 1))).collect();
    let entity = EntityReport { running: Some("v1".to_owned()), ..EntityReport::default() };
    report.entities = (0..256).map(|number| (format!("e{number}"), entity.clone())).collect();
    node.client.report("default", &report).await.unwrap();
    let view = admin.node("default", "web-1").await.unwrap();
    assert_eq!((view.statuses.len(), view.running.len()), (64, 256));
}
