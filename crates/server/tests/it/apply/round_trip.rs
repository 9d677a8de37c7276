//! Whatever is applied can be exported and applied again, and changes nothing: over generated documents.

mod ensembles;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use bellwether_api::v1::apply::{
    ClusterDocument, EnsembleDocument, FilterDocument, NodeDocument, ParamDocument, ReactionDocument,
    ScheduleDocument, SinkDocument, StageDocument, TaskDocument, WorkflowDocument,
};
use bellwether_api::v1::ensemble::adoption::AdoptSpec;
use bellwether_api::v1::schedule::Concurrency;
use bellwether_api::v1::sink::WebhookSpec;
use bellwether_api::v1::workflow::{Script, TaskFile, TaskStep};

use super::*;

fn some<S: Strategy>(values: S) -> impl Strategy<Value = Option<S::Value>> {
    proptest::option::of(values)
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(words).prop_map(str::to_owned)
}

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map("[a-z][a-z./-]{0,5}[a-z]x", "[a-zA-Z0-9._:+-]{0,8}", 0..4)
}

fn policies() -> impl Strategy<Value = Policy> {
    let amounts = || some(word(&["5%", "3", "100%", "1"]));
    let one = (amounts(), amounts(), some(word(&["99%", "50%"])), amounts(), some(word(&["0s", "90s"])));
    let two = (
        some(word(&["1h", "90m"])),
        some(any::<bool>()),
        some(0_u32..3),
        some(word(&["zone", "zone:b,a"])),
        some(word(&["name", "label:rack", "shuffle:7"])),
    );
    let lists = (
        some(Just(vec!["1".to_owned(), "25% approve".to_owned(), "100%".to_owned()])),
        some(Just(vec!["Mon..Fri 22:00-04:00 Europe/Berlin".to_owned()])),
        some(Just(vec!["2 of db".to_owned()])),
    );
    let words = (
        some(word(&["pause", "continue", "rollback"])),
        some(word(&["replace", "finish", "refuse"])),
        some(word(&["15m", "1h"])),
    );
    (one, two, lists, words).prop_map(|(one, two, lists, words)| {
        let (batch, max_unavailable, success, unreachable, soak) = one;
        let (deadline, fail_fast, retries, domain, order) = two;
        let (stages, windows, needs) = lists;
        let (on_failure, supersede, settle) = words;
        Policy {
            batch,
            max_unavailable,
            success,
            unreachable,
            soak,
            deadline,
            fail_fast,
            retries,
            domain,
            order,
            stages,
            windows,
            needs,
            on_failure: on_failure.and_then(|word| word.parse().ok()),
            supersede: supersede.and_then(|word| word.parse().ok()),
            settle,
            ..Policy::default()
        }
    })
}

fn texts() -> impl Strategy<Value = String> {
    "[ -~äöü€]{0,30}".prop_map(|text| text.trim().to_owned())
}

/// Texts that are no template's syntax by chance.
fn templates() -> impl Strategy<Value = String> {
    texts().prop_map(|text| text.replace('{', "("))
}

