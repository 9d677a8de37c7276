//! Ensembles over the API: what is refused and warned of, what would happen, and what becomes of members when one is deleted.

use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::{ApplyOutcome, ApplyRequest};
use bellwether_api::v1::ensemble::members::MemberPhase;
use bellwether_api::v1::ensemble::requests::{ReplaceMember, ResumeEnsemble, RollMembers};
use bellwether_api::v1::ensemble::service::{EtcdSpec, ServiceAgentSpec};
use bellwether_api::v1::ensemble::snapshots::{SnapshotSpec, TakeSnapshot};
use bellwether_api::v1::ensemble::status::EnsembleAction;
use bellwether_api::v1::ensemble::{EnsembleMode, EnsembleSize, EnsembleSpec, PlanEnsemble, ScaleEnsemble};
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use bellwether_server::run::Server;
use bellwether_store::{Op, Store, Txn};
use serde_json::json;

use crate::harness::{Installation, problem};

fn etcd(size: u32, filter: &str) -> EnsembleSpec {
    EnsembleSpec {
        service: ServiceAgentSpec { etcd: Some(EtcdSpec::default()), ..ServiceAgentSpec::default() },
        size: Some(EnsembleSize::Number(size)),
        filter: filter.to_owned(),
        ..EnsembleSpec::default()
    }
}

fn with_ports(client_port: u32, peer_port: u32, spec: EnsembleSpec) -> EnsembleSpec {
    let etcd = EtcdSpec { client_port: Some(client_port), peer_port: Some(peer_port), tls: None };
    EnsembleSpec { service: ServiceAgentSpec { etcd: Some(etcd), ..ServiceAgentSpec::default() }, ..spec }
}

async fn set(client: &Client, name: &str, spec: &EnsembleSpec) -> String {
    client.set_ensemble("default", name, spec).await.unwrap().warning.unwrap_or_default()
}

async fn why(client: &Client, subject: &str) -> String {
    client.why("default", subject).await.unwrap().lines.join("\n")
}

/// Records three members of the ensemble `store` that vote, on the nodes db-1 to db-3, while the server is stopped.
async fn with_members(installation: &mut Installation) {
    installation.server.take().unwrap().stop().await.unwrap();
    let member = |number: u64| {
        json!({"number": number, "node": format!("db-{number}"), "phase": "voting", "since_ms": 1,
               "store_id": format!("a{number}"), "peer_url": format!("https://10.0.0.{number}:2380")})
    };
    let record = json!({"ensemble": "store", "identity": "store-1", "last": 3,
                        "service": {"etcd": {"client_port": 2379, "peer_port": 2380}}, "is_bootstrapped": true,
                        "members": [member(1), member(2), member(3)]});
    let put = |key: String, schema: &str, record: serde_json::Value| {
        let value = json!({"schema": schema, "record": record}).to_string();
        Op::Put { key: format!("/bw/ns/default/{key}").into(), value: value.into(), lease: None }
    };
    let mut ops = vec![put("ensemble-members/store".to_owned(), "ensemble-members.v1", record)];
    for number in 1..=3 {
        let node = format!("db-{number}");
        let member = json!({"number": number, "identity": "store-1", "state": "working", "since_ms": 1});
        let reported = json!({"node": node, "members": {"store": member}});
        ops.push(put(format!("node-members/{node}"), "node-members.v1", reported));
    }
    let tasks = Tasks::new();
    let store = Store::embedded(&installation.store_file(), &tasks).unwrap();
    store.commit(Txn { compares: vec![], ops }).await.unwrap();
    store.close().await;
    installation.server = Some(Server::start(&installation.config, Clock::system()).await.unwrap());
}

/// An installation with three nodes and an ensemble with a member on each, which nobody changes.
pub(crate) async fn with_store() -> Installation {
    let mut installation = Installation::new().await;
    for name in ["db-1", "db-2", "db-3"] {
        installation.node(name).await;
    }
    let spec = EnsembleSpec { mode: Some(EnsembleMode::Unmanaged), ..etcd(3, "all") };
    assert_eq!(set(&installation.admin(), "store", &spec).await, "");
    with_members(&mut installation).await;
    installation
}

