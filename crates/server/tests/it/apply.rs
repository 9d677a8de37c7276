//! Applying documents: all of them or none, in one transaction if it takes them, by the rights and rules of single operations.

mod data;
mod ended;
mod round_trip;

use std::collections::BTreeMap;

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::{
    Applied, ApplyOutcome, ApplyRequest, Document, EntityDocument, FreezeDocument, PauseDocument,
    ProfileDocument, SlotDocument,
};
use bellwether_api::v1::evidence::Evidence;
use bellwether_api::v1::freeze::FreezeSpec;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::profile::Params;
use bellwether_api::v1::report::TargetHealth;
use bellwether_api::v1::slot::AcquireSlot;
use serde_json::json;

use crate::harness::{Installation, policy, problem};

fn entity(name: &str) -> EntityDocument {
    EntityDocument { name: name.to_owned(), selector: "role=web".to_owned(), ..EntityDocument::default() }
}

fn document(entity: EntityDocument) -> Document {
    Document::Entity(Box::new(entity))
}

fn freeze(name: &str) -> FreezeDocument {
    FreezeDocument { name: name.to_owned(), reason: "nobody is in".to_owned(), ..FreezeDocument::default() }
}

fn slot(name: &str) -> SlotDocument {
    SlotDocument { name: name.to_owned(), capacity: Some(2), ..SlotDocument::default() }
}

fn profile(name: &str, workers: u64) -> ProfileDocument {
    let params = Params::from([("workers".to_owned(), json!(workers))]);
    ProfileDocument { name: name.to_owned(), params, ..ProfileDocument::default() }
}

fn pause(name: &str) -> PauseDocument {
    PauseDocument { name: name.to_owned(), nodes: "role=db".to_owned(), ..PauseDocument::default() }
}

fn request(documents: Vec<Document>) -> ApplyRequest {
    ApplyRequest { documents, ..ApplyRequest::default() }
}

async fn apply(client: &Client, documents: Vec<Document>) -> Vec<(String, ApplyOutcome)> {
    outcomes(&client.apply("default", &request(documents)).await.unwrap())
}

fn outcomes(applied: &Applied) -> Vec<(String, ApplyOutcome)> {
    applied.objects.iter().map(|object| (object.object.clone(), object.outcome)).collect()
}

/// The number of the newest event: nothing was written if it stays.
/// The newest event that a person caused; deciders go on with what was applied.
async fn newest_event(client: &Client) -> u64 {
    let events = client.events("default", None, 1_000, std::time::Duration::ZERO).await.unwrap().items;
    let of_people = events.iter().filter(|event| event.actor != "bellwether");
    of_people.map(|event| event.seq).max().unwrap_or_default()
}

fn failing() -> TargetHealth {
    let evidence = Evidence { summary: "status 500".to_owned(), ..Evidence::default() };
    TargetHealth::Failing { evidence }
}

fn one_of_each() -> Vec<Document> {
    let of_profile = EntityDocument {
        profile: Some("greeting".to_owned()),
        version: Some("greeting".to_owned()),
        ..entity("motd")
    };
    vec![
        // Its profile is made by a document behind it.
        document(of_profile),
        document(EntityDocument { version: Some("v1".to_owned()), ..entity("web") }),
        Document::Freeze(FreezeDocument { lasts: Some("4h".to_owned()), ..freeze("holidays") }),
        Document::Pause(pause("disks")),
        Document::Profile(profile("greeting", 4)),
        Document::Slot(slot("reboot")),
    ]
}

