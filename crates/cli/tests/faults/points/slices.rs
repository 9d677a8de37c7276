//! The leading server dies when a part of a verdict is committed and the rest is not: more targets are told at once than one
//! round of transactions holds.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::external::settings::ExternalSettings;
use bellwether_api::v1::external::{ExpectedVersion, TargetReport, TargetReports};
use bellwether_api::v1::policy::Policy;
use bellwether_rt::fail::FailPoint;

use super::small;
use crate::bed::Bed;
use crate::laws::Watch;

/// Targets, and how many of them are told at once: fifteen slices, of which twelve go together.
const TARGETS: usize = 1_500;
const BATCH: u64 = 1_400;

/// How many are reported at once.
const REPORTED: usize = 500;

/// How long a report of so many may take on a busy machine.
const LONG: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_killed_between_two_slices_leaves_a_part_that_the_next_one_completes() {
    let mut bed = Bed::start(small(1, 2, 0)).await;
    let policy = Policy {
        batch: Some(BATCH.to_string()),
        soak: Some("0s".to_owned()),
        deadline: Some("10m".to_owned()),
        ..Policy::default()
    };
    let spec = EntitySpec { external: Some(ExternalSettings::default()), policy, ..EntitySpec::default() };
    bed.client(1).set_entity("default", "web", &spec).await.unwrap();
    let mut shops = Shops::new();
    shops.report(&bed).await;
    let watch = Watch::begin(&bed);
    let (before, next) = bed.both_servers().await;
    bed.obey(&format!("kill {next}"));
    bed.obey(&format!("stop {before}"));
    bed.arm(&next, FailPoint::BetweenSlices, 0);
    bed.roll("v1").await;
    bed.killed(&next);
    let assigned = assigned(&bed);
    assert!((1..BATCH).contains(&assigned), "{assigned} were told: that is no part of {BATCH}");
    bed.obey(&format!("start {before}"));
    bed.obey(&format!("start {next}"));
    bed.until("the batch is dispatched", |view| view.counts.in_flight == BATCH).await;
    bed.wait_for("all targets run it", async || shops.report(&bed).await).await;
    bed.ended("v1").await;
    watch.holds(&bed, BATCH, &["v1"]).await;
}

/// How many targets were told something, as etcd has it.
fn assigned(bed: &Bed) -> u64 {
    let key = "/bellwether/bw/ns/default/target/web/";
    let asked = ["get", "--prefix", "--keys-only", key];
    let said = tokio::task::block_in_place(|| bed.inner.etcdctl(1, &asked)).unwrap();
    said.lines().filter(|line| line.starts_with(key)).count() as u64
}

/// What runs where: a controller that does what it is told at once.
struct Shops(BTreeMap<String, Option<String>>);

impl Shops {
    fn new() -> Self {
        Self((1..=TARGETS).map(|number| (format!("shop-{number}"), None)).collect())
    }

    /// Reports every target, and has it run what it is to run; whether all of them ran v1 and were told so once.
    async fn report(&mut self, bed: &Bed) -> bool {
        let targets = self.0.iter().map(|(name, running)| TargetReport {
            name: name.clone(),
            running: running.clone(),
            ..TargetReport::default()
        });
        let targets: Vec<TargetReport> = targets.collect();
        let mut all = true;
        for targets in targets.chunks(REPORTED) {
            let reports = TargetReports { targets: targets.to_vec(), ..TargetReports::default() };
            for expected in tell(bed, &reports).await {
                let running = self.0.get_mut(&expected.name).unwrap();
                all &= running.as_deref() == Some("v1");
                assert!(expected.assignment.is_none_or(|times| times == 1), "told once: {expected:?}");
                *running = expected.version.or(running.take());
            }
        }
        all
    }
}

/// Tells the control plane of some targets; answers what each is to run.
async fn tell(bed: &Bed, reports: &TargetReports) -> Vec<ExpectedVersion> {
    let mut answer = Vec::new();
    bed.wait_for("reports are taken", async || {
        for client in &bed.clients {
            let taken = client.orchestrate("default", "web", reports);
            if let Ok(Ok(taken)) = tokio::time::timeout(LONG, taken).await {
                answer = taken.targets;
                return true;
            }
        }
        false
    })
    .await;
    answer
}
