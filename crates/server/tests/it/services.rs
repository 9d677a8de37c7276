//! Services: registrations of nodes, and the catalogue for people and for agents' copies.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::node::{Drain, DrainRequest};
use bellwether_api::v1::registrations::{ServiceRegistration, ServiceRegistrations};
use bellwether_api::v1::service::{self, CatalogueUpdate};
use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::log::CatalogueChange;

use crate::harness::{Installation, Node, SOON, policy, problem, set_entity, version};

fn registrations(node: &Node, instances: &[(&str, &str)]) -> ServiceRegistrations {
    let registration = |(service, level): &(&str, &str)| ServiceRegistration {
        service: (*service).to_owned(),
        name: "one".to_owned(),
        port: Some(80),
        status: level.parse().unwrap(),
        reason: if *level == "passing" { String::new() } else { "check web: refused".to_owned() },
        addresses: None,
        tags: BTreeSet::new(),
        meta: BTreeMap::new(),
        entity: None,
        waits_for: BTreeSet::new(),
        since_ms: 0,
    };
    let address = "10.0.0.7".parse().unwrap();
    ServiceRegistrations {
        node: node.name.clone(),
        addresses: BTreeMap::from([("eth0".to_owned(), vec![address])]),
        instances: instances.iter().map(registration).collect(),
    }
}

async fn registration(node: &Node, instances: &[(&str, &str)]) {
    node.client.registration("default", &registrations(node, instances)).await.unwrap();
}

/// A node's order poll, for the catalogue alone.
async fn sync(node: &Node, index: u64, wait: Duration) -> Option<CatalogueUpdate> {
    let answer = node.client.sync("default", &node.name, (u64::MAX, Some(index)), wait).await;
    answer.unwrap().catalogue
}

/// Waits until a condition holds for a service.
async fn until(client: &Client, name: &str, addressable: usize, functional: usize) {
    let looking = async {
        let mut index = 0;
        loop {
            let view = client.service("default", name, Some(index), Duration::from_secs(1)).await.unwrap();
            if (view.addressable, view.functional) == (addressable, functional) {
                return;
            }
            index = view.revision;
        }
    };
    tokio::time::timeout(SOON, looking).await.expect("the service never looked as expected");
}

#[tokio::test]
async fn as_many_services_as_a_node_may_have_arrive_in_one_request_and_go_in_one() {
    let installation = Installation::patient().await;
    let (admin, node) = (installation.admin(), installation.node("web-1").await);
    let names: Vec<String> = (0..256).map(|number| format!("s{number}")).collect();
    let all: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "passing")).collect();
    registration(&node, &all).await;
    let count =
        async || admin.services("default").await.unwrap().items.iter().map(|s| s.addressable).sum::<usize>();
    assert_eq!(count().await, 256);
    registration(&node, &[]).await;
    assert_eq!(count().await, 0);
}

#[tokio::test]
async fn what_a_node_offers_is_listed_and_goes_with_it() {
    let mut installation = Installation::new().await;
    let admin = installation.admin();
    let (one, two) = (installation.node("web-1").await, installation.node("web-2").await);
    one.client.report("default", &one.empty_report()).await.unwrap();
    two.client.report("default", &two.empty_report()).await.unwrap();
    let first = tokio::time::timeout(SOON, sync(&one, 0, Duration::from_secs(2))).await.unwrap();
    assert!(first.is_none_or(|update| update.changes.is_empty()), "nothing was offered yet");
    registration(&one, &[("web", "passing"), ("db", "failing")]).await;
    registration(&two, &[("web", "warning")]).await;
    // Nodes without a session are not up; one short poll is a session.
    drop(sync(&two, 0, Duration::from_millis(1)).await);
    until(&admin, "web", 2, 2).await;
    until(&admin, "db", 1, 0).await;
    let view = admin.service("default", "db", None, Duration::ZERO).await.unwrap();
    let instance = view.instances.first().unwrap();
    assert_eq!((instance.status.as_str(), instance.reason.as_str()), ("failing", "check web: refused"));
    assert_eq!(instance.addresses["eth0"], ["10.0.0.7".parse::<std::net::IpAddr>().unwrap()]);
    let names: Vec<String> =
        admin.services("default").await.unwrap().items.into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["db", "web"]);

    registration(&one, &[("web", "passing")]).await;
    until(&admin, "db", 0, 0).await;
    admin.decommission_node("default", "web-2", "old").await.unwrap();
    until(&admin, "web", 1, 1).await;
    let (code, _) =
        problem(two.client.registration("default", &registrations(&two, &[("web", "passing")])).await);
    assert!(matches!(code, Code::NotFound | Code::Decommissioned | Code::Forbidden), "{code:?}");

    installation.restart().await;
    let admin = installation.admin();
    let view = admin.service("default", "db", None, Duration::ZERO).await.unwrap();
    assert_eq!(view.addressable, 0, "a name that was heard of is known after a restart");
    let (code, detail) = problem(admin.service("default", "wbe", None, Duration::ZERO).await);
    assert_eq!(code, Code::NotFound);
    assert!(detail.contains("it was never registered"), "{detail}");
    let events = admin.events("default", None, 100, Duration::ZERO).await.unwrap().items;
    let kinds: Vec<&str> = events
        .iter()
        .filter(|event| event.subject == "service/db/web-1/one")
        .map(|event| event.kind.as_str())
        .collect();
    assert_eq!(kinds, ["service.registered", "service.deregistered"]);
}

