//! Logs of jobs: a reader is answered by the server that the node is connected to, with what the node sends; another server names
//! that one; a reader needs two rights.

use std::time::Duration;

use bellwether_api::client::{Access, CallError, Client, NodeKnowledge};
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::ApplyRequest;
use bellwether_api::v1::job::JobState;
use bellwether_api::v1::job_log::{JobLog, LogChunk, LogRequest, LogText};
use bellwether_api::v1::report::{EntityReport, Report};
use bellwether_api::v1::role::RoleSpec;
use bellwether_api::v1::run::NewRun;
use bellwether_rt::clock::Clock;
use bellwether_server::run::Server;
use bellwether_store::testing::etcd::TestEtcd;
use serde_json::json;

use crate::harness::{Installation, Node, SOON, problem};
use crate::several::two;

/// Applies a workflow and has the node run it; answers the name of the run.
async fn start(installation: &Installation, node: &Node, features: &[&str]) -> String {
    let features = features.iter().map(|feature| (*feature).to_owned()).collect();
    let report = Report { features: Some(features), ledger: Some("a".repeat(32)), ..node.empty_report() };
    node.client.report("default", &report).await.unwrap();
    let documents = json!({"documents": [
        {"kind": "task", "name": "one", "steps": [{"name": "do", "script": {"text": "true"}}]},
        {"kind": "stage", "name": "all", "tasks": ["one"]},
        {"kind": "workflow", "name": "work", "stages": ["all"]},
    ]});
    let documents: ApplyRequest = serde_json::from_value(documents).unwrap();
    installation.admin().apply("default", &documents).await.unwrap();
    let new: NewRun = serde_json::from_value(json!({"workflow": "work", "on": "all"})).unwrap();
    let run = installation.admin().start_run("default", &new).await.unwrap().name;
    let jobs = json!([{"index": 0, "task": "one", "state": "running", "attempts": 1}]);
    let jobs = serde_json::from_value(jobs).unwrap();
    let entity = EntityReport { jobs: Some(jobs), ..EntityReport::default() };
    let report = Report { entities: [(run.clone(), entity)].into(), ..report };
    node.client.report("default", &report).await.unwrap();
    run
}

/// Every feature that a reader of logs depends on.
const ALL: [&str; 3] = ["workflows", "jobs", "job_logs"];

/// The requests that the node is told of.
async fn requests(node: &Node) -> Vec<LogRequest> {
    let mut generation = 0;
    let told = async {
        loop {
            let known = NodeKnowledge { generation, ..NodeKnowledge::default() };
            let poll = node.client.sync("default", &node.name, known, Duration::from_secs(20)).await.unwrap();
            generation = poll.order.map_or(generation, |order| order.generation);
            if !poll.log_requests.is_empty() {
                return poll.log_requests;
            }
        }
    };
    tokio::time::timeout(SOON, told).await.unwrap()
}

/// Answers one reader with this text, as an agent does.
async fn answer(node: &Node, text: &str) -> LogRequest {
    let request = requests(node).await.remove(0);
    let next = request.offset + u64::try_from(text.len()).unwrap();
    let (text, more, state) = (text.to_owned(), false, JobState::Running);
    let read = Some(LogText { offset: request.offset, next, text, more, state });
    let chunk = LogChunk { request: request.clone(), read, problem: None };
    node.client.send_log("default", &node.name, &chunk).await.unwrap();
    let again = problem(node.client.send_log("default", &node.name, &chunk).await);
    assert_eq!(again.0, Code::NotFound, "each request is answered once");
    request
}

async fn read(client: &Client, run: &str, offset: u64) -> Result<JobLog, CallError> {
    client.job_log("default", (run, "web-1", 0), offset, Duration::from_secs(5)).await
}