#[tokio::test]
async fn documents_of_every_kind_are_applied_once_and_the_same_again_changes_nothing() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let applied = admin.apply("default", &request(one_of_each())).await.unwrap();
    assert!(applied.objects.iter().all(|object| object.outcome == ApplyOutcome::Created), "{applied:?}");
    let rollouts: Vec<Option<&str>> =
        applied.objects.iter().map(|object| object.rollout.as_deref()).collect();
    assert_eq!(rollouts, [Some("greeting@1"), Some("v1"), None, None, None, None]);
    let wanted = admin.entity("default", "web").await.unwrap().requested.unwrap();
    assert_eq!((wanted.version.as_str(), wanted.request), ("v1", 1));

    let before = newest_event(&admin).await;
    let again = admin.apply("default", &request(one_of_each())).await.unwrap();
    assert!(again.objects.iter().all(|object| object.outcome == ApplyOutcome::Unchanged), "{again:?}");
    assert_eq!(newest_event(&admin).await, before, "nothing is written when nothing changes");

    // Exported, it changes nothing either.
    let exported = admin.documents("default").await.unwrap().items;
    assert_eq!(exported.len(), 6);
    let applied = apply(&admin, exported).await;
    assert!(applied.iter().all(|(_, outcome)| *outcome == ApplyOutcome::Unchanged), "{applied:?}");

    let mut changed = one_of_each();
    changed[1] = document(EntityDocument {
        version: Some("v2".to_owned()),
        policy: policy("20%", "1s"),
        owner: "shop team".to_owned(),
        ..entity("web")
    });
    changed[4] = Document::Profile(profile("greeting", 8));
    let applied = admin.apply("default", &request(changed)).await.unwrap();
    let field = |object: usize, name: &str| {
        let field = applied.objects[object].fields.iter().find(|field| field.field == name);
        field.map(|field| (field.old.clone().unwrap_or_default(), field.new.clone().unwrap_or_default()))
    };
    let texts = |old: &str, new: &str| Some((old.to_owned(), new.to_owned()));
    assert_eq!(field(1, "version"), texts("v1", "v2"));
    assert_eq!(field(1, "policy.batch"), texts("5%", "20%"));
    assert_eq!(field(1, "owner"), texts("", "shop team"));
    assert_eq!(field(4, "params.workers"), texts("4", "8"));
    assert_eq!(
        applied.objects[0].rollout.as_deref(),
        Some("greeting@2"),
        "its version is the newest revision"
    );
}

#[tokio::test]
async fn one_invalid_object_among_good_ones_changes_nothing_and_is_named() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let before = newest_event(&admin).await;
    let bad_batch = EntityDocument {
        policy: Policy { batch: Some("lots".to_owned()), ..Policy::default() },
        ..entity("bad")
    };
    let of_two_lines = EntityDocument { description: "a\nb".to_owned(), ..entity("bad") };
    let of_nothing = EntityDocument { profile: Some("ghost".to_owned()), ..entity("bad") };
    let long = FreezeDocument { lasts: Some("0s".to_owned()), ..freeze("bad") };
    let elsewhere = EntityDocument { namespace: Some("other".to_owned()), ..entity("bad") };
    let unlabelled = BTreeMap::from([("1".to_owned(), "x".to_owned())]);
    let run = EntityDocument {
        action: Some("backup".to_owned()),
        version: Some("backup".to_owned()),
        ..entity("bad")
    };
    let cases = [
        (document(bad_batch), Code::Invalid, "entity/bad: policy.batch"),
        (document(of_two_lines), Code::Invalid, "entity/bad: description"),
        (document(of_nothing), Code::Refused, "entity/bad: use profile ghost"),
        (Document::Freeze(long), Code::Invalid, "freeze/bad: lasts"),
        (document(elsewhere), Code::Invalid, "entity/bad: namespace"),
        (
            document(EntityDocument { labels: unlabelled, ..entity("bad") }),
            Code::Invalid,
            "entity/bad: labels.1",
        ),
        (document(run), Code::Invalid, "entity/bad: version"),
        (document(entity("Bad")), Code::Invalid, "entity/Bad: name"),
        (document(entity("web")), Code::Invalid, "entity/web"),
        (
            Document::Slot(SlotDocument { capacity: Some(1_001), ..slot("bad") }),
            Code::Invalid,
            "slot/bad: capacity",
        ),
    ];
    for (bad, code, says) in cases {
        let documents = vec![document(entity("web")), bad, Document::Slot(slot("reboot"))];
        let (found, detail) = problem(admin.apply("default", &request(documents)).await);
        assert!(found == code && detail.contains(says), "{says}: {found:?} {detail}");
    }
    assert_eq!(problem(admin.apply("default", &request(Vec::new())).await).0, Code::Invalid);
    assert_eq!(newest_event(&admin).await, before, "something was written");
    assert!(admin.documents("default").await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_dry_run_answers_the_same_and_changes_nothing() {
    let installation = Installation::new().await;
    let (admin, viewer) = (installation.admin(), installation.token("viewer").await);
    let dry = ApplyRequest { dry_run: true, ..request(one_of_each()) };
    let before = newest_event(&admin).await;
    let planned = viewer.apply("default", &dry).await.unwrap();
    assert!(planned.dry_run);
    assert_eq!(newest_event(&admin).await, before);
    assert!(admin.documents("default").await.unwrap().items.is_empty());
    let done = admin.apply("default", &request(one_of_each())).await.unwrap();
    assert_eq!(planned.objects, done.objects);
}

#[tokio::test]
async fn each_document_needs_the_right_of_its_operation() {
    let installation = Installation::new().await;
    let (viewer, operator) = (installation.token("viewer").await, installation.token("operator").await);
    let (code, detail) = problem(viewer.apply("default", &request(one_of_each())).await);
    assert!(
        code == Code::Forbidden
            && detail.contains("entity/motd: this needs the right update entity/motd in default"),
        "{detail}"
    );
    let global = Document::Freeze(FreezeDocument { all_namespaces: true, ..freeze("everywhere") });
    let documents = vec![document(entity("web")), global];
    let (code, detail) = problem(operator.apply("default", &request(documents.clone())).await);
    assert!(
        code == Code::Forbidden
            && detail.contains("freeze/everywhere: this needs the right update global-freeze/everywhere"),
        "{detail}"
    );
    assert!(operator.documents("default").await.unwrap().items.is_empty());
    apply(&operator, one_of_each()).await;
    apply(&installation.admin(), documents).await;
    let exported = installation.admin().documents("default").await.unwrap().items;
    assert_eq!(exported.iter().filter(|document| document.is_global()).count(), 1);
}

fn labelled() -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), "shop".to_owned())])
}

