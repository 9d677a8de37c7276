//! People who run workflows on nodes, on the members of a cluster and on its manager, abort some runs, and delete the cluster and make
//! it again; and somebody who looks after what failed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_api::paths::{self, fill};
use bellwether_core::records::key::Key;
use bellwether_core::records::rollout::RolloutState;
use bellwether_core::words::name::{ClusterName, Namespace};
use bellwether_core::words::random::RandomStream;
use bellwether_server::records::key_text;
use bellwether_store::{Op, Store, Txn};
use serde_json::{Value, json};

use crate::agent::IDEMPOTENT;
use crate::caller::Caller;
use crate::law::LawSummary;
use crate::requests::json as with_body;
use crate::trace::Trace;

/// The cluster.
const CLUSTER: &str = "c";

/// Interval at which somebody looks after what failed.
const TENDS_EVERY: Duration = Duration::from_secs(15);

/// Those who start runs.
#[derive(Debug, Clone)]
pub(crate) struct WorkPeople {
    pub(crate) caller: Caller,
    pub(crate) trace: Trace,
    pub(crate) seed: u64,
    /// The store, if the last fencing number of a cluster is to be forgotten with it.
    pub(crate) forgetful: Option<Store>,
}

impl WorkPeople {
    /// Starts runs, one after the other.
    pub(crate) async fn work(self) {
        let mut chance = RandomStream::for_one(self.seed, "works", 0);
        self.must(&mut chance, "POST", &fill(paths::APPLY, &["default"]), &documents()).await;
        self.make_cluster(&mut chance).await;
        let mut last: Option<String> = None;
        loop {
            tokio::time::sleep(Duration::from_millis(4_000 + chance.below(30_000))).await;
            let policy = json!({"batch": "50%", "soak": "0s"});
            let (path, body) = match chance.below(12) {
                0..=3 => (
                    fill(paths::RUNS, &["default"]),
                    json!({"workflow": "w", "on": "role=web", "busy": "queue", "policy": policy}),
                ),
                4..=7 => (
                    fill(paths::CLUSTER_RUNS, &["default", CLUSTER]),
                    json!({"busy": "queue", "policy": policy}),
                ),
                8 => (
                    fill(paths::CLUSTER_RUNS, &["default", CLUSTER]),
                    json!({"workflow": "w", "on": "cluster/leader Eq true", "busy": "switch", "policy": policy}),
                ),
                9..=10 => {
                    let Some(run) = last.take() else { continue };
                    (fill(paths::ROLLOUT_OPERATION, &["default", &run, "abort"]), json!({"reason": "enough"}))
                }
                _ => {
                    self.make_cluster_again(&mut chance).await;
                    continue;
                }
            };
            let (status, body) = self.caller.insist(&mut chance, || with_body("POST", &path, &body)).await;
            self.trace.say(&format!("people ask for {path}: {status}"));
            last = body.get("name").and_then(Value::as_str).map(str::to_owned).or(last);
        }
    }

    async fn make_cluster(&self, chance: &mut RandomStream) {
        let spec =
            json!({"filter": "role=web", "leaders": 2, "replace_after": "6s", "manager_workflow": "w"});
        self.must(chance, "PUT", &fill(paths::CLUSTER, &["default", CLUSTER]), &spec).await;
    }

    async fn make_cluster_again(&self, chance: &mut RandomStream) {
        let path = fill(paths::CLUSTER, &["default", CLUSTER]);
        let (status, _) = self.caller.insist(chance, || with_body("DELETE", &path, &json!(null))).await;
        self.trace.say(&format!("people delete the cluster: {status}"));
        tokio::time::sleep(Duration::from_millis(1_000 + chance.below(20_000))).await;
        if let Some(store) = &self.forgetful {
            let home = Namespace::parse("default").expect("plain letters are a label");
            let cluster = ClusterName::parse(CLUSTER).expect("plain letters are a label");
            let key = key_text::of(&home, &Key::ClusterRoles(cluster));
            let forgotten = store.commit(Txn { compares: vec![], ops: vec![Op::Delete { key }] }).await;
            self.trace.say(&format!("its last fencing number is forgotten: {}", forgotten.is_ok()));
        }
        self.make_cluster(chance).await;
    }

    /// Asks for something that is never refused.
    async fn must(&self, chance: &mut RandomStream, method: &str, path: &str, body: &Value) {
        let (status, answer) = self.caller.insist(chance, || with_body(method, path, body)).await;
        if status >= 300 {
            self.trace.breaks(&format!("{path} was refused: {status} {answer}"));
        }
    }

    /// Says of each node on which a run failed that it may run others, and aborts the runs that wait for a person: to the end of the history.
    pub(crate) async fn tend(self, seen: Arc<Mutex<LawSummary>>) {
        let mut chance = RandomStream::for_one(self.seed, "tends", 0);
        loop {
            tokio::time::sleep(TENDS_EVERY).await;
            let requests = requests(&seen.lock().unwrap_or_else(PoisonError::into_inner));
            for (path, body) in requests {
                let server = self.caller.any(&mut chance);
                // What is not answered is asked for again the next time.
                let answer = self.caller.call(server, with_body("POST", &path, &body)).await;
                let status = answer.map(|(status, _)| status);
                self.trace.say(&format!("somebody asks for {path}: {status:?}"));
            }
        }
    }
}

fn requests(seen: &LawSummary) -> Vec<(String, Value)> {
    let mut requests = Vec::new();
    for fleet in seen.world.fleets.values() {
        for node in fleet.not_runnable.keys() {
            let path = fill(paths::NODE_RUNNABLE, &["default", node.as_str()]);
            requests.push((path, json!({"runnable": true, "reason": "looked after"})));
        }
        for ((name, _), kept) in &fleet.rollouts {
            let waits = matches!(kept.value.state, RolloutState::Paused(_));
            if waits && fleet.runs.contains_key(name) {
                let path = fill(paths::ROLLOUT_OPERATION, &["default", name.as_str(), "abort"]);
                requests.push((path, json!({"reason": "it waits"})));
            }
        }
    }
    requests
}

fn documents() -> Value {
    let task = |name: &str| {
        let steps = json!([{"name": "run", "script": {"text": "true\n"}}]);
        json!({"kind": "task", "name": name, "steps": steps, "idempotent": name.starts_with(IDEMPOTENT)})
    };
    let tasks = ["once-a", "again-b", "once-c", "again-d"];
    let stages = [json!({"kind": "stage", "name": "s", "tasks": tasks})];
    let workflows = [json!({"kind": "workflow", "name": "w", "stages": ["s"]})];
    let documents: Vec<Value> = tasks.into_iter().map(task).chain(stages).chain(workflows).collect();
    json!({ "documents": documents })
}
