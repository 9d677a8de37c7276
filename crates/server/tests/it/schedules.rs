//! Schedules of workflows over the API: due times through restarts and missed ones, what is refused, and rights.

use std::time::Duration;

use bellwether_api::client::Client;
use bellwether_api::problem::Code;
use bellwether_api::v1::apply::ApplyRequest;
use bellwether_api::v1::policy::Policy;
use bellwether_api::v1::schedule::{Schedule, ScheduleSpec};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_rt::clock::Clock;
use serde_json::json;

use crate::harness::{Installation, SOON, problem};
use crate::rights::with;

const MINUTE: u64 = 60_000;

fn spec(cron: &str) -> ScheduleSpec {
    ScheduleSpec {
        workflow: "backup".to_owned(),
        filter: "all".to_owned(),
        cron: cron.to_owned(),
        ..ScheduleSpec::default()
    }
}

/// Writes the workflow that the schedules run.
pub(crate) async fn workflow(admin: &Client) {
    let documents = json!([
        {"kind": "task", "name": "save", "steps": [{"name": "save", "script": {"text": "true"}}]},
        {"kind": "stage", "name": "save", "tasks": ["save"]},
        {"kind": "workflow", "name": "backup", "stages": ["save"]},
    ]);
    let documents = serde_json::from_value(documents).unwrap();
    admin.apply("default", &ApplyRequest { documents, ..ApplyRequest::default() }).await.unwrap();
}