fn pruning(documents: Vec<Document>, dry_run: bool) -> ApplyRequest {
    ApplyRequest { documents, dry_run, prune: Some(labelled()) }
}

#[tokio::test]
async fn pruning_deletes_what_an_apply_made_under_the_labels_and_no_document_names() {
    let installation = Installation::new().await;
    let (admin, operator) = (installation.admin(), installation.token("operator").await);
    let labels = labelled();
    let web = || document(EntityDocument { labels: labels.clone(), ..entity("web") });
    let of_profile =
        EntityDocument { profile: Some("greeting".to_owned()), labels: labels.clone(), ..entity("motd") };
    let other = BTreeMap::from([("app".to_owned(), "mail".to_owned())]);
    let documents = vec![
        web(),
        document(of_profile),
        Document::Profile(ProfileDocument { labels: labels.clone(), ..profile("greeting", 4) }),
        Document::Freeze(FreezeDocument { labels: labels.clone(), ..freeze("holidays") }),
        Document::Pause(PauseDocument { labels: labels.clone(), ..pause("disks") }),
        Document::Slot(SlotDocument {
            name: "reboot".to_owned(),
            labels: labels.clone(),
            ..SlotDocument::default()
        }),
    ];
    apply(&admin, documents).await;
    let mail =
        vec![document(EntityDocument { labels: other, ..entity("mail") }), Document::Freeze(freeze("bare"))];
    apply(&admin, mail).await;
    let by_hand = FreezeSpec { reason: "by hand".to_owned(), ..FreezeSpec::default() };
    admin.set_freeze(Some("default"), "by-hand", &by_hand).await.unwrap();

    // A document without the labels would never be pruned itself.
    let (code, detail) =
        problem(admin.apply("default", &pruning(vec![document(entity("web"))], false)).await);
    assert!(code == Code::Invalid && detail.contains("entity/web: labels: missing app=shop"), "{detail}");

    let (code, detail) = problem(operator.apply("default", &pruning(vec![web()], false)).await);
    assert!(code == Code::Forbidden && detail.contains("prune entity/motd"), "{detail}");
    let planned = operator.apply("default", &pruning(vec![web()], true)).await.unwrap();
    let done = admin.apply("default", &pruning(vec![web()], false)).await.unwrap();
    assert_eq!(planned.objects, done.objects);
    let pruned: Vec<String> = outcomes(&done).into_iter().skip(1).map(|(object, _)| object).collect();
    assert_eq!(pruned, ["freeze/holidays", "pause/disks", "entity/motd", "slot/reboot", "profile/greeting"]);
    let left: Vec<String> =
        admin.documents("default").await.unwrap().items.iter().map(|it| it.name().to_owned()).collect();
    assert_eq!(left, ["mail", "web", "bare", "by-hand"]);
    assert_eq!(outcomes(&admin.apply("default", &pruning(vec![web()], false)).await.unwrap()).len(), 1);

    // What is set by hand in its place is no longer what was applied; without labels an object is let be.
    let unlabelled = admin.apply("default", &request(vec![document(entity("web"))])).await.unwrap();
    assert_eq!(
        unlabelled.objects[0].fields.iter().map(|field| field.field.as_str()).collect::<Vec<_>>(),
        ["labels.app"]
    );
    assert!(admin.entity("default", "web").await.unwrap().labels.is_empty());
}

