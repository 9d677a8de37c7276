//! External targets whose controllers are away, read their assignments separately, or report errors of the version before.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::v1::external::{ExpectedVersions, TargetReport};
use bellwether_api::v1::policy::Policy;

use crate::external::{Fleet, external, make, orchestrate, partly, runs, text};
use crate::harness::{Installation, SOON, policy, until, version};

/// Waits for as long as a controller is away.
async fn away(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test]
async fn a_controller_that_is_away_for_longer_than_the_deadline_condemns_no_version() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let strict = Policy { deadline: text("3s"), ..policy("1", "0s") };
    admin.set_entity("default", "web", &external("2s", "1h", strict)).await.unwrap();
    let old = partly(vec![runs("a", "v1"), runs("b", "v1")]);
    orchestrate(&admin, &old).await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    until(&admin, |view| view.progress.last_known_good.is_some()).await;
    orchestrate(&admin, &old).await;
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    let in_flight = |answer: &ExpectedVersions| {
        let new = answer.targets.iter().find(|target| target.version.as_deref() == Some("v2"));
        new.map(|target| target.name.clone())
    };
    // The controller has its orders, and goes away: first to do nothing, then to do all of it.
    let first = in_flight(&orchestrate(&admin, &old).await).expect("one is in flight");
    away(5).await;
    assert_eq!(
        in_flight(&orchestrate(&admin, &old).await),
        Some(first.clone()),
        "it was given up for silence"
    );
    away(5).await;
    let mut fleet = Fleet::of(admin.clone(), 0, "v1");
    fleet.running =
        [("a", "v1"), ("b", "v1")].map(|(name, version)| (name.to_owned(), version.to_owned())).into();
    fleet.running.insert(first, "v2".to_owned());
    fleet.until(|answer| answer.last_known_good.as_deref() == Some("v2")).await;
    assert!(fleet.all_run("v2"));
    let view = until(&admin, |view| view.rollout.as_ref().is_some_and(|r| r.ended_ms.is_some())).await;
    assert!(view.progress.bad.is_empty(), "{:#?}", view.progress.bad);
}

/// A controller that reads its assignments from the list of targets, and applies them at once.
struct Reader {
    client: Client,
    /// The version that each target runs, and the number of its last assignment.
    running: BTreeMap<String, (String, Option<u64>)>,
    /// Whether it says which assignment it answers.
    numbered: bool,
}

impl Reader {
    async fn report(&mut self) {
        let reports = self.running.iter().map(|(name, (version, assignment))| TargetReport {
            error: version.starts_with("bad").then(|| "exit code 1".to_owned()),
            assignment: assignment.filter(|_| self.numbered),
            ..runs(name, version)
        });
        self.client.report_targets("default", "web", &partly(reports.collect())).await.unwrap();
        for target in self.client.targets("default", "web", None, None).await.unwrap().items {
            if let Some(assigned) = target.assigned {
                self.running.insert(target.name, (assigned, target.assignment));
            }
        }
    }

    async fn until_ended(&mut self, version: &str) {
        let rounds = async {
            while !self.has_ended(version).await {
                self.report().await;
            }
        };
        tokio::time::timeout(SOON, rounds).await.expect("the rollout ends");
    }

    async fn has_ended(&self, version: &str) -> bool {
        let view = self.client.current_rollout("default", "web", None, Duration::ZERO).await.unwrap();
        view.rollout.is_some_and(|rollout| rollout.version == version && rollout.ended_ms.is_some())
    }
}

#[tokio::test]
async fn a_controller_may_read_assignments_and_report_separately() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    for numbered in [true, false] {
        make(&admin, policy("1", "0s")).await;
        let mut reader = Reader { client: admin.clone(), running: BTreeMap::new(), numbered };
        reader.running.extend(["a", "b", "c"].map(|name| (name.to_owned(), ("v0".to_owned(), None))));
        reader.report().await;
        for wanted in ["v1", "v2", "bad"].map(|version| format!("{version}-{numbered}")) {
            admin.start_rollout("default", "web", &version(&wanted)).await.unwrap();
            reader.until_ended(&wanted).await;
            let view = admin.current_rollout("default", "web", None, Duration::ZERO).await.unwrap();
            let good = if wanted.starts_with("bad") { format!("v2-{numbered}") } else { wanted.clone() };
            assert_eq!(view.progress.last_known_good, Some(good), "{wanted}: {:#?}", view.progress.bad);
        }
        admin.delete_entity("default", "web").await.unwrap();
    }
}

#[tokio::test]
async fn an_error_of_the_old_version_is_not_charged_to_the_new_one() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    make(&admin, policy("100%", "0s")).await;
    let mut fleet = Fleet::of(admin.clone(), 2, "v1");
    fleet.round().await;
    admin.start_rollout("default", "web", &version("v1")).await.unwrap();
    fleet.until(|answer| answer.last_known_good.as_deref() == Some("v1")).await;
    admin.start_rollout("default", "web", &version("v2")).await.unwrap();
    // Each of them fails on what it runs now, while the new version is on its way.
    for _ in 0..3 {
        let sick = |name: &str| TargetReport { error: text("the old one crashed"), ..runs(name, "v1") };
        let answer = orchestrate(&admin, &partly(vec![sick("shop-1"), sick("shop-2")])).await;
        assert_eq!(answer.last_known_bad, None, "{answer:?}");
    }
    fleet.until(|answer| answer.last_known_good.as_deref() == Some("v2")).await;
}