#[tokio::test]
async fn what_cannot_be_an_ensemble_is_refused_with_its_field() {
    let installation = Installation::new().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    let spread = EnsembleSpec { spread: Some("a b".to_owned()), ..etcd(3, "all") };
    let quick = EnsembleSpec { failover_after: Some("1s".to_owned()), ..etcd(3, "all") };
    for (spec, said) in [
        (etcd(0, "all"), "size: 0; write 1 to 7 or quorum"),
        (etcd(8, "all"), "size: 8; write 1 to 7 or quorum"),
        (etcd(3, " "), "filter: missing"),
        (etcd(3, "role="), "filter:"),
        (with_ports(2380, 2380, etcd(3, "all")), "service.etcd.peer_port: 2380"),
        (with_ports(70_000, 2380, etcd(3, "all")), "service.etcd.client_port: 70000; write 1 to 65535"),
        (EnsembleSpec { service: ServiceAgentSpec::default(), ..etcd(3, "all") }, "service: missing"),
        (spread, "spread:"),
        (quick, "failover_after: 1s; write 30s to 7d"),
    ] {
        let (code, detail) = problem(admin.set_ensemble("default", "store", &spec).await);
        assert!(code == Code::Invalid && detail.contains(said), "{said}: {detail}");
    }
    let path = "/v1/namespaces/default/ensembles/store";
    let unknown = json!({"service": {"etcd": {"port": 1}}, "filter": "all"});
    let answer = admin.send::<_, serde_json::Value>(http::Method::PUT, path, &unknown, crate::harness::SOON);
    let (code, detail) = problem(answer.await);
    assert!(
        code == Code::Invalid && detail.contains("service.etcd") && detail.contains("`port`"),
        "{detail}"
    );
    assert!(admin.ensembles("default").await.unwrap().items.is_empty());
}

