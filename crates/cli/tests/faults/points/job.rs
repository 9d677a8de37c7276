//! An agent or the server dies at every named moment of a job of a run: no task that is not idempotent runs twice, and a run goes on or
//! says that its job is lost.

use std::collections::BTreeMap;

use bellwether_rt::fail::FailPoint;

use super::{small, under};
use crate::bed::Bed;

const TASKS: [&str; 2] = ["one", "two"];

/// Where nobody can know whether the script of a job ran: the ledger has it as running. What is stored first at its end is that nothing
/// runs any more, and only then how it ended.
const UNSURE: [FailPoint; 4] =
    [FailPoint::JobBegun, FailPoint::ProgramStarted, FailPoint::ProgramEnded, FailPoint::EndStored];

/// A server, and agents that run a workflow of two tasks, each of which notes that it ran.
async fn with_workflow(agents: usize) -> Bed {
    let sections = "tasks = \"allow\"".to_owned();
    let bed = Bed::start(bellwether_testbed::Options { sections, ..small(0, 1, agents) }).await;
    for (stage, more) in [("once", ""), ("again", "idempotent: true\n")] {
        let names = TASKS.map(|task| format!("{task}-{stage}"));
        let mut documents = String::new();
        for name in &names {
            let note = bed.inner.home("ran").display().to_string();
            documents.push_str(&format!(
                "kind: task\nname: {name}\n{more}steps:\n  - name: note\n    script:\n      text: |\n        \
                 echo {{{{ run }}}} {{{{ node.name }}}} {{{{ task }}}} >> {note}\n        sleep 0.3\n---\n"
            ));
        }
        let names = names.join(", ");
        documents.push_str(&format!("kind: stage\nname: {stage}\ntasks: [{names}]\n---\n"));
        documents.push_str(&format!("kind: workflow\nname: {stage}\nstages: [{stage}]\n"));
        let file = bed.inner.home(&format!("{stage}.yaml"));
        std::fs::write(&file, documents).unwrap();
        bed.run(1, &["apply", "-f", &file.display().to_string()]);
    }
    bed
}

/// Starts a run on every node, one after the other; answers its name.
fn start(bed: &Bed, workflow: &str) -> String {
    let run = bed.run(1, &["workflow", "run", workflow, "-l", "all", "--batch", "1", "-o", "name"]);
    run.trim().trim_start_matches("run/").to_owned()
}

/// How a run ended, or that it waits for a person.
async fn end_of(bed: &Bed, run: &str) -> String {
    let mut state = String::new();
    bed.wait_for(&format!("{run} ends"), async || {
        let shown: serde_json::Value =
            serde_json::from_str(&bed.run(1, &["run", "get", run, "-o", "json"])).unwrap();
        state = shown.get("state").and_then(serde_json::Value::as_str).unwrap().to_owned();
        ["succeeded", "paused"].contains(&state.as_str())
    })
    .await;
    state
}

/// How often each task of a run ran, by node and task.
fn times(bed: &Bed, run: &str) -> BTreeMap<String, usize> {
    let noted = std::fs::read_to_string(bed.inner.home("ran")).unwrap_or_default();
    let mut times = BTreeMap::new();
    for line in noted.lines().filter_map(|line| line.strip_prefix(&format!("{run} "))) {
        *times.entry(line.to_owned()).or_default() += 1;
    }
    times
}

/// How many jobs of a run are lost.
fn lost(bed: &Bed, run: &str) -> String {
    bed.run(1, &["job", "list", "state = lost", "--run", run, "--count"]).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_at_every_named_moment_of_a_job_runs_it_once_at_most_and_says_what_is_lost() {
    let mut bed = with_workflow(1).await;
    let others = under("apply.").into_iter().filter(|point| *point != FailPoint::ProcessStarted);
    for point in under("job.").into_iter().chain(others) {
        let is_of_order = matches!(point, FailPoint::OrderReceived | FailPoint::OrderStored);
        let passings: &[u32] = if is_of_order { &[0] } else { &[0, 1] };
        for (passings, workflow) in passings.iter().flat_map(|count| [(*count, "once"), (*count, "again")]) {
            dies_in_a_job(&mut bed, (point, passings), workflow).await;
        }
    }
    bed.obey("stop agent-1");
}

/// The agent dies at the point in a run, and is there again.
async fn dies_in_a_job(bed: &mut Bed, (point, passings): (FailPoint, u32), workflow: &str) {
    bed.obey("kill agent-1");
    bed.arm("agent-1", point, passings);
    let run = start(bed, workflow);
    bed.killed("agent-1");
    bed.obey("start agent-1");
    let state = end_of(bed, &run).await;
    let ran = times(bed, &run);
    let is_unsure = UNSURE.contains(&point);
    let most = if workflow == "again" && is_unsure { 2 } else { 1 };
    assert!(ran.values().all(|times| *times <= most), "{}: {run}: {ran:?}", point.name());
    if workflow == "once" && is_unsure {
        assert_eq!((&*state, &*lost(bed, &run)), ("paused", "1"), "{}: {run}", point.name());
        bed.run(1, &["rollout", "abort", &run]);
        bed.run(1, &["node", "runnable", "agent-1"]);
    } else {
        assert_eq!((&*state, &*lost(bed, &run)), ("succeeded", "0"), "{}: {run}", point.name());
        assert_eq!(ran.len(), TASKS.len(), "{}: {run}: {ran:?}", point.name());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_at_every_named_moment_of_a_run_has_no_task_run_twice() {
    let mut bed = with_workflow(2).await;
    let decided = [FailPoint::VerdictReached, FailPoint::VerdictCommitted, FailPoint::OrdersDecided];
    let told = [FailPoint::OrdersCommitted, FailPoint::OrderUnsent];
    let kept = [FailPoint::JournalWritten, FailPoint::JournalSynced, FailPoint::GroupShown];
    let points = decided.iter().chain(&told).chain(&kept).chain(&[FailPoint::GroupAcknowledged]);
    for point in points {
        let run = start(&bed, "once");
        bed.wait_for("it begins", async || !times(&bed, &run).is_empty()).await;
        bed.obey("kill server-1");
        bed.arm("server-1", *point, 0);
        bed.killed("server-1");
        bed.obey("start server-1");
        assert_eq!(end_of(&bed, &run).await, "succeeded", "{}: {run}", point.name());
        let ran = times(&bed, &run);
        assert_eq!(ran.len(), 2 * TASKS.len(), "{}: {run}: {ran:?}", point.name());
        assert!(ran.values().all(|times| *times == 1), "{}: {run}: {ran:?}", point.name());
    }
}
