//! Documents of shared data: declared params, and the params and profiles of nodes.

use bellwether_api::v1::apply::{ClusterDocument, FilterDocument, NodeDocument, ParamDocument, TaskDocument};
use serde_json::Value;

use super::*;

const PARAM: &str = "web/workers";

fn param(schema: &Value, default: Option<Value>) -> Document {
    let schema = schema.as_object().unwrap().clone();
    Document::Param(ParamDocument { name: PARAM.to_owned(), schema, default, ..ParamDocument::default() })
}

fn node(name: &str, workers: Value) -> Document {
    Document::Node(NodeDocument {
        name: name.to_owned(),
        params: Params::from([(PARAM.to_owned(), workers)]),
        profiles: vec!["site-a".to_owned()],
        ..NodeDocument::default()
    })
}

fn data(workers: u64) -> Vec<Document> {
    // What others use comes behind them.
    vec![
        node("web-1", json!(workers)),
        Document::Profile(profile("site-a", 4)),
        param(&json!({"type": "integer", "maximum": 64}), Some(json!(2))),
    ]
}

#[tokio::test]
async fn params_and_what_a_node_has_are_applied_and_exported() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    let outcomes: Vec<ApplyOutcome> =
        apply(&admin, data(8)).await.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes, [ApplyOutcome::Changed, ApplyOutcome::Created, ApplyOutcome::Created]);
    let explained = admin.explain_params("default", "web-1", Some(PARAM), None).await.unwrap().items;
    assert_eq!(explained[0].value, Some(json!(8)), "{explained:#?}");

    let before = newest_event(&admin).await;
    let exported = admin.documents("default").await.unwrap().items;
    assert_eq!(exported.len(), 3, "{exported:?}");
    for documents in [data(8), exported] {
        let again = apply(&admin, documents).await;
        assert!(again.iter().all(|(_, outcome)| *outcome == ApplyOutcome::Unchanged), "{again:?}");
    }
    assert_eq!(newest_event(&admin).await, before, "nothing is written when nothing changes");

    let dry = ApplyRequest { dry_run: true, ..request(data(9)) };
    let dry = admin.apply("default", &dry).await.unwrap();
    let field = &dry.objects[0].fields[0];
    assert_eq!((field.old.as_deref(), field.new.as_deref()), (Some("8"), Some("9")), "{dry:?}");
    // They have no labels to be pruned by, and stay.
    let prune = Some(BTreeMap::from([("app".to_owned(), "shop".to_owned())]));
    let mut labelled = data(9);
    let labels = prune.clone().unwrap();
    labelled[1] = Document::Profile(ProfileDocument { labels, ..profile("site-a", 4) });
    admin.apply("default", &ApplyRequest { prune, ..request(labelled) }).await.unwrap();
    assert_eq!(admin.documents("default").await.unwrap().items.len(), 3);
}

#[tokio::test]
async fn data_that_does_not_fit_is_refused_and_nothing_changes() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    let integers = json!({"type": "integer"});
    for (documents, says) in [
        (vec![node("web-9", json!(1))], "node/web-9"),
        (vec![param(&json!({"type": "no such type"}), None)], "param/web/workers: schema"),
        (vec![param(&integers, Some(json!("many")))], "param/web/workers: default"),
        // The declaration comes first, whatever the order of the documents.
        (vec![node("web-1", json!("many")), param(&integers, None)], "node/web-1"),
        (vec![node("web-1", json!(1)), node("web-1", json!(2))], "two documents describe it"),
    ] {
        let (code, detail) = problem(admin.apply("default", &request(documents)).await);
        assert!(matches!(code, Code::Invalid | Code::Refused), "{detail}");
        assert!(detail.contains(says), "{detail} does not say {says}");
        assert!(admin.documents("default").await.unwrap().items.is_empty(), "{detail}");
    }
}

#[tokio::test]
async fn a_schema_and_the_values_that_it_refuses_are_changed_together() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("web-1").await;
    apply(&admin, data(60)).await;
    let fleet = |workers: Value, schema: Value| {
        vec![param(&schema, None), node("web-1", workers), Document::Profile(profile("site-a", 4))]
    };
    let narrow = json!({"type": "integer", "maximum": 10});
    let text = json!({"type": "string"});
    for (documents, says) in [
        // What the documents leave as it is fits, too.
        (vec![param(&narrow, None)], "node web-1 has a value that does not fit"),
        (fleet(json!(11), narrow.clone()), "node/web-1: params/web/workers"),
        (fleet(json!(60), narrow.clone()), "apply param/web/workers: declare param web/workers: node web-1"),
    ] {
        for dry_run in [true, false] {
            let asked = ApplyRequest { dry_run, ..request(documents.clone()) };
            let (_, detail) = problem(admin.apply("default", &asked).await);
            assert!(detail.contains(says), "{detail} does not say {says}");
        }
        assert_eq!(admin.param("default", PARAM).await.unwrap().schema.get("maximum"), Some(&json!(64)));
    }
    apply(&admin, fleet(json!(8), narrow)).await;
    apply(&admin, fleet(json!("all"), text)).await;
    let explained = admin.explain_params("default", "web-1", Some(PARAM), None).await.unwrap().items;
    assert_eq!(explained[0].value, Some(json!("all")), "{explained:#?}");
}