/// The schedule once a due time at or after this one has an outcome.
async fn outcome(admin: &Client, name: &str, due: u64) -> Schedule {
    let asked = async {
        loop {
            let schedule = admin.schedule("default", name).await.unwrap();
            if schedule.last.as_ref().is_some_and(|last| last.due_ms >= due) {
                return schedule;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_millis(3 * MINUTE), asked)
        .await
        .expect("a due time without an outcome")
}

/// A clock that is shortly before a full minute, at most one ahead.
fn shortly_before_a_minute(ahead: u64) -> Clock {
    let minute = (Clock::system().now().as_millis() / MINUTE + 1 + ahead) * MINUTE;
    Clock::system().set_to(Timestamp::from_millis(minute).minus(Span::from_millis(1_500)))
}

/// The causes of a schedule's events of a kind.
async fn told(admin: &Client, kind: &str, name: &str) -> Vec<String> {
    let events = admin.events("default", Some(0), 500, SOON).await.unwrap().items;
    let subject = format!("schedule/{name}");
    let about = events.into_iter().filter(|event| event.kind == kind && event.subject == subject);
    about.map(|event| event.cause).collect()
}

#[tokio::test]
async fn a_due_time_starts_one_run_on_the_nodes_that_match_then() {
    let mut installation = Installation::new().await;
    installation.node("db-1").await;
    installation.restart_at(shortly_before_a_minute(0)).await;
    let admin = installation.admin();
    workflow(&admin).await;
    let yearly =
        ScheduleSpec { policy: Policy { batch: Some("1".into()), ..Policy::default() }, ..spec("@yearly") };
    admin.set_schedule("default", "often", &yearly).await.unwrap();
    installation.node("db-2").await;
    let often = ScheduleSpec { cron: "* * * * *".into(), ..yearly };
    let made = admin.set_schedule("default", "often", &often).await.unwrap();
    let due = made.next_ms.unwrap();
    assert_eq!((made.revision, due % MINUTE), (2, 0));
    let after = outcome(&admin, "often", due).await;
    assert_eq!((after.revision, after.next_ms), (2, Some(due + MINUTE)));
    let last = after.last.unwrap();
    assert_eq!((last.due_ms, &*last.result), (due, "started"));
    assert_eq!(after.last_run.as_deref(), Some(&*last.text));
    let runs = admin.runs("default").await.unwrap().items;
    let [run] = runs.as_slice() else { panic!("{runs:?}") };
    assert_eq!((&*run.name, run.nodes, &*run.by), (&*last.text, 2, "schedule/often"));
    assert_eq!(admin.entity("default", &run.name).await.unwrap().policy.batch.as_deref(), Some("1"));
    // A leader that comes later does not start it again. The nodes have no agents: the run is in progress at the next due time.
    installation.restart_at(shortly_before_a_minute(2)).await;
    let admin = installation.admin();
    let after = outcome(&admin, "often", due + 1).await;
    let last = after.last.unwrap();
    assert_eq!((&*last.result, last.text), ("skipped", format!("run {} is in progress", run.name)));
    assert_eq!(after.last_run.as_deref(), Some(&*run.name));
    assert_eq!(admin.runs("default").await.unwrap().items.len(), 1);
    assert!(
        told(&admin, "schedule.skipped", "often").await.contains(&format!("run {} is in progress", run.name))
    );
}

#[tokio::test]
async fn what_cannot_be_started_says_why_and_what_was_missed_is_started_late_or_not_at_all() {
    let mut installation = Installation::new().await;
    installation.restart_at(shortly_before_a_minute(0)).await;
    let admin = installation.admin();
    let within =
        |deadline: &str| ScheduleSpec { starting_deadline: Some(deadline.into()), ..spec("* * * * *") };
    admin.set_schedule("default", "patient", &within("1h")).await.unwrap();
    let strict = admin.set_schedule("default", "strict", &within("10s")).await.unwrap();
    let due = strict.next_ms.unwrap();
    let failed = outcome(&admin, "patient", due).await.last.unwrap();
    assert_eq!(failed.result, "failed");
    assert!(failed.text.contains("no node matches"), "{}", failed.text);
    outcome(&admin, "strict", due).await;
    installation.node("db-1").await;
    // Down for some minutes, and back between two due times.
    let later = Timestamp::from_millis(due + 5 * MINUTE + 30_000);
    installation.restart_at(Clock::system().set_to(later)).await;
    let admin = installation.admin();
    let failed = outcome(&admin, "patient", due + 5 * MINUTE).await.last.unwrap();
    assert_eq!((&*failed.result, &*failed.text), ("failed", "cannot find workflow backup"));
    outcome(&admin, "strict", due + MINUTE).await;
    let skipped = told(&admin, "schedule.skipped", "strict").await;
    assert_eq!(skipped, ["no server could start it within 10s"]);
}

#[tokio::test]
async fn a_schedule_changes_at_a_revision_and_its_runs_go_on_without_it() {
    let installation = Installation::new().await;
    let admin = installation.admin();
    let made = admin.only_at(0).set_schedule("default", "nightly", &spec("30 3 * * *")).await.unwrap();
    let again = admin.set_schedule("default", "nightly", &spec("30 3 * * *")).await.unwrap();
    assert_eq!(again, made);
    let suspended = ScheduleSpec { suspended: true, ..spec("30 3 * * *") };
    let after = admin.only_at(1).set_schedule("default", "nightly", &suspended).await.unwrap();
    assert_eq!((after.revision, after.next_ms), (2, None));
    let (code, detail) = problem(admin.only_at(1).set_schedule("default", "nightly", &spec("@daily")).await);
    assert_eq!(code, Code::Conflict, "{detail}");
    assert!(detail.contains("it is at revision 2, by admin; nothing was changed"), "{detail}");
    for (changed, said) in [
        (
            ScheduleSpec { cron: "0 25 * * *".into(), ..spec("") },
            "cron: \"0 25 * * *\" is not a cron expression",
        ),
        (ScheduleSpec { time_zone: Some("Berlin".into()), ..spec("@daily") }, "time_zone: \"Berlin\""),
        (ScheduleSpec { filter: " ".into(), ..spec("@daily") }, "filter: missing"),
        (ScheduleSpec { filter: "role=(".into(), ..spec("@daily") }, "filter: "),
        (ScheduleSpec { workflow: "A b".into(), ..spec("@daily") }, "workflow: "),
        (ScheduleSpec { starting_deadline: Some("8d".into()), ..spec("@daily") }, "starting_deadline: 8d"),
        (
            ScheduleSpec { policy: Policy { retries: Some(1), ..Policy::default() }, ..spec("@daily") },
            "policy.retries: ",
        ),
    ] {
        let (code, detail) = problem(admin.set_schedule("default", "nightly", &changed).await);
        assert_eq!(code, Code::Invalid, "{detail}");
        assert!(detail.contains(said), "{said}: {detail}");
    }
    admin.delete_schedule("default", "nightly").await.unwrap();
    assert_eq!(problem(admin.schedule("default", "nightly").await).0, Code::NotFound);
    assert_eq!(problem(admin.delete_schedule("default", "nightly").await).0, Code::NotFound);
}

#[tokio::test]
async fn a_schedule_needs_the_right_to_start_its_runs_on_every_node() {
    let installation = Installation::new().await;
    let some = with(&installation, "some", &["get *", "update schedule"]).await;
    let (code, detail) = problem(some.set_schedule("default", "nightly", &spec("@daily")).await);
    assert_eq!(code, Code::Forbidden);
    assert!(detail.contains("do not cover the claim \"update run/backup in default\""), "{detail}");
    let few = with(&installation, "few", &["get node/db-*", "update schedule,run"]).await;
    let (code, detail) = problem(few.set_schedule("default", "nightly", &spec("@daily")).await);
    assert_eq!(code, Code::Forbidden);
    assert!(detail.contains("do not cover the claim \"get node in default\""), "{detail}");
    let apply = json!({"documents": [{
        "kind": "schedule", "name": "nightly", "workflow": "backup", "filter": "all", "cron": "@daily",
    }]});
    let apply = serde_json::from_value(apply).unwrap();
    let (code, detail) = problem(few.apply("default", &apply).await);
    assert_eq!(code, Code::Forbidden);
    assert!(detail.contains("do not cover the claim \"get node in default\""), "{detail}");
    let enough =
        with(&installation, "enough", &["get node in default", "update schedule", "update run/backup"]).await;
    enough.set_schedule("default", "nightly", &spec("@daily")).await.unwrap();
    assert_eq!(problem(enough.schedule("default", "nightly").await).0, Code::Forbidden);
}
