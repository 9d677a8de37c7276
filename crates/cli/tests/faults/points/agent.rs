//! An agent dies at every named moment of an apply, of versions and of actions.

use std::time::Duration;

use bellwether_api::v1::entity::EntitySpec;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::rollout::NewRollout;
use bellwether_api::v1::target::TargetView;
use bellwether_rt::fail::FailPoint;
use bellwether_testbed::Options;

use super::{small, under};
use crate::bed::{Bed, SOON};

/// How often each point is passed unharmed before the agent dies there.
const PASSINGS: [u32; 2] = [0, 2];

/// Most rollouts that are begun until an agent has died.
const ROLLOUTS: usize = 4;

/// What an action says of itself when its agent died while it ran.
const CUT_SHORT: &str = "the agent stopped while it ran; not run again";

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_every_named_moment_of_an_apply_goes_on_to_the_version_it_was_told() {
    let part = |part: &str| {
        format!("{part} = [\"/bin/sh\", \"-c\", \"echo $BELLWETHER_VERSION >> {{home}}/{part}\"]\n")
    };
    let process = "[entity.web.process]\nargv = [\"/bin/sh\", \"-c\", \
                   \"echo $$ $BELLWETHER_VERSION >> {home}/started; exec sleep 100000\"]\n";
    let sections =
        format!("[entity.web]\n{}{}{}{process}", part("static"), part("dynamic"), part("validate"));
    let mut bed = Bed::start(Options { sections, ..small(0, 1, 1) }).await;
    bed.make_entity(1);
    let mut number = 0;
    for point in under("apply.") {
        for passings in PASSINGS {
            bed.obey("kill agent-1");
            bed.arm("agent-1", point, passings);
            let last = number + ROLLOUTS;
            while number < last && bed.lives("agent-1") {
                number += 1;
                bed.roll(&format!("v{number}")).await;
                bed.dead_or("agent-1", async |bed| is_good(bed, number).await).await;
            }
            bed.killed("agent-1");
            bed.obey("start agent-1");
            bed.ended(&format!("v{number}")).await;
            one_process_runs(&bed, number);
            for part in ["static", "dynamic", "validate"] {
                in_order_and_again_at_most_after_a_death(&bed, part, number);
            }
        }
    }
    bed.obey("stop agent-1");
}

async fn is_good(bed: &Bed, number: usize) -> bool {
    let view = bed.view().await;
    view.is_some_and(|view| view.progress.last_known_good == Some(format!("v{number}")))
}