#[tokio::test]
async fn a_service_is_forgotten_on_request_once_it_has_no_instances() {
    let mut installation = Installation::new().await;
    let (admin, viewer) = (installation.admin(), installation.token("viewer").await);
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    registration(&node, &[("web", "passing")]).await;
    until(&admin, "web", 1, 1).await;
    let (code, detail) = problem(admin.forget_service("default", "web").await);
    assert_eq!((code, detail.as_str()), (Code::Refused, "cannot forget service web: it has 1 instance"));
    registration(&node, &[]).await;
    until(&admin, "web", 0, 0).await;
    assert_eq!(problem(viewer.forget_service("default", "web").await).0, Code::Forbidden);
    admin.forget_service("default", "web").await.unwrap();
    let update = tokio::time::timeout(SOON, sync(&node, 0, Duration::from_secs(2))).await.unwrap().unwrap();
    let forgotten = service::CatalogueChange::ServiceForgotten { service: "web".to_owned() };
    assert_eq!(update.changes.last(), Some(&forgotten), "{update:?}");
    assert_eq!(problem(admin.forget_service("default", "web").await).0, Code::NotFound);
    installation.restart().await;
    let (admin, node) = (installation.admin(), installation.node_again(node));
    assert!(admin.services("default").await.unwrap().items.is_empty());
    let after = sync(&node, 0, Duration::from_millis(1)).await.unwrap();
    let named = |change: &service::CatalogueChange| format!("{change:?}").contains("\"web\"");
    assert!(after.whole && !after.changes.iter().any(named), "{after:?}");
    let events = admin.events("default", None, 100, Duration::ZERO).await.unwrap().items;
    let forgotten = events.iter().find(|event| event.kind == "service.forgotten").unwrap();
    assert_eq!((forgotten.subject.as_str(), forgotten.actor.as_str()), ("service/web", "admin"));
    registration(&node, &[("web", "passing")]).await;
    until(&admin, "web", 1, 1).await;
}

#[tokio::test]
async fn failing_instances_are_listed_with_the_failures_unless_their_node_is_drained() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    drop(sync(&node, 0, Duration::from_millis(1)).await);
    registration(&node, &[("web", "failing"), ("db", "passing")]).await;
    until(&admin, "db", 1, 1).await;
    let failures = admin.failures("default").await.unwrap();
    let listed = failures.services.iter();
    let listed = listed.map(|each| (each.service.as_str(), each.instance.as_str(), each.node.as_str()));
    assert_eq!(listed.collect::<Vec<_>>(), [("web", "one", "web-1")]);
    let first = failures.services.first().unwrap();
    assert!(first.since_ms > 0);
    assert_eq!(first.reason, "check web: refused");
    assert_eq!(admin.overview("default").await.unwrap().failing_instances, 1);

    admin.drain_node("default", "web-1", &DrainRequest { force: true, ..drain("disk") }).await.unwrap();
    let drained = async { while admin.overview("default").await.unwrap().failing_instances > 0 {} };
    tokio::time::timeout(SOON, drained).await.expect("a drained node's instances are no failures");
    assert!(admin.failures("default").await.unwrap().services.is_empty());
}

