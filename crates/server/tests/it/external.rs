//! External targets: controllers report over HTTP and get the expected versions.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::external::settings::ExternalSettings;
use bellwether_api::v1::external::{ExpectedVersions, TargetReport, TargetReports};
use bellwether_api::v1::policy::{Hooks, Policy};
use bellwether_api::v1::rollout::RolloutState;
use serde_json::json;

use crate::harness::{Installation, SOON, policy, problem, until, version};
use crate::hooked::{Controller, Say};

pub(crate) fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

pub(crate) fn external(unreachable_after: &str, remove_after: &str, policy: Policy) -> EntitySpec {
    let external =
        ExternalSettings { unreachable_after: text(unreachable_after), remove_after: text(remove_after) };
    EntitySpec { external: Some(external), policy, ..EntitySpec::default() }
}

pub(crate) async fn make(client: &Client, policy: Policy) {
    client.set_entity("default", "web", &external("5m", "1h", policy)).await.unwrap();
}

pub(crate) fn runs(name: &str, version: &str) -> TargetReport {
    TargetReport { name: name.to_owned(), running: text(version), ..TargetReport::default() }
}

pub(crate) fn partly(targets: Vec<TargetReport>) -> TargetReports {
    TargetReports { targets, ..TargetReports::default() }
}

pub(crate) async fn orchestrate(client: &Client, reports: &TargetReports) -> ExpectedVersions {
    client.orchestrate("default", "web", reports).await.unwrap()
}

/// The names of an entity's targets, or of those in a group.
async fn targets(client: &Client, group: Option<&str>) -> Vec<String> {
    let page = client.targets("default", "web", None, group).await.unwrap();
    page.items.into_iter().map(|target| target.name).collect()
}

/// A controller that applies what is expected at once; some versions fail.
pub(crate) struct Fleet {
    client: Client,
    pub(crate) running: BTreeMap<String, String>,
    /// Most targets that changed version in one round.
    most: usize,
}

impl Fleet {
    pub(crate) fn of(client: Client, count: usize, version: &str) -> Self {
        let running = (1..=count).map(|n| (format!("shop-{n}"), version.to_owned())).collect();
        Self { client, running, most: 0 }
    }

    pub(crate) async fn round(&mut self) -> ExpectedVersions {
        let reports = self.running.iter().map(|(name, version)| {
            let error = (version == "bad").then(|| "exit code 1\nwith a trace".to_owned());
            TargetReport { error, ..runs(name, version) }
        });
        let answer = orchestrate(&self.client, &partly(reports.collect())).await;
        let mut changed = 0;
        for expected in &answer.targets {
            if let Some(version) = &expected.version {
                let old = self.running.insert(expected.name.clone(), version.clone());
                changed += usize::from(old.as_ref() != Some(version));
            }
        }
        self.most = self.most.max(changed);
        answer
    }

    pub(crate) async fn until(&mut self, holds: impl Fn(&ExpectedVersions) -> bool) -> ExpectedVersions {
        let rounds = async {
            loop {
                let answer = self.round().await;
                if holds(&answer) {
                    return answer;
                }
            }
        };
        match tokio::time::timeout(SOON, rounds).await {
            Ok(answer) => answer,
            Err(_) => panic!("the rollout never looked as expected: {:#?}", self.round().await),
        }
    }

    pub(crate) fn all_run(&self, version: &str) -> bool {
        self.running.values().all(|running| running == version)
    }
}

#[tokio::test]
async fn a_controller_moves_its_targets_batch_by_batch_and_back_from_a_bad_version() {
    let mut installation = Installation::new().await;
    let admin = installation.admin();
    make(&admin, policy("2", "0s")).await;
    let mut fleet = Fleet::of(admin.clone(), 5, "v1");
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    let good = |version: &'static str| {
        move |answer: &ExpectedVersions| {
            answer.last_known_good.as_deref() == Some(version)
                && answer.status.as_ref().is_some_and(|status| status.state == "succeeded")
        }
    };
    fleet.until(good("v1")).await;
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    fleet.until(good("v2")).await;
    assert!(fleet.all_run("v2"), "{:?}", fleet.running);
    assert_eq!(fleet.most, 2, "a batch is two");

    // The record that controllers have their versions survives a restart of the server.
    installation.restart().await;
    fleet.client = installation.admin();
    let admin = installation.admin();
    admin.start_rollout("default", "web", &version("bad")).await.unwrap();
    let back = fleet
        .until(|answer| answer.status.as_ref().is_some_and(|status| status.state == "rolled_back"))
        .await;
    fleet.round().await;
    assert_eq!((back.last_known_good.as_deref(), back.last_known_bad.as_deref()), (Some("v2"), Some("bad")));
    assert!(fleet.all_run("v2"), "{:?}", fleet.running);
    let view = until(&admin, |view| view.rollout.is_some()).await.rollout.unwrap();
    assert_eq!(view.failures.first().unwrap().evidence.summary, "exit code 1");
    assert!(view.failures.len() <= 2, "no more than the batch ever ran it");
}