fn lines(bed: &Bed, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(bed.inner.home("agent-1").join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Of all processes that were ever started the one of the newest version runs, and no other.
fn one_process_runs(bed: &Bed, number: usize) {
    let started = lines(bed, "started");
    let runs = |line: &&String| {
        let pid = line.split(' ').next().unwrap();
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|said| said.starts_with("sleep"))
    };
    let running: Vec<&String> = started.iter().filter(runs).collect();
    assert_eq!(running.len(), 1, "of {started:?} run {running:?}");
    assert!(
        running.iter().all(|line| line.ends_with(&format!(" v{number}"))),
        "{running:?} is not v{number}"
    );
}

/// A part that was cut short is begun again; an older version never comes after a newer one.
fn in_order_and_again_at_most_after_a_death(bed: &Bed, part: &str, number: usize) {
    let ran = lines(bed, part);
    let numbers: Vec<usize> = ran.iter().map(|line| line.trim_start_matches('v').parse().unwrap()).collect();
    assert!(numbers.is_sorted(), "{part}: {numbers:?}");
    for version in 1..=number {
        let times = numbers.iter().filter(|ran| **ran == version).count();
        assert!((1..=2).contains(&times), "{part} of v{version} ran {times} times: {numbers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_every_named_moment_of_an_action_runs_it_once_at_most_and_says_what_is_true() {
    let sections = "[action.note]\nrun = [\"/bin/sh\", \"-c\", \"echo $BELLWETHER_VERSION >> {home}/runs\"]\n\
                    [entity.web]\naction = \"note\"\n";
    let mut bed = Bed::start(Options { sections: sections.to_owned(), ..small(0, 1, 1) }).await;
    let policy = Policy {
        soak: Some("0s".to_owned()),
        batch: Some("100%".to_owned()),
        deadline: Some("5m".to_owned()),
        ..Policy::default()
    };
    let (selector, action) = ("role=web".to_owned(), Some("note".to_owned()));
    let spec = EntitySpec { selector, action, policy, ..EntitySpec::default() };
    bed.client(1).set_entity("default", "web", &spec).await.unwrap();
    // An action has no process of its own.
    for point in under("apply.").into_iter().filter(|point| *point != FailPoint::ProcessStarted) {
        for passings in PASSINGS {
            bed.obey("kill agent-1");
            bed.arm("agent-1", point, passings);
            let mut version = String::new();
            let mut rollouts = 0;
            while rollouts < ROLLOUTS && bed.lives("agent-1") {
                rollouts += 1;
                version = run_action(&bed).await;
                bed.dead_or("agent-1", async |bed| verdict(bed, &version).await.is_some()).await;
            }
            bed.killed("agent-1");
            bed.obey("start agent-1");
            let target = bed.verdict_of(&version).await;
            once_at_most(&bed, point, &version, &target);
        }
    }
    bed.obey("stop agent-1");
}

/// Asks for another run, and answers its version.
async fn run_action(bed: &Bed) -> String {
    let new = NewRollout::default();
    bed.client(1).start_rollout("default", "web", &new).await.unwrap().version
}

/// Outcome of a version on the one target, if it has one yet.
async fn verdict(bed: &Bed, version: &str) -> Option<TargetView> {
    let page = bed.client(1).targets("default", "web", None, None).await.ok()?;
    let target = page.items.into_iter().next()?;
    let is_over = matches!(target.phase.as_str(), "succeeded" | "failed");
    (target.assigned.as_deref() == Some(version) && is_over).then_some(target)
}

fn once_at_most(bed: &Bed, point: FailPoint, version: &str, target: &TargetView) {
    let ran = lines(bed, "runs");
    let times = |version: &String| ran.iter().filter(|ran| *ran == version).count();
    assert!(ran.iter().all(|version| times(version) == 1), "{ran:?}");
    let said = target.evidence.as_ref().map(|evidence| evidence.summary.as_str());
    match target.phase.as_str() {
        "succeeded" => assert_eq!(times(&version.to_owned()), 1, "{version} is said to have run: {ran:?}"),
        _ => assert_eq!(said, Some(CUT_SHORT), "{target:?}"),
    }
    // Begun in the ledger, its end not: nobody can know whether it ran.
    let unsure = matches!(point, FailPoint::RunStored | FailPoint::ProgramStarted | FailPoint::ProgramEnded);
    assert_eq!(target.phase == "failed", unsure, "{} of {version}: {target:?}", point.name());
}

impl Bed {
    /// Whether a part runs.
    pub(super) fn lives(&mut self, part: &str) -> bool {
        self.inner.part(part).unwrap().runs()
    }

    /// Waits until a part is dead, or something holds.
    pub(super) async fn dead_or(&mut self, part: &str, mut holds: impl AsyncFnMut(&Self) -> bool) {
        let waiting = async {
            while self.lives(part) && !holds(self).await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let seen = tokio::time::timeout(SOON, waiting).await.is_ok();
        assert!(seen, "{part} neither died nor did what it was told");
    }

    /// Waits for the outcome of a version on the one target.
    async fn verdict_of(&self, version: &str) -> TargetView {
        let mut found = None;
        self.wait_for(&format!("{version} has a verdict"), async || {
            found = verdict(self, version).await;
            found.is_some()
        })
        .await;
        found.unwrap()
    }
}