#[tokio::test]
async fn the_instances_of_a_silent_node_are_unhealthy_until_it_reports() {
    let installation = Installation::quick().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    drop(sync(&node, 0, Duration::from_millis(1)).await);
    registration(&node, &[("web", "passing")]).await;
    until(&admin, "web", 1, 1).await;
    until(&admin, "web", 1, 0).await;
    let view = admin.service("default", "web", None, Duration::ZERO).await.unwrap();
    assert_eq!(view.instances.first().unwrap().status, "unreachable");
    drop(sync(&node, 0, Duration::from_millis(1)).await);
    until(&admin, "web", 1, 1).await;
}

#[tokio::test]
async fn a_copy_hears_of_every_change_and_of_nothing_else() {
    let mut installation = Installation::new().await;
    let (one, two) = (installation.node("web-1").await, installation.node("web-2").await);
    for node in [&one, &two] {
        node.client.report("default", &node.empty_report()).await.unwrap();
        drop(sync(node, 0, Duration::from_millis(1)).await);
    }
    let (mut copy, mut index) = (Catalogue::default(), 0);
    let mut take = |update: CatalogueUpdate| {
        if update.whole {
            copy = Catalogue::default();
        }
        for change in update.changes.clone() {
            copy.take(&CatalogueChange::try_from(change).unwrap());
        }
        index = update.index;
        let functional = copy.service(&"web".parse().unwrap()).map_or(0, |service| service.functional());
        (functional, index)
    };
    registration(&one, &[("web", "passing")]).await;
    let (functional, seen) = take(sync(&two, 0, SOON).await.unwrap());
    assert_eq!(functional, 1);
    // A blocking request is answered as soon as something changes.
    let hanging = sync(&two, seen, SOON);
    let change = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        registration(&one, &[("web", "failing")]).await;
    };
    let (update, ()) = tokio::join!(hanging, change);
    let update = update.unwrap();
    assert!(!update.whole && update.changes.len() == 1, "only what changed travels: {update:?}");
    assert!(
        matches!(update.changes.first(), Some(service::CatalogueChange::Put { service, .. }) if service == "web")
    );
    let (functional, seen) = take(update);
    assert_eq!(functional, 0);
    // An unchanged registration is no change, and other changes wake nobody.
    registration(&one, &[("web", "failing")]).await;
    assert_eq!(sync(&two, seen, Duration::from_millis(100)).await, None);
    // A server that restarts sends nothing again.
    installation.restart().await;
    let again = installation.node_again(two);
    assert_eq!(sync(&again, seen, Duration::from_millis(100)).await, None);
    assert!(
        sync(&again, 1_000_000, Duration::from_millis(100)).await.unwrap().whole,
        "an index from elsewhere"
    );
}

#[tokio::test]
async fn an_offer_that_makes_no_sense_is_refused_with_its_place() {
    let installation = Installation::new().await;
    let node = installation.node("web-1").await;
    let good = registrations(&node, &[("web", "passing")]);
    let with = |change: fn(&mut ServiceRegistrations)| {
        let mut registrations = good.clone();
        change(&mut registrations);
        registrations
    };
    let first = |change: fn(&mut ServiceRegistration)| {
        let mut registrations = good.clone();
        change(registrations.instances.first_mut().unwrap());
        registrations
    };
    for (bad, place) in [
        (first(|registration| registration.service = "Web".to_owned()), "instances[0].service"),
        (
            first(|registration| drop(registration.meta.insert("a".to_owned(), "x".repeat(513)))),
            "instances[0].meta",
        ),
        (
            first(|registration| registration.tags = (0..65).map(|n| format!("t{n}")).collect()),
            "instances[0].tags",
        ),
        (first(|registration| registration.reason = "two\nlines".to_owned()), "instances[0].reason"),
        (
            with(|registrations| registrations.instances.extend(registrations.instances.clone())),
            "instances[1]: web/one is listed twice",
        ),
        (with(|registrations| drop(registrations.addresses.insert("a/b".to_owned(), vec![]))), "addresses"),
    ] {
        let (code, detail) = problem(node.client.registration("default", &bad).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.contains(place), "{detail}");
    }
    let other = ServiceRegistrations { node: "web-2".to_owned(), ..good.clone() };
    let (code, _) = problem(node.client.registration("default", &other).await);
    assert_eq!(code, Code::Forbidden, "each for itself");
    let (code, _) = problem(installation.admin().registration("default", &good).await);
    assert_eq!(code, Code::Forbidden, "only the node itself");
}