#[tokio::test]
async fn reports_may_come_without_a_question_and_the_answers_be_read_later() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    make(&admin, policy("1", "0s")).await;
    let blue = TargetReports { group: text("blue"), ..partly(vec![runs("1", "v1"), runs("2", "v1")]) };
    let green = TargetReports { group: text("green"), ..partly(vec![runs("1", "v1")]) };
    admin.report_targets("default", "web", &blue).await.unwrap();
    admin.report_targets("default", "web", &green).await.unwrap();
    admin.report_targets("default", "web", &partly(vec![runs("alone", "v1")])).await.unwrap();
    assert_eq!(targets(&admin, None).await, ["alone", "blue/1", "blue/2", "green/1"]);
    assert_eq!(targets(&admin, Some("blue")).await, ["blue/1", "blue/2"]);
    assert_eq!(targets(&admin, Some("")).await, ["alone"]);

    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| view.progress.last_known_good.is_some()).await;
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    until(&admin, |view| view.counts.in_flight == 1).await;
    let page = admin.targets("default", "web", None, None).await.unwrap();
    let assigned: Vec<&str> = page.items.iter().filter_map(|target| target.assigned.as_deref()).collect();
    assert_eq!(
        assigned.iter().filter(|assigned| **assigned == "v2").count(),
        1,
        "one at a time: {assigned:?}"
    );
}

#[tokio::test]
async fn a_part_is_a_part_until_it_is_called_complete() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    make(&admin, policy("1", "0s")).await;
    let group = |group: &str, names: &[&str]| TargetReports {
        group: text(group),
        ..partly(names.iter().map(|name| runs(name, "v1")).collect())
    };
    orchestrate(&admin, &group("blue", &["1", "2", "3"])).await;
    orchestrate(&admin, &group("green", &["1", "2"])).await;
    orchestrate(&admin, &group("blue", &["1"])).await;
    assert_eq!(targets(&admin, None).await.len(), 5, "a part changes nothing for the others");
    orchestrate(&admin, &TargetReports { complete: true, ..group("blue", &["1", "4"]) }).await;
    assert_eq!(targets(&admin, None).await, ["blue/1", "blue/4", "green/1", "green/2"]);
    let gone = TargetReports { removed: vec!["2".to_owned(), "9".to_owned()], ..group("green", &[]) };
    orchestrate(&admin, &gone).await;
    assert_eq!(targets(&admin, None).await, ["blue/1", "blue/4", "green/1"]);
    let none = TargetReports { complete: true, ..group("blue", &[]) };
    orchestrate(&admin, &none).await;
    assert_eq!(targets(&admin, None).await, ["green/1"]);
}