#[tokio::test]
async fn what_may_not_be_meant_is_accepted_with_a_warning() {
    let installation = Installation::new().await;
    for name in ["db-1", "db-2"] {
        installation.node(name).await;
    }
    let admin = installation.admin();
    assert_eq!(set(&admin, "store", &etcd(3, "role=web")).await, "");
    let even = set(&admin, "store", &etcd(4, "role=web")).await;
    assert!(even.contains("4 members bear as many failures as 3"), "{even}");
    let nobody = set(&admin, "other", &with_ports(1, 2, etcd(3, "role=db"))).await;
    assert!(nobody.contains("the filter role=db matches 0 of 2 nodes"), "{nobody}");
    let unknown = set(&admin, "other", &with_ports(1, 2, etcd(3, "rack=a"))).await;
    assert!(unknown.contains(r#"the filter tests label["rack"], which no node has"#), "{unknown}");
    let spread = EnsembleSpec { spread: Some("rack".to_owned()), ..with_ports(1, 2, etcd(3, "all")) };
    let spread = set(&admin, "other", &spread).await;
    assert!(spread.contains("none of the nodes that match has the label rack"), "{spread}");
    let shared = set(&admin, "other", &with_ports(2380, 1, etcd(3, "name=db-1"))).await;
    let said = "ensemble store uses client_port 2380, too, and 1 node matches both filters";
    assert!(shared.contains(said), "{shared}");
    // On other nodes it may have the port.
    set(&admin, "store", &etcd(3, "name=db-2")).await;
    assert_eq!(set(&admin, "other", &with_ports(2380, 1, etcd(3, "name=db-1"))).await, "");
}

#[tokio::test]
async fn an_ensemble_is_changed_at_the_revision_that_is_named_and_events_tell_of_it() {
    let installation = Installation::new().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    let first = admin.only_at(0).set_ensemble("default", "store", &etcd(3, "all")).await.unwrap();
    let same = admin.set_ensemble("default", "store", &etcd(3, "all")).await.unwrap();
    assert_eq!(same.revision, first.revision, "the same again changes nothing");
    let (code, _) = problem(admin.only_at(0).set_ensemble("default", "store", &etcd(5, "all")).await);
    assert_eq!(code, Code::Conflict);
    let scale = ScaleEnsemble { size: EnsembleSize::Number(5), reason: "more to do".to_owned() };
    let (code, _) =
        problem(admin.only_at(first.revision + 1).scale_ensemble("default", "store", &scale).await);
    assert_eq!(code, Code::Conflict);
    let scaled = admin.only_at(first.revision).scale_ensemble("default", "store", &scale).await.unwrap();
    assert_eq!((scaled.size, scaled.revision), (EnsembleSize::Number(5), first.revision + 1));
    admin.delete_ensemble("default", "store").await.unwrap();
    assert_eq!(problem(admin.ensemble("default", "store").await).0, Code::NotFound);
    assert_eq!(problem(admin.scale_ensemble("default", "store", &scale).await).0, Code::NotFound);
    assert_eq!(problem(admin.delete_ensemble("default", "store").await).0, Code::NotFound);
    let events = admin.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    let about: Vec<_> = events.iter().filter(|event| event.subject == "ensemble/store").collect();
    let kinds: Vec<&str> = about.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["ensemble.created", "ensemble.changed", "ensemble.deleted"]);
    assert_eq!(about[1].cause, "more to do");
    assert!(about[1].after.as_deref().unwrap().contains("size 5"), "{:?}", about[1]);
}

#[tokio::test]
async fn the_members_are_shown_and_a_plan_says_which_ones_another_size_removes() {
    let installation = with_store().await;
    let admin = installation.admin();
    let shown = admin.ensemble("default", "store").await.unwrap().status.unwrap();
    assert_eq!((shown.wanted, shown.voting, shown.is_complete), (3, 3, false), "it is not managed");
    let third = shown.members.last().unwrap();
    assert_eq!((third.number, third.node.as_str(), third.state), (3, "db-3", MemberPhase::Voting));
    assert_eq!(
        third.store_id.as_deref().zip(third.peer_url.as_deref()),
        Some(("a3", "https://10.0.0.3:2380"))
    );
    assert!(shown.waiting.unwrap().contains("its mode is unmanaged"));
    assert_eq!(shown.refused, 3);
    assert_eq!(shown.refusals[0].reason, "it has never connected");
    let listed = admin.ensembles("default").await.unwrap().items.pop().unwrap().status.unwrap();
    assert!(listed.is_complete && listed.voting == 3 && listed.steps.is_empty());

    let asked = PlanEnsemble { spec: Some(etcd(1, "all")), ..PlanEnsemble::default() };
    let planned = admin.plan_ensemble("default", "store", &asked).await.unwrap();
    let steps = planned.status.unwrap().steps;
    let removed: Vec<u64> = steps.iter().map(|step| step.member).collect();
    assert_eq!(removed, [3, 2]);
    assert!(steps.iter().all(|step| step.action == EnsembleAction::Remove));
    assert!(steps[0].text.contains("db-3 is removed: there are more members than are wanted"), "{steps:?}");
    let now = admin.ensemble("default", "store").await.unwrap();
    assert_eq!(
        (now.size, now.revision),
        (EnsembleSize::Number(3), planned.revision - 1),
        "nothing is written"
    );
    let resized = PlanEnsemble { size: Some(EnsembleSize::Number(9)), ..PlanEnsemble::default() };
    let (code, detail) = problem(admin.plan_ensemble("default", "store", &resized).await);
    assert!(code == Code::Invalid && detail.contains("size: 9; write 1 to 7"), "{detail}");
    let both = PlanEnsemble { size: Some(EnsembleSize::Number(1)), ..asked };
    assert_eq!(problem(admin.plan_ensemble("default", "store", &both).await).0, Code::Invalid);
    for asked in [PlanEnsemble::default(), PlanEnsemble { delete: true, ..PlanEnsemble::default() }] {
        assert_eq!(problem(admin.plan_ensemble("default", "none", &asked).await).0, Code::NotFound);
    }
    let deleted = PlanEnsemble { delete: true, ..PlanEnsemble::default() };
    let may_be = admin.plan_ensemble("default", "store", &deleted).await.unwrap();
    assert_eq!((may_be.revision, may_be.status.unwrap().members.len()), (now.revision, 3));
    let both = PlanEnsemble { delete: true, ..resized };
    assert_eq!(problem(admin.plan_ensemble("default", "store", &both).await).0, Code::Invalid);

    let said = why(&admin, "ensemble/store").await;
    for part in [
        "3 members vote of 3 that there are to be",
        "member 2 on node db-2 is voting for",
        "it waits: its mode is unmanaged",
        "node db-1 cannot get a member: it has never connected",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test]
async fn whoever_may_not_change_an_ensemble_asks_only_about_other_sizes() {
    let installation = with_store().await;
    let viewer = installation.token("viewer").await;
    let resized = PlanEnsemble { size: Some(EnsembleSize::Number(1)), ..PlanEnsemble::default() };
    let planned = viewer.plan_ensemble("default", "store", &resized).await.unwrap();
    assert_eq!(planned.size, EnsembleSize::Number(1));
    let other = PlanEnsemble { spec: Some(etcd(1, "all")), ..PlanEnsemble::default() };
    let (code, detail) = problem(viewer.plan_ensemble("default", "store", &other).await);
    assert!(code == Code::Forbidden && detail.contains("update ensemble/store"), "{detail}");
}

#[tokio::test]
async fn the_ports_of_members_stay_and_those_of_an_ensemble_without_members_may_change() {
    let installation = with_store().await;
    let admin = installation.admin();
    let spec = with_ports(2390, 2380, etcd(3, "all"));
    let (code, detail) = problem(admin.set_ensemble("default", "store", &spec).await);
    let said = "service.etcd.client_port: 2390; ensemble store has members with client_port 2379 (3 on nodes db-1, db-2, db-3)";
    assert!(code == Code::Invalid && detail.contains(said), "{detail}");
    set(&admin, "other", &with_ports(1, 2, etcd(1, "all"))).await;
    assert_eq!(set(&admin, "other", &with_ports(3, 4, etcd(1, "all"))).await, "");
}

#[tokio::test]
async fn the_members_of_a_deleted_ensemble_leave_and_keep_its_name_until_they_have() {
    let installation = with_store().await;
    let admin = installation.admin();
    admin.delete_ensemble("default", "store").await.unwrap();
    assert_eq!(problem(admin.ensemble("default", "store").await).0, Code::NotFound);
    let said = why(&admin, "ensemble/store").await;
    for part in [
        "it was deleted, and its former members are leaving: 3 on nodes db-1, db-2, db-3",
        "member 1 on node db-1 is removed for",
        "the ensemble was deleted",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (code, detail) = problem(admin.set_ensemble("default", "store", &etcd(3, "all")).await);
    let still = "its former members are still leaving: 3 on nodes db-1, db-2, db-3";
    assert!(code == Code::Refused && detail.contains(still), "{detail}");
    let events = admin.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    let deleted = events.iter().find(|event| event.kind == "ensemble.deleted").unwrap();
    assert!(deleted.cause.contains("its 3 members stop; their data are set aside"), "{deleted:?}");
    let (code, _) = problem(admin.why("default", "ensemble/none").await);
    assert_eq!(code, Code::NotFound);
}

#[tokio::test]
async fn an_apply_never_deletes_an_ensemble() {
    let installation = Installation::new().await;
    installation.node("db-1").await;
    let admin = installation.admin();
    let labels = json!({"app": "shop"});
    let document = |name: &str| json!({"kind": "ensemble", "name": name, "labels": labels, "service": {"etcd": {}}, "filter": "rack=a"});
    let request = |documents: serde_json::Value| ApplyRequest {
        documents: serde_json::from_value(documents).unwrap(),
        prune: Some(serde_json::from_value(labels.clone()).unwrap()),
        ..ApplyRequest::default()
    };
    let first = admin.apply("default", &request(json!([document("store")]))).await.unwrap();
    let note = first.objects[0].note.clone().unwrap();
    assert!(note.contains(r#"the filter tests label["rack"], which no node has"#), "{note}");
    let slot = json!([{"kind": "slot", "name": "reboot", "labels": labels}]);
    for dry_run in [true, false] {
        let request = ApplyRequest { dry_run, ..request(slot.clone()) };
        let applied = admin.apply("default", &request).await.unwrap();
        let kept = applied.objects.last().unwrap();
        assert_eq!((kept.object.as_str(), kept.outcome), ("ensemble/store", ApplyOutcome::Unchanged));
        assert!(kept.note.as_deref().unwrap().contains("bellwether ensemble delete store"), "{kept:?}");
    }
    let shown = admin.ensemble("default", "store").await.unwrap();
    assert_eq!(shown.labels["app"], "shop");
    // Labels alone make no new revision.
    let mut other = document("store");
    other["labels"] = json!({"app": "bank"});
    let plain = ApplyRequest {
        documents: serde_json::from_value(json!([other])).unwrap(),
        ..ApplyRequest::default()
    };
    admin.apply("default", &plain).await.unwrap();
    let after = admin.ensemble("default", "store").await.unwrap();
    assert_eq!((after.revision, after.labels["app"].as_str()), (shown.revision, "bank"));
}

#[tokio::test]
async fn who_may_replace_a_member_and_why_it_may_not_be_is_said_before_anything_is_recorded() {
    let installation = with_store().await;
    let (admin, viewer) = (installation.admin(), installation.token("viewer").await);
    let request = |member| ReplaceMember { member, ..ReplaceMember::default() };
    let (code, detail) = problem(viewer.replace_member("default", "store", &request(2)).await);
    assert!(code == Code::Forbidden && detail.contains("update:/members"), "{detail}");
    let (code, detail) = problem(admin.replace_member("default", "store", &request(2)).await);
    let said = "replace member 2 of ensemble store: the mode of the ensemble is unmanaged";
    assert!(code == Code::Refused && detail.contains(said), "{detail}");
    assert_eq!(problem(admin.replace_member("default", "store", &request(9)).await).0, Code::NotFound);
    assert_eq!(problem(admin.replace_member("default", "none", &request(1)).await).0, Code::NotFound);
    set(&admin, "store", &etcd(3, "all")).await;
    let asked = PlanEnsemble { replace: Some(2), ..PlanEnsemble::default() };
    let (code, detail) = problem(admin.plan_ensemble("default", "store", &asked).await);
    let said = "it works, and no other node may have a member in its place";
    assert!(code == Code::Refused && detail.contains(said), "{detail}");
    let both = PlanEnsemble { size: Some(EnsembleSize::Number(3)), ..asked };
    assert_eq!(problem(admin.plan_ensemble("default", "store", &both).await).0, Code::Invalid);
    let withdrawn = ReplaceMember { withdraw: true, ..request(2) };
    admin.replace_member("default", "store", &withdrawn).await.unwrap();
    let events = admin.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    assert!(events.iter().all(|event| !event.kind.starts_with("ensemble.replace")), "nothing was asked");
    let restart = RollMembers { reason: "a new etcd".to_owned(), ..RollMembers::default() };
    assert_eq!(problem(viewer.restart_ensemble("default", "store", &restart).await).0, Code::Forbidden);
    admin.restart_ensemble("default", "store", &restart).await.unwrap();
    let said = why(&admin, "ensemble/store").await;
    assert!(
        said.contains("its members are restarted one after the other") && said.contains("a new etcd"),
        "{said}"
    );
    let defragment = RollMembers::default();
    let (code, detail) = problem(admin.defragment_ensemble("default", "store", &defragment).await);
    assert!(code == Code::Refused && detail.contains("its members are being restarted"), "{detail}");
    let withdraw = RollMembers { withdraw: true, ..restart };
    admin.restart_ensemble("default", "store", &withdraw).await.unwrap();
    assert!(!why(&admin, "ensemble/store").await.contains("restarted"));
    assert_eq!(problem(viewer.defragment_ensemble("default", "store", &defragment).await).0, Code::Forbidden);
    let resume = ResumeEnsemble::default();
    assert_eq!(problem(viewer.resume_ensemble("default", "store", &resume).await).0, Code::Forbidden);
    admin.resume_ensemble("default", "store", &resume).await.unwrap();
    admin.defragment_ensemble("default", "store", &defragment).await.unwrap();
    let said = why(&admin, "ensemble/store").await;
    assert!(said.contains("its members are defragmented one after the other"), "{said}");
    admin.defragment_ensemble("default", "store", &withdraw).await.unwrap();
    assert!(!why(&admin, "ensemble/store").await.contains("defragmented"));
}

#[tokio::test]
async fn a_snapshot_is_refused_where_nobody_may_take_one_and_asked_for_once() {
    let installation = with_store().await;
    let (admin, viewer) = (installation.admin(), installation.token("viewer").await);
    let request = TakeSnapshot::default();
    let (code, detail) = problem(viewer.snapshot_ensemble("default", "store", &request).await);
    assert!(code == Code::Forbidden && detail.contains("update:/snapshots"), "{detail}");
    let (code, detail) = problem(admin.snapshot_ensemble("default", "store", &request).await);
    let said = "take a snapshot of ensemble store: the mode of the ensemble is unmanaged";
    assert!(code == Code::Refused && detail.contains(said), "{detail}");
    let often = SnapshotSpec { every: Some("1s".to_owned()), keep: None };
    let none = SnapshotSpec { every: None, keep: Some(0) };
    for (snapshots, said) in
        [(often, "snapshots.every: 1s; write 1m to 365d"), (none, "snapshots.keep: 0; write 1 to 100")]
    {
        let spec = EnsembleSpec { snapshots: Some(snapshots), ..etcd(3, "all") };
        let (code, detail) = problem(admin.set_ensemble("default", "store", &spec).await);
        assert!(code == Code::Invalid && detail.contains(said), "{detail}");
    }
    set(&admin, "store", &etcd(3, "all")).await;
    for _ in 0..2 {
        admin.snapshot_ensemble("default", "store", &request).await.unwrap();
    }
    let events = admin.events("default", Some(0), 1_000, Duration::ZERO).await.unwrap().items;
    let asked = events.iter().filter(|event| event.kind == "ensemble.snapshot_requested").count();
    assert_eq!(asked, 1);
    let said = why(&admin, "ensemble/store").await;
    assert!(said.contains("takes snapshot 1 for") || said.contains("a snapshot is to be taken"), "{said}");
}