#[tokio::test]
async fn a_changed_secret_is_a_change_and_its_mark_is_none() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let declared = ParamDocument { name: "password".to_owned(), secret: true, ..ParamDocument::default() };
    let with = |value: Value| {
        let profile = ProfileDocument {
            name: "db".to_owned(),
            params: Params::from([("password".to_owned(), value)]),
            ..ProfileDocument::default()
        };
        vec![Document::Profile(profile), Document::Param(declared.clone())]
    };
    let outcome = async |value: Value| apply(&admin, with(value)).await[0].1;
    assert_eq!(outcome(json!("hunter2")).await, ApplyOutcome::Created);
    assert_eq!(outcome(json!("hunter2")).await, ApplyOutcome::Unchanged);
    assert_eq!(outcome(json!({"$secret": "***"})).await, ApplyOutcome::Unchanged);
    // A dry run does not tell whether a guess is right.
    for guess in ["hunter2", "hunter3"] {
        let dry = ApplyRequest { dry_run: true, ..request(with(json!(guess))) };
        let dry = admin.apply("default", &dry).await.unwrap();
        let field = &dry.objects[0].fields[0];
        assert_eq!((field.field.as_str(), field.new.as_deref()), ("params.password", Some("***")), "{dry:?}");
    }
    assert_eq!(outcome(json!("hunter3")).await, ApplyOutcome::Changed);
    assert_eq!(admin.reveal_of_profile("default", "db", "password").await.unwrap().value, "hunter3");
}

fn filter(name: &str, text: &str) -> Document {
    let (name, filter) = (name.to_owned(), text.to_owned());
    Document::Filter(FilterDocument { name, filter, ..FilterDocument::default() })
}

#[tokio::test]
async fn saved_filters_are_applied_in_the_order_in_which_they_name_each_other() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let documents = vec![filter("a", "@b and @c"), filter("b", "not @c"), filter("c", "cordoned")];
    let applied = apply(&admin, documents.clone()).await;
    assert!(applied.iter().all(|(_, outcome)| *outcome == ApplyOutcome::Created), "{applied:?}");
    let exported = admin.documents("default").await.unwrap().items;
    assert_eq!(exported.len(), 3, "{exported:?}");
    for documents in [documents, exported] {
        let again = apply(&admin, documents).await;
        assert!(again.iter().all(|(_, outcome)| *outcome == ApplyOutcome::Unchanged), "{again:?}");
    }
    // The other way round they name each other only for as long as they are not all set.
    let reversed = vec![filter("c", "@b and @a"), filter("b", "not @a"), filter("a", "drained")];
    let applied = apply(&admin, reversed).await;
    assert!(applied.iter().all(|(_, outcome)| *outcome == ApplyOutcome::Changed), "{applied:?}");
    assert_eq!(admin.filter("default", "c").await.unwrap().filter, "@b and @a");
    let refused = admin.apply("default", &request(vec![filter("a", "all"), filter("d", "@e")])).await;
    let (code, detail) = problem(refused);
    assert!(code == Code::Invalid && detail.contains("filter/d: filter: "), "{detail}");
    assert_eq!(admin.filter("default", "a").await.unwrap().filter, "drained", "nothing was changed");
}

fn cluster(leaders: u32) -> Document {
    let labels = BTreeMap::from([("app".to_owned(), "shop".to_owned())]);
    let (name, filter) = ("db".to_owned(), Some("name =~ \"^db-\"".to_owned()));
    Document::Cluster(ClusterDocument {
        name,
        filter,
        leaders: Some(leaders),
        labels,
        ..ClusterDocument::default()
    })
}

#[tokio::test]
async fn a_cluster_and_its_profile_are_applied_exported_and_pruned() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    installation.node("db-1").await;
    let labels = BTreeMap::from([("app".to_owned(), "shop".to_owned())]);
    let shared = ProfileDocument { labels: labels.clone(), ..profile("db", 4) };
    let task = TaskDocument { name: "old".to_owned(), labels: labels.clone(), ..TaskDocument::default() };
    let step = json!({"name": "do", "script": {"text": "true"}});
    let task = TaskDocument { steps: vec![serde_json::from_value(step).unwrap()], ..task };
    let documents = || vec![cluster(2), Document::Profile(shared.clone())];
    apply(&admin, [documents(), vec![Document::Task(task)]].concat()).await;
    let made = admin.cluster("default", "db").await.unwrap();
    assert_eq!((made.leaders, made.members, &*made.profile), (2, 1, "db"));
    // The profile became live and got the name of itself, which its document does not say.
    let exported = admin.documents("default").await.unwrap().items;
    for documents in [documents(), exported] {
        let again = apply(&admin, documents).await;
        assert!(again.iter().all(|(_, outcome)| *outcome == ApplyOutcome::Unchanged), "{again:?}");
    }
    let less = ApplyRequest {
        prune: Some(labels.clone()),
        ..request(vec![cluster(1), Document::Profile(shared.clone())])
    };
    let applied = admin.apply("default", &less).await.unwrap();
    let pruned: Vec<&str> = applied.objects.iter().map(|it| &*it.object).collect();
    assert_eq!(pruned, ["cluster/db", "profile/db", "task/old"]);
    assert_eq!(admin.cluster("default", "db").await.unwrap().leaders, 1);
    let other = FilterDocument {
        name: "none".to_owned(),
        filter: "name = x".to_owned(),
        ..FilterDocument::default()
    };
    let nothing = ApplyRequest { prune: Some(labels), ..request(vec![Document::Filter(other)]) };
    let applied = admin.apply("default", &nothing).await.unwrap();
    let pruned: Vec<&str> = applied.objects.iter().map(|it| &*it.object).collect();
    assert_eq!(
        pruned,
        ["filter/none", "cluster/db", "profile/db"],
        "the cluster before the profile that it uses"
    );
}