#[tokio::test]
async fn two_controllers_for_one_group_are_refused_until_one_takes_over_or_falls_silent() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    make(&admin, policy("1", "0s")).await;
    let by = |controller: &str, name: &str| TargetReports {
        controller: text(controller),
        ..partly(vec![runs(name, "v1")])
    };
    orchestrate(&admin, &by("one", "a")).await;
    let (code, detail) = problem(admin.orchestrate("default", "web", &by("two", "b")).await);
    assert_eq!(code, Code::Refused);
    assert!(detail.contains("accept reports about these targets from two: one reports them"), "{detail}");
    assert_eq!(targets(&admin, None).await, ["a"], "nothing of it was taken in");
    orchestrate(&admin, &TargetReports { group: text("blue"), ..by("two", "b") }).await;
    orchestrate(&admin, &TargetReports { take_over: true, ..by("two", "b") }).await;
    let (code, _) = problem(admin.orchestrate("default", "web", &by("one", "a")).await);
    assert_eq!(code, Code::Refused, "the first one has lost it");
    let events = admin.events("default", None, 100, Duration::ZERO).await.unwrap().items;
    let controllers = events.iter().filter(|event| event.kind == "entity.controller");
    let changes: Vec<_> =
        controllers.map(|event| (event.before.as_deref(), event.after.as_deref())).collect();
    assert_eq!(
        changes,
        [(None, Some("one")), (None, Some("two")), (Some("one"), Some("two"))],
        "the controller reports the assigned version"
    );
    admin.set_entity("default", "web", &external("1s", "1h", policy("1", "0s"))).await.unwrap();
    let patient = async {
        while admin.orchestrate("default", "web", &by("one", "a")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(SOON, patient).await.expect("a silent controller is replaced");
}

#[tokio::test]
async fn targets_that_vanish_become_silent_and_are_then_released() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    admin.set_entity("default", "web", &external("1s", "3s", policy("1", "0s"))).await.unwrap();
    orchestrate(&admin, &partly(vec![runs("a", "v1"), runs("b", "v1")])).await;
    let mut seen = Vec::new();
    let vanishing = async {
        loop {
            // One of them continues.
            orchestrate(&admin, &partly(vec![runs("a", "v1")])).await;
            let page = admin.targets("default", "web", None, None).await.unwrap();
            let now: Vec<_> = page.items.iter().map(|t| (t.name.clone(), t.presence)).collect();
            if seen.last() != Some(&now) {
                seen.push(now);
            }
            if seen.last().is_some_and(|last| last.len() == 1) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SOON, vanishing).await.expect("b is released");
    let one = |name: &str, presence: &str| (name.to_owned(), presence.parse().unwrap());
    assert_eq!(
        seen,
        [
            vec![one("a", "up"), one("b", "up")],
            vec![one("a", "up"), one("b", "unreachable")],
            vec![one("a", "up")]
        ]
    );
    let events = admin.events("default", None, 100, Duration::ZERO).await.unwrap().items;
    let kinds: Vec<&str> = events
        .iter()
        .filter(|event| event.subject == "target/web/b")
        .map(|event| event.kind.as_str())
        .collect();
    assert_eq!(kinds, ["target.silent", "target.released"]);
}

#[tokio::test]
async fn blue_goes_when_green_has_proven_itself() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let selection = Controller::saying(Say::Json(json!({ "targets": [] }))).await;
    let removal = Controller::saying(Say::Json(json!({ "removed": ["blue-1", "blue-2"] }))).await;
    let hooks =
        Hooks { selection: Some(selection.hook()), removal: Some(removal.hook()), ..Hooks::default() };
    make(&admin, policy("2", "0s")).await;
    let blue = vec![runs("blue-1", "v1"), runs("blue-2", "v1")];
    orchestrate(&admin, &partly(blue.clone())).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| view.progress.last_known_good.is_some()).await;
    make(&admin, Policy { success: text("50%"), hooks: Some(hooks), ..policy("2", "0s") }).await;
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    let answer = orchestrate(&admin, &partly(blue)).await;
    assert!(
        answer.targets.iter().all(|target| target.version.as_deref() == Some("v1")),
        "blue stays: {answer:?}"
    );
    orchestrate(&admin, &partly(vec![runs("green-1", "v2"), runs("green-2", "v2")])).await;
    let view = until(&admin, |view| view.rollout.as_ref().is_some_and(|r| r.ended_ms.is_some())).await;
    assert_eq!(view.rollout.unwrap().status.state, RolloutState::Succeeded);
    assert_eq!(targets(&admin, None).await, ["green-1", "green-2"]);
    assert_eq!(removal.heard().first().unwrap().body["targets"], json!(["blue-1", "blue-2"]));
}

