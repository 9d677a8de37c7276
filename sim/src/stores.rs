//! What the data stores on the machines really are, whatever is recorded of them; and those who kill, start, promote and upgrade them, and
//! have what is down repaired by reactions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_api::paths::{self, fill};
use bellwether_core::records::probes::{Amount, DataStore, Shard, ShardRole, StoreFacts, StoreState};
use bellwether_core::words::name::NodeName;
use bellwether_core::words::random::RandomStream;
use bellwether_core::words::time::Timestamp;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::requests::json as with_body;
use crate::trace::Trace;

/// The cluster of the data stores.
pub const CLUSTER: &str = "stores";

/// Name of their probe.
pub const PROBE: &str = "db";

/// One data store.
#[derive(Debug, Clone)]
struct TrueStore {
    is_up: bool,
    is_primary: bool,
    version: u64,
    /// Number of the last change of this one: what is seen of it later has a larger one.
    step: u64,
    /// How often it went down.
    deaths: u64,
}

/// All data stores of a history. Clones are the same.
#[derive(Debug, Clone)]
pub struct TrueStores(Arc<Mutex<BTreeMap<NodeName, TrueStore>>>);

impl TrueStores {
    /// One on each of these machines; the first is the primary.
    #[must_use]
    pub fn new(nodes: &[String]) -> Self {
        let store = |(number, name): (usize, &String)| {
            let store = TrueStore { is_up: true, is_primary: number == 0, version: 1, step: 1, deaths: 0 };
            Some((name.parse().ok()?, store))
        };
        Self(Arc::new(Mutex::new(nodes.iter().enumerate().filter_map(store).collect())))
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<NodeName, TrueStore>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a probe sees on this machine; what the store said before is kept while it is down.
    #[must_use]
    pub fn probe(&self, node: &NodeName, before: Option<&DataStore>) -> Option<DataStore> {
        let all = self.all();
        let store = all.get(node)?;
        let since = Timestamp::EPOCH;
        if !store.is_up {
            let facts = before.map(|before| before.facts.clone()).unwrap_or_default();
            let reason = "connection refused".to_owned();
            return Some(DataStore { state: StoreState::Down, since, reason, facts });
        }
        let role = if store.is_primary { ShardRole::Primary } else { ShardRole::Replica };
        let shard = Shard {
            role,
            history: Some("one".to_owned()),
            offset: Some(Amount { amount: store.step, unit: "steps".to_owned() }),
            lag: None,
            upstream: None,
            streaming: None,
        };
        let facts = StoreFacts {
            software: "simulated".to_owned(),
            version: Some(store.version.to_string()),
            shards: BTreeMap::from([("0".to_owned(), shard)]),
            ..StoreFacts::default()
        };
        Some(DataStore { state: StoreState::Up, since, reason: String::new(), facts })
    }

    /// How often it went down.
    #[must_use]
    pub fn deaths(&self, node: &NodeName) -> u64 {
        self.all().get(node).map_or(0, |store| store.deaths)
    }

    /// Changes something about some store, and says what.
    pub(crate) fn upset(&self, chance: &mut RandomStream) -> String {
        let mut all = self.all();
        let primaries = all.values().filter(|store| store.is_up && store.is_primary).count();
        let which = usize::try_from(chance.below(u64::try_from(all.len()).unwrap_or(1))).unwrap_or_default();
        let Some((name, store)) = all.iter_mut().nth(which) else { return "there are no stores".to_owned() };
        let done = match (store.is_up, chance.below(10)) {
            (true, 0..=3) => {
                store.is_up = false;
                store.deaths += 1;
                "dies"
            }
            // Now and then it does not learn that another one took over.
            (false, 0..=6 | 8..) => {
                store.is_up = true;
                store.is_primary &= primaries == 0 || chance.below(4) == 0;
                "starts"
            }
            (true, 4..=6) if primaries == 0 => {
                store.is_primary = true;
                "takes over"
            }
            (true, 4..=6) if store.is_primary => {
                store.is_primary = false;
                "gives way"
            }
            (_, 7) => {
                store.version += 1;
                "is upgraded"
            }
            _ => "goes on",
        };
        store.step += 1;
        format!("the store of {name} {done}")
    }
}

/// Those who look after the data stores, or fail to.
#[derive(Debug, Clone)]
pub(crate) struct StorePeople {
    pub(crate) caller: Caller,
    pub(crate) trace: Trace,
    pub(crate) stores: TrueStores,
    pub(crate) seed: u64,
}

impl StorePeople {
    /// Upsets the stores, one after the other.
    pub(crate) async fn upset(self) {
        let mut chance = RandomStream::for_one(self.seed, "stores", 0);
        self.must(
            &mut chance,
            "PUT",
            &fill(paths::CLUSTER, &["default", CLUSTER]),
            &json!({"filter": "role=web"}),
        )
        .await;
        self.must(&mut chance, "POST", &fill(paths::APPLY, &["default"]), &documents()).await;
        loop {
            tokio::time::sleep(Duration::from_millis(500 + chance.below(5_000))).await;
            let said = self.stores.upset(&mut chance);
            self.trace.say(&said);
            if chance.below(25) == 0 {
                self.make_cluster_again(&mut chance).await;
            }
        }
    }

    /// Deletes the cluster, and makes it again a little later.
    async fn make_cluster_again(&self, chance: &mut RandomStream) {
        let path = fill(paths::CLUSTER, &["default", CLUSTER]);
        let (status, _) = self.caller.insist(chance, || with_body("DELETE", &path, &json!(null))).await;
        self.trace.say(&format!("people delete the cluster of the stores: {status}"));
        tokio::time::sleep(Duration::from_millis(1_000 + chance.below(10_000))).await;
        self.must(chance, "PUT", &path, &json!({"filter": "role=web"})).await;
    }

    /// Asks for something that is never refused.
    async fn must(&self, chance: &mut RandomStream, method: &str, path: &str, body: &Value) {
        let (status, answer) = self.caller.insist(chance, || with_body(method, path, body)).await;
        if status >= 300 {
            self.trace.breaks(&format!("{path} was refused: {status} {answer}"));
        }
    }
}

/// What runs where a store is down, and on all machines while there is no primary.
fn documents() -> Value {
    let steps = json!([{"name": "run", "script": {"text": "true\n"}}]);
    let reaction = |name: &str, condition: &str, nodes: &str| {
        json!({
            "kind": "reaction", "name": name, "on": format!("condition = {condition}"), "workflow": "mend", "nodes": nodes,
            "for": "2s", "cooldown": "10s", "max_per_hour": 60,
        })
    };
    let documents = [
        json!({"kind": "task", "name": "again-mend", "steps": steps, "idempotent": true}),
        json!({"kind": "stage", "name": "mend", "tasks": ["again-mend"]}),
        json!({"kind": "workflow", "name": "mend", "stages": ["mend"]}),
        reaction("mend-store", "store_down", "subject"),
        reaction("mend-all", "no_primary", "members"),
    ];
    json!({ "documents": documents })
}