#[tokio::test]
async fn a_cordoned_node_gets_no_new_version_and_a_drained_ones_instances_are_unhealthy() {
    let installation = Installation::lenient().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    node.client.report("default", &node.empty_report()).await.unwrap();
    drop(sync(&node, 0, Duration::from_millis(1)).await);
    registration(&node, &[("web", "passing")]).await;
    until(&admin, "web", 1, 1).await;

    admin.cordon_node("default", "web-1", "a noisy disk").await.unwrap();
    until(&admin, "web", 1, 1).await;
    set_entity(&admin, policy("1", "0s")).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let held = |view: &bellwether_api::v1::rollout::RolloutView| {
        view.reason.contains("web-1 is held: cordoned by admin: a noisy disk")
    };
    crate::harness::until(&admin, held).await;
    let why = admin.why("default", "node/web-1").await.unwrap().lines.join("\n");
    assert!(why.contains("it is cordoned by admin: a noisy disk"), "{why}");

    admin.drain_node("default", "web-1", &drain("a new disk")).await.unwrap();
    until(&admin, "web", 1, 0).await;
    let view = admin.service("default", "web", None, Duration::ZERO).await.unwrap();
    assert_eq!(view.instances.first().unwrap().reason, "drained by admin: a new disk");

    admin.uncordon_node("default", "web-1").await.unwrap();
    until(&admin, "web", 1, 1).await;
    let number = node.assigned("v1").await;
    assert!(number > 0, "it is updated");
    let events = admin.events("default", None, 100, Duration::ZERO).await.unwrap().items;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    for kind in ["node.cordoned", "node.drain_requested", "node.drained", "node.uncordoned"] {
        assert_eq!(kinds.iter().filter(|is| **is == kind).count(), 1, "{kind} in {kinds:?}");
    }
}

fn drain(reason: &str) -> DrainRequest {
    DrainRequest { reason: reason.to_owned(), ..DrainRequest::default() }
}

#[tokio::test]
async fn a_drain_waits_for_its_budget_says_why_and_follows_when_there_is_room() {
    let installation = Installation::lenient().await;
    let admin = installation.admin();
    let mut nodes = Vec::new();
    for name in ["web-1", "web-2"] {
        let node = installation.node(name).await;
        node.client.report("default", &node.empty_report()).await.unwrap();
        drop(sync(&node, 0, Duration::from_millis(1)).await);
        registration(&node, &[("web", "passing")]).await;
        nodes.push(node);
    }
    until(&admin, "web", 2, 2).await;
    admin.drain_node("default", "web-1", &drain("a new disk")).await.unwrap();
    until(&admin, "web", 2, 1).await;
    admin.drain_node("default", "web-2", &drain("a new disk")).await.unwrap();
    let why = admin.why("default", "node/web-2").await.unwrap().lines.join("\n");
    let waits =
        "its drain waits: 1 of 2 instances of service web is unavailable, at most 1 may be; given up in";
    assert!(why.contains(waits), "{why}");
    let view = admin.overview("default").await.unwrap();
    assert_eq!(view.waiting_drains, 1);
    assert!(view.first_waiting_drain.unwrap().starts_with("web-2: 1 of 2 instances of service web"));
    let cordon = admin.node("default", "web-2").await.unwrap().node.cordon.unwrap();
    assert!(matches!(cordon.drain, Some(Drain::Waiting { reason: Some(_), .. })), "{cordon:?}");

    admin.uncordon_node("default", "web-1").await.unwrap();
    until(&admin, "web", 2, 1).await;
    let follows = async || {
        let view = admin.node("default", "web-2").await.unwrap();
        matches!(view.node.cordon.unwrap().drain, Some(Drain::Drained { .. }))
    };
    while !follows().await {
        let last = admin.overview("default").await.unwrap().last_event;
        drop(
            admin.events("default", Some(last.saturating_sub(1)), 10, Duration::from_secs(5)).await.unwrap(),
        );
    }

    admin.drain_node("default", "web-1", &DrainRequest { force: true, ..drain("now") }).await.unwrap();
    until(&admin, "web", 2, 0).await;
    for (bad, place) in [
        (DrainRequest { max_unavailable: Some("0".to_owned()), ..drain("") }, "max_unavailable"),
        (DrainRequest { max_unavailable: Some("most".to_owned()), ..drain("") }, "max_unavailable"),
        (DrainRequest { deadline: Some("soon".to_owned()), ..drain("") }, "deadline"),
    ] {
        let (code, detail) = problem(admin.drain_node("default", "web-1", &bad).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.contains(place), "{detail}");
    }
}