#[tokio::test]
async fn what_cannot_be_deleted_is_not_pruned_and_nothing_else_is_either() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let held = SlotDocument { labels: labelled(), ..slot("reboot") };
    apply(
        &admin,
        vec![Document::Slot(held), document(EntityDocument { labels: labelled(), ..entity("old") })],
    )
    .await;
    let acquire = AcquireSlot { holder: "me".to_owned(), ..AcquireSlot::default() };
    admin.acquire_slot("default", "reboot", &acquire).await.unwrap();
    let web = document(EntityDocument { labels: labelled(), ..entity("web") });
    let (code, detail) = problem(admin.apply("default", &pruning(vec![web], false)).await);
    assert!(code == Code::Refused && detail.contains("slot reboot"), "{detail}");
    assert!(admin.entity("default", "old").await.is_ok());
    assert_eq!(problem(admin.entity("default", "web").await).0, Code::NotFound);
}

#[tokio::test]
async fn what_one_transaction_does_not_take_is_applied_in_several() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let many =
        |count: usize| (0..count).map(|number| Document::Slot(slot(&format!("slot-{number}")))).collect();
    let dry = ApplyRequest { dry_run: true, ..request(many(64)) };
    assert_eq!(
        admin.apply("default", &dry).await.unwrap().transactions,
        2,
        "a slot takes 2 of 128 operations"
    );
    assert!(admin.documents("default").await.unwrap().items.is_empty());
    assert_eq!(admin.apply("default", &request(many(63))).await.unwrap().transactions, 1);
    let applied = admin.apply("default", &request(many(64))).await.unwrap();
    let created = |applied: &Applied| {
        outcomes(applied).iter().filter(|(_, outcome)| *outcome == ApplyOutcome::Created).count()
    };
    assert_eq!((applied.transactions, created(&applied)), (1, 1), "what stays as it is takes no room");
    let applied = admin.apply("default", &request(many(200))).await.unwrap();
    assert_eq!((applied.transactions, created(&applied)), (3, 136));
    let applied = admin.apply("default", &request(many(200))).await.unwrap();
    assert_eq!((applied.transactions, created(&applied)), (0, 0));

    // All or nothing, as far as it can be known before: the last object cannot be set.
    let mut wrong: Vec<Document> =
        (0..80).map(|name| Document::Slot(slot(&format!("other-{name}")))).collect();
    wrong.push(document(EntityDocument { profile: Some("missing".to_owned()), ..entity("web") }));
    assert!(admin.apply("default", &request(wrong)).await.is_err());
    assert_eq!(admin.documents("default").await.unwrap().items.len(), 200);
}

fn large(name: usize) -> Document {
    let params = Params::from([("text".to_owned(), json!("x".repeat(60_000)))]);
    Document::Profile(ProfileDocument { name: format!("large-{name}"), params, ..ProfileDocument::default() })
}

#[tokio::test]
async fn more_than_three_megabytes_are_applied_exported_and_applied_elsewhere() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let mut documents: Vec<Document> = (0..58).map(large).collect();
    documents.extend(one_of_each());
    let applied = admin.apply("default", &request(documents)).await.unwrap();
    assert!(applied.transactions >= 4, "{}", applied.transactions);
    assert!(applied.objects.iter().all(|object| object.outcome == ApplyOutcome::Created));
    assert_eq!(applied.objects.first().unwrap().object, "profile/large-0", "in the documents' order");
    let exported = admin.documents("default").await.unwrap().items;
    assert!(serde_json::to_vec(&exported).unwrap().len() > 3_000_000);
    let again = admin.apply("default", &request(exported.clone())).await.unwrap();
    assert_eq!(again.transactions, 0);
    assert!(again.objects.iter().all(|object| object.outcome == ApplyOutcome::Unchanged));
    let other = Installation::new().await;
    other.admin().apply("default", &request(exported.clone())).await.unwrap();
    assert_eq!(other.admin().documents("default").await.unwrap().items, exported);
    let beyond = request((0..300).map(large).collect());
    let (code, detail) = problem(admin.apply("default", &beyond).await);
    assert!(code == Code::TooLarge && detail.contains("16777216"), "{detail}");
}

#[tokio::test]
async fn two_that_apply_the_same_objects_at_once_both_succeed_and_one_of_them_wins_whole() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let documents = |version: &str| {
        let of = |name| document(EntityDocument { version: Some(version.to_owned()), ..entity(name) });
        vec![of("a"), of("b"), of("c"), Document::Slot(slot("reboot"))]
    };
    for round in 0..10 {
        let (one, other) = (format!("one-{round}"), format!("other-{round}"));
        let (first, second) = (request(documents(&one)), request(documents(&other)));
        let (first, second) = tokio::join!(admin.apply("default", &first), admin.apply("default", &second));
        first.unwrap();
        second.unwrap();
        let mut versions = Vec::new();
        for name in ["a", "b", "c"] {
            versions.push(admin.entity("default", name).await.unwrap().requested.unwrap().version);
        }
        versions.dedup();
        assert!(versions.len() == 1 && [one, other].contains(&versions[0]), "{versions:?}");
    }
}