#[tokio::test]
async fn a_target_that_is_called_like_a_node_is_not_that_node() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let node = installation.node("web-1").await;
    make(&admin, policy("1", "0s")).await;
    orchestrate(&admin, &partly(vec![runs("web-1", "v1")])).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| view.progress.last_known_good.is_some()).await;
    let sync = node.client.sync("default", "web-1", (0, None), Duration::from_millis(300)).await.unwrap();
    assert!(sync.order.is_none_or(|order| order.entities.is_empty()), "the node was assigned something");
    node.runs("v9", 1, bellwether_api::v1::report::TargetHealth::Healthy).await;
    let page = admin.targets("default", "web", None, None).await.unwrap();
    assert_eq!(page.items.first().unwrap().running.as_deref(), Some("v1"), "the node spoke for the target");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_its_place() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    make(&admin, policy("1", "0s")).await;
    let nodes = EntitySpec { selector: "all".to_owned(), ..EntitySpec::default() };
    admin.set_entity("default", "machines", &nodes).await.unwrap();
    let named = |name: &str| partly(vec![runs(name, "v1")]);
    let many = |count: usize| partly((0..count).map(|n| runs(&format!("t{n}"), "v1")).collect());
    for (entity, reports, code, reason) in [
        ("none", named("a"), Code::NotFound, "cannot find entity none"),
        ("machines", named("a"), Code::Refused, "its targets are nodes, which report themselves"),
        ("web", named("a b"), Code::Invalid, "targets[0].name"),
        ("web", partly(vec![runs("a", "v1"), runs("a", "v2")]), Code::Invalid, "a is listed twice"),
        (
            "web",
            TargetReports { removed: vec!["a".into()], ..named("a") },
            Code::Invalid,
            "a is listed twice",
        ),
        ("web", partly(vec![runs("a", "no such version")]), Code::Invalid, "targets[0].running"),
        ("web", TargetReports { group: text("a/b"), ..named("a") }, Code::Invalid, "group"),
        ("web", TargetReports { controller: text("a b"), ..named("a") }, Code::Invalid, "controller"),
        ("web", TargetReports { group: text("a"), ..named("a/b") }, Code::Invalid, "a/b repeats the group"),
        (
            "web",
            partly(vec![TargetReport { error: text(" "), ..runs("a", "v1") }]),
            Code::Invalid,
            "targets[0].error: must not be empty",
        ),
        ("web", many(10_001), Code::Invalid, "10001 given, at most 10000 allowed"),
    ] {
        let (found, detail) = problem(admin.orchestrate("default", entity, &reports).await);
        assert_eq!(found, code, "{detail}");
        assert!(detail.contains(reason), "{detail}");
    }
    assert_eq!(targets(&admin, None).await, Vec::<String>::new());
    assert_eq!(orchestrate(&admin, &many(1_000)).await.targets.len(), 1_000);
    for (spec, reason) in [
        (nodes, "they are external targets"),
        (EntitySpec { selector: "all".into(), ..external("1m", "1h", Policy::default()) }, "selector"),
        (external("1h", "1h", Policy::default()), "external.remove_after"),
        (external("0s", "1h", Policy::default()), "external.unreachable_after"),
        (EntitySpec { action: text("backup"), ..external("1m", "1h", Policy::default()) }, "external"),
    ] {
        let (_, detail) = problem(admin.set_entity("default", "web", &spec).await);
        assert!(detail.contains(reason), "{detail}");
    }
    let viewer = installation.token("viewer").await;
    let (code, _) = problem(viewer.orchestrate("default", "web", &named("a")).await);
    assert_eq!(code, Code::Forbidden);
}

#[tokio::test]
async fn ten_thousand_targets_are_reported_at_once_and_a_part_is_not_taken_for_all_of_them() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    make(&admin, policy("1", "0s")).await;
    let some = |numbers: std::ops::Range<usize>| {
        let targets = numbers.map(|number| runs(&format!("shop-{number:05}"), "v1")).collect();
        TargetReports { complete: true, ..partly(targets) }
    };
    let view = async || admin.current_rollout("default", "web", None, Duration::ZERO).await.unwrap();
    let count = async || view().await.counts.targets;
    orchestrate(&admin, &some(0..10_000)).await;
    assert_eq!(count().await, 10_000);
    // As by a controller that takes "complete" for "this is all of this call".
    let (code, detail) = problem(admin.orchestrate("default", "web", &some(1_000..2_000)).await);
    assert_eq!(code, Code::Refused);
    assert!(detail.contains("it would remove 9000 others that are being reported"), "{detail}");
    assert_eq!(count().await, 10_000);
    let page = |numbers, after: &str, through: &str| TargetReports {
        after: text(after),
        through: text(through),
        ..some(numbers)
    };
    orchestrate(&admin, &page(1_000..1_999, "shop-00999", "shop-01999")).await;
    assert_eq!(count().await, 9_999, "only what is missing within the page is gone");
    let (code, detail) =
        problem(admin.orchestrate("default", "web", &page(2_000..2_001, "shop-02000", "shop-03000")).await);
    assert_eq!(code, Code::Invalid);
    assert!(detail.contains("shop-02000 is not between"), "{detail}");
    let (code, _) = problem(
        admin.orchestrate("default", "web", &TargetReports { complete: false, ..page(0..1, "a", "z") }).await,
    );
    assert_eq!(code, Code::Invalid);
}