fn values() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        (-4_000_i32..4_000).prop_map(|quarters| json!(f64::from(quarters) / 4.0)),
        "\\PC{0,12}".prop_map(|value| json!(value)),
        word(&["yes", "no", "1.10", "null", "~", "0x1F", "- a", "a: b", "---", "\n", " x ", "#"])
            .prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            proptest::collection::btree_map("\\PC{0,6}", inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

fn objects() -> impl Strategy<Value = Document> {
    let versions = some(word(&["v1", "1.10", "2024-01-01", "true"]));
    let entities = (labels(), policies(), versions, any::<bool>(), texts(), texts());
    let entities = entities.prop_map(|(labels, policy, version, external, owner, description)| {
        let mut it = EntityDocument { labels, policy, version, owner, description, ..entity("x") };
        if external {
            it.selector = String::new();
            it.external = Some(Default::default());
            // Without labels and commands on them, external targets have no order, domain or retries.
            let Policy { batch, soak, on_failure, .. } = it.policy;
            it.policy = Policy { batch, soak, on_failure, ..Policy::default() };
        }
        document(it)
    });
    let freezes =
        (labels(), texts(), some(word(&["freeze", "stop"])), some(word(&["4h", "90m", "30d"])), 0..3)
            .prop_map(|(labels, reason, kind, lasts, scope)| {
                let entity = (scope == 1).then(|| "web".to_owned());
                let targets = (scope == 2).then(|| "zone in (a,b) and not name=x".to_owned());
                Document::Freeze(FreezeDocument {
                    labels,
                    reason,
                    freeze_kind: kind.and_then(|word| word.parse().ok()),
                    lasts,
                    entity,
                    targets,
                    ..freeze("x")
                })
            });
    let clusters =
        (labels(), some(word(&["role=db", "zone in (a,b)"])), some(0..3_u32), some(word(&["name", "-name"])));
    let clusters = clusters.prop_map(|(labels, filter, leaders, prefer)| {
        let name = "x".to_owned();
        Document::Cluster(ClusterDocument { name, labels, filter, leaders, prefer, ..Default::default() })
    });
    let pauses = (labels(), texts())
        .prop_map(|(labels, reason)| Document::Pause(PauseDocument { labels, reason, ..pause("x") }));
    let profiles = (labels(), proptest::collection::btree_map("[a-zA-Z0-9_./-]{1,8}", values(), 0..5))
        .prop_map(|(labels, params)| {
            Document::Profile(ProfileDocument { labels, params, ..profile("x", 1) })
        });
    let slots = (labels(), some(0_u32..1_000), some(word(&["30s", "1h", "2d"]))).prop_map(
        |(labels, capacity, lease)| Document::Slot(SlotDocument { labels, capacity, lease, ..slot("x") }),
    );
    prop_oneof![
        clusters,
        ensembles::ensembles(),
        entities,
        freezes,
        pauses,
        profiles,
        reactions(),
        schedules(),
        sinks(),
        slots,
        tasks(),
        workflows()
    ]
}

fn reactions() -> impl Strategy<Value = Document> {
    let spans = (some(word(&["0s", "30s"])), some(word(&["10m", "24h"])), some(1..=60_u32));
    (labels(), spans, some(word(&["subject", "members", "role=db"])), any::<bool>(), texts()).prop_map(
        |(labels, (hold, cooldown, max_per_hour), nodes, suspended, reason)| {
            Document::Reaction(Box::new(ReactionDocument {
                name: "x".to_owned(),
                labels,
                on: "condition in (no_primary, store_down) and cluster = db".to_owned(),
                workflow: "x".to_owned(),
                nodes,
                hold,
                cooldown,
                max_per_hour,
                suspended,
                reason,
                ..Default::default()
            }))
        },
    )
}

fn sinks() -> impl Strategy<Value = Document> {
    let spans = (some(word(&["100ms", "10s"])), some(1..=1_000_u32), some(word(&["1s", "7d"])));
    let filters = some(word(&["all", "kind = node.joined"]));
    (labels(), spans, filters, any::<bool>(), texts()).prop_map(
        |(labels, (timeout, attempts, max_age), filter, disabled, reason)| {
            let url = "https://receiver.example/events".to_owned();
            let webhook = WebhookSpec { url, timeout, attempts, max_age, ..WebhookSpec::default() };
            Document::Sink(Box::new(SinkDocument {
                name: "x".to_owned(),
                labels,
                filter,
                webhook: Some(webhook),
                disabled,
                reason,
                ..Default::default()
            }))
        },
    )
}

fn schedules() -> impl Strategy<Value = Document> {
    let when =
        (word(&["30 3 * * Mon-Fri", "@daily", "*/5 * 1,15 * *"]), some(word(&["UTC", "Europe/Berlin"])));
    let how = (some(word(&["10s", "90m", "7d"])), any::<bool>(), any::<bool>());
    (labels(), when, how, some(word(&["5%", "3"])), texts()).prop_map(
        |(labels, (cron, time_zone), (starting_deadline, allows, suspended), batch, reason)| {
            Document::Schedule(Box::new(ScheduleDocument {
                name: "x".to_owned(),
                labels,
                workflow: "x".to_owned(),
                filter: "role=db and not cordoned".to_owned(),
                cron,
                time_zone,
                starting_deadline,
                concurrency: allows.then_some(Concurrency::Allow),
                suspended,
                policy: Policy { batch, ..Policy::default() },
                reason,
                ..Default::default()
            }))
        },
    )
}

fn tasks() -> impl Strategy<Value = Document> {
    let scripts =
        (templates(), some(word(&["bash", "/usr/bin/python3"]))).prop_map(|(text, interpreter)| TaskStep {
            name: "step".to_owned(),
            script: Some(Script { text, interpreter: interpreter.into_iter().collect() }),
            file: None,
        });
    let files = (templates(), some(word(&["0640", "600"]))).prop_map(|(text, mode)| TaskStep {
        name: "step".to_owned(),
        script: None,
        file: Some(TaskFile { path: "/etc/a b".to_owned(), text, mode }),
    });
    let steps = prop_oneof![scripts, files];
    (labels(), texts(), steps, any::<bool>(), some(word(&["10m", "7d"]))).prop_map(
        |(labels, description, step, idempotent, timeout)| {
            let (name, steps) = ("x".to_owned(), vec![step]);
            let params = [("a/b".to_owned(), serde_json::Map::new())].into();
            let task =
                TaskDocument { name, labels, description, steps, params, idempotent, ..Default::default() };
            Document::Task(TaskDocument { timeout, ..task })
        },
    )
}

fn workflows() -> impl Strategy<Value = Document> {
    let names =
        || proptest::collection::btree_set("[a-z]{1,4}", 1..4).prop_map(|names| names.into_iter().collect());
    (labels(), texts(), names(), names(), any::<bool>()).prop_map(
        |(labels, description, listed, profiles, is_stage)| {
            let (name, listed): (_, Vec<String>) = ("x".to_owned(), listed);
            if is_stage {
                let stage = StageDocument { name, labels, description, tasks: listed, ..Default::default() };
                return Document::Stage(StageDocument { profiles, ..stage });
            }
            Document::Workflow(WorkflowDocument {
                name,
                labels,
                description,
                stages: listed,
                ..Default::default()
            })
        },
    )
}

fn named(document: Document, name: String) -> Document {
    match document {
        Document::Cluster(it) => Document::Cluster(ClusterDocument { name, ..it }),
        Document::Ensemble(it) => {
            // No two adopt one store.
            let own = |_| AdoptSpec { endpoints: vec![format!("http://{name}.example:2379")] };
            let adopt = it.adopt.clone().map(own);
            Document::Ensemble(Box::new(EnsembleDocument { name, adopt, ..*it }))
        }
        Document::Entity(it) => Document::Entity(Box::new(EntityDocument { name, ..*it })),
        Document::Filter(it) => Document::Filter(FilterDocument { name, ..it }),
        Document::Freeze(it) => Document::Freeze(FreezeDocument { name, ..it }),
        Document::Node(it) => Document::Node(NodeDocument { name, ..it }),
        Document::Param(it) => Document::Param(ParamDocument { name, ..it }),
        Document::Pause(it) => Document::Pause(PauseDocument { name, ..it }),
        Document::Profile(it) => Document::Profile(ProfileDocument { name, ..it }),
        Document::Schedule(it) => Document::Schedule(Box::new(ScheduleDocument { name, ..*it })),
        Document::Reaction(it) => Document::Reaction(Box::new(ReactionDocument { name, ..*it })),
        Document::Sink(it) => Document::Sink(Box::new(SinkDocument { name, ..*it })),
        Document::Slot(it) => Document::Slot(SlotDocument { name, ..it }),
        Document::Stage(it) => Document::Stage(StageDocument { name, ..it }),
        Document::Task(it) => Document::Task(TaskDocument { name, ..it }),
        Document::Workflow(it) => Document::Workflow(WorkflowDocument { name, ..it }),
    }
}

/// Whatever is applied: applied again, exported and applied, and exported as text and applied, it changes nothing.
#[tokio::test]
async fn exported_documents_change_nothing_whatever_was_applied() {
    let installation = Installation::new().await;
    // Snapshots are on it.
    let _node = installation.node("db-1").await;
    let admin = installation.admin();
    let mut runner = TestRunner::deterministic();
    for round in 0..12 {
        let tree = proptest::collection::vec(objects(), 1..20).new_tree(&mut runner).unwrap();
        let documents: Vec<Document> = tree
            .current()
            .into_iter()
            .enumerate()
            .map(|(number, document)| named(document, format!("x-{round}-{number}")))
            .collect();
        admin
            .apply("default", &request(documents.clone()))
            .await
            .unwrap_or_else(|error| panic!("{error}: {documents:?}"));
        let exported = admin.documents("default").await.unwrap().items;
        let text: Vec<Document> = exported
            .iter()
            .map(|it| serde_json::from_str(&serde_json::to_string(it).unwrap()).unwrap())
            .collect();
        assert_eq!(text, exported);
        for again in [documents, exported] {
            let applied = admin.apply("default", &request(again)).await.unwrap();
            for object in applied.objects {
                assert_eq!(object.outcome, ApplyOutcome::Unchanged, "{object:?}");
            }
        }
    }
}