/// Reads once the server knows that the node is connected.
async fn read_soon(client: &Client, run: &str, offset: u64) -> JobLog {
    loop {
        match read(client, run, offset).await {
            Ok(part) => return part,
            Err(CallError::Problem(problem)) if problem.retry_after_ms.is_some() => {
                assert!(problem.detail.contains("connected to no server"), "{problem}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_reader_gets_what_the_node_sends_and_needs_the_rights_on_its_run_and_its_node() {
    let installation = Installation::new().await;
    let (admin, node) = (installation.admin(), installation.node("web-1").await);
    let run = start(&installation, &node, &ALL).await;
    let (part, request) = tokio::join!(read_soon(&admin, &run, 7), answer(&node, "hello\n"));
    assert_eq!((part.text.as_str(), part.offset, part.next, part.ended), ("hello\n", 7, 13, false));
    assert_eq!((request.run.as_str(), request.index, request.offset, request.wait_ms), (&*run, 0, 7, 5_000));
    // What follows the node's first order is written by now.
    let before = admin.events("default", None, 1, Duration::ZERO).await.unwrap().items;
    let (part, _) = tokio::join!(read_soon(&admin, &run, 13), answer(&node, "again\n"));
    assert_eq!(part.offset, 13);
    let after = admin.events("default", None, 1, Duration::ZERO).await.unwrap().items;
    assert_eq!(before, after, "reading is no event");
    for (number, (kinds, names)) in
        [(["run"].as_slice(), "*"), (&["node"], "*"), (&["run", "node"], "db-*")].into_iter().enumerate()
    {
        let run_names = if kinds.len() > 1 { "work-*" } else { names };
        let claims = kinds.iter().map(|kind| {
            let names = if *kind == "run" { run_names } else { names };
            json!({"verbs": ["get"], "kinds": [kind], "names": [names]})
        });
        let spec: RoleSpec = serde_json::from_value(json!({"claims": claims.collect::<Vec<_>>()})).unwrap();
        let name = format!("reader-{number}");
        admin.put_role(&name, &spec).await.unwrap();
        let reader = installation.token(&name).await;
        assert_eq!(problem(read(&reader, &run, 0).await).0, Code::Forbidden, "{spec:?}");
    }
}

#[tokio::test]
async fn an_agent_that_sends_no_logs_and_runs_and_jobs_that_are_not_there_are_told() {
    let installation = Installation::new().await;
    let (admin, node) = (installation.admin(), installation.node("web-1").await);
    let run = start(&installation, &node, &["workflows", "jobs"]).await;
    let (code, detail) = problem(read(&admin, &run, 0).await);
    assert_eq!(code, Code::Refused);
    assert!(detail.contains("of a build that sends no logs of jobs"), "{detail}");
    assert_eq!(problem(read(&admin, "work-999", 0).await).0, Code::NotFound);
    let missing = admin.job_log("default", (&run, "web-1", 7), 0, Duration::ZERO).await;
    assert!(problem(missing).1.contains(&format!("cannot find job {run}/web-1/7")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_hold_the_node_names_the_one_that_does() {
    let (etcd, dir) = (TestEtcd::one().await, tempfile::tempdir().unwrap());
    let (configs, identity) = two(&etcd, dir.path()).await;
    let first = Server::start(&configs[0], Clock::system()).await.unwrap();
    let second = Server::start(&configs[1], Clock::system()).await.unwrap();
    let access = Access {
        server: format!("https://{}", second.address),
        ca: Some(second.ca_pem.clone()),
        identity: identity.clone(),
    };
    let other = Client::new(&access).unwrap();
    let address = format!("https://{}", first.address);
    let installation = Installation::of(configs[0].clone(), first, identity);
    let node = installation.node("web-1").await;
    let run = start(&installation, &node, &ALL).await;
    let named = async {
        loop {
            let read = read(&other, &run, 5).await;
            if let Ok(JobLog { server: Some(server), offset: 5, next: 5, .. }) = read {
                return server;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    // The node keeps its session meanwhile.
    let polls = async {
        loop {
            let known = NodeKnowledge { generation: 1_000, ..NodeKnowledge::default() };
            node.client.sync("default", "web-1", known, Duration::from_secs(5)).await.unwrap();
        }
    };
    let named = tokio::select! {
        named = tokio::time::timeout(SOON, named) => named.unwrap(),
        () = polls => panic!("it polls for ever"),
    };
    assert_eq!((named.name.as_str(), &named.address), ("cp-1", &address));
    let there = other.towards(&named.address).unwrap();
    let (part, _) = tokio::join!(read_soon(&there, &run, 5), answer(&node, "hello\n"));
    assert_eq!(part.text, "hello\n");
    second.stop().await.unwrap();
}
