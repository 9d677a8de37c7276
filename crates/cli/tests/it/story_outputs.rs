//! Outputs of tasks on real processes: what a task writes is kept with its job, shown without secrets, and read by later tasks of the run
//! on the node, also after its agent was killed; what is too large or no object fails the job.

use serde_json::{Value, json};

use crate::place::{Setup, code, done, text, wait_for};
use crate::story_jobs::states;
use crate::story_workflows::{ALLOWED, apply, installed, lines, reports, start, state, why};

/// The outputs of a job.
fn outputs(place: &Setup, job: &str) -> Value {
    let shown = done(place, &["job", "get", job, "-o", "json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    shown.get("outputs").cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn later_tasks_of_the_run_read_what_earlier_ones_wrote_on_their_node() {
    let place = installed(&["web-1", "web-2"]).await;
    let out = place.path("out");
    let probe = "printf '{\"port\": %s, \"tags\": [\"a\", \"b\"], \"node\": \"%s\"}' \
        5 \"$BELLWETHER_NODE\" > \"$BELLWETHER_OUTPUTS\"";
    let show = format!(
        "echo '{{{{ outputs[\"probe-it\"].node }}}} {{{{ outputs[\"probe-it\"].port + 1 }}}} {{{{ outputs[\"probe-it\"].tags | join(\"-\") }}}}' >> {out}\n\
         echo '{{{{ outputs.quiet.none | default(\"nothing\") }}}}' >> {out}"
    );
    apply(&place, &[("probe-it", "", probe), ("quiet", "", "true"), ("show", "", &show)]);
    let run = start(&place, &[]);
    wait_for("it succeeds", async || state(&place, &run) == "succeeded").await;
    let mut said = lines(&out);
    said.sort();
    assert_eq!(said, ["nothing", "nothing", "web-1 6 a-b", "web-2 6 a-b"]);
    let first = format!("{run}/web-1/0");
    let wrote = json!({"port": 5, "tags": ["a", "b"], "node": "web-1"});
    wait_for("they are told", async || outputs(&place, &first) == wrote).await;
    let shown = done(&place, &["job", "get", &first]);
    assert!(shown.contains("outputs   node = \"web-1\"\n          port = 5\n"), "{shown}");
    assert!(done(&place, &["job", "get", &format!("{run}/web-1/1")]).contains("outputs   -"));
    let listed = done(&place, &["job", "list", "-o", "json"]);
    assert!(!listed.contains("outputs"), "a list has none: {listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_survive_an_agent_that_is_killed_and_a_server_that_is() {
    let mut place = installed(&["web-1"]).await;
    let (begun, go, out) = (place.path("begun"), place.path("go"), place.path("out"));
    let reads = format!(
        "echo begun >> {begun}\nwhile [ ! -e {go} ]; do sleep 0.1; done\necho '{{{{ outputs.probe.id }}}}' >> {out}"
    );
    let probe = format!(
        "echo '{{\"id\": '$(date +%N | sed s/^0*//)'}}' | tee {}.wrote > \"$BELLWETHER_OUTPUTS\"",
        out
    );
    apply(&place, &[("probe", "", &probe), ("reads", "idempotent: true\n", &reads), ("last", "", &reads)]);
    let run = start(&place, &[]);
    wait_for("the second begins", async || lines(&begun).len() == 1).await;
    place.kill_agent("web-1");
    place.resume_agent("web-1");
    wait_for("it begins again", async || lines(&begun).len() == 2).await;
    place.kill_server();
    place.start_server().await;
    std::fs::write(&go, "").unwrap();
    wait_for("it succeeds", async || state(&place, &run) == "succeeded").await;
    let wrote: Value = serde_json::from_str(&lines(&format!("{out}.wrote")).concat()).unwrap();
    let id = wrote.get("id").unwrap().to_string();
    assert_eq!(lines(&out), [id.clone(), id], "the same for each, and the first task ran once");
    assert_eq!(outputs(&place, &format!("{run}/web-1/0")), wrote);
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_that_are_too_large_or_no_object_fail_the_job_and_say_why() {
    let place = installed(&["web-1"]).await;
    let large = |bytes: u32| format!("printf '{{\"a\":\"%0{}d\"}}' 0 > \"$BELLWETHER_OUTPUTS\"", bytes - 8);
    let (fits, above) = (large(16 << 10), large((16 << 10) + 1));
    let list = "echo '[1]' > \"$BELLWETHER_OUTPUTS\"; exit 64";
    let small = "echo '{\"a\": 1}' > \"$BELLWETHER_OUTPUTS\"";
    let of_task = "task big (1 of 1): the outputs of the task have more than 16384 bytes";
    let of_run =
        "task fifth (5 of 5): the outputs of all tasks of the run on this node have more than 65536 bytes";
    let cases: [(&[(&str, &str)], &str); 3] = [
        (&[("big", &above)], of_task),
        (&[("list", list)], "task list (1 of 1): its outputs are a list, and not a JSON object"),
        (&[("one", &fits), ("two", &fits), ("three", &fits), ("four", &fits), ("fifth", small)], of_run),
    ];
    for (tasks, reason) in cases {
        let tasks: Vec<(&str, &str, &str)> =
            tasks.iter().map(|(name, script)| (*name, "", *script)).collect();
        apply(&place, &tasks);
        let run = start(&place, &[]);
        wait_for("it fails", async || state(&place, &run) == "paused").await;
        let why = why(&place, &run, "web-1");
        assert!(why.contains(reason), "{reason}: {why}");
        let last = format!("web-1/{} failed", tasks.len() - 1);
        wait_for("it is told", async || states(&place, &run).last() == Some(&last)).await;
        assert!(outputs(&place, &format!("{run}/web-1/{}", tasks.len() - 1)).is_null());
        done(&place, &["rollout", "abort", &run]);
        done(&place, &["node", "runnable", "web-1"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_in_outputs_as_in_logs() {
    const SECRET: &str = "outputs-hunter2";
    let mut place = Setup::new().await;
    let conf = place.path("web-1/web.conf");
    let file =
        format!("{ALLOWED}\n[[entity.web.file]]\npath = {conf:?}\ntext = \"{{{{ params.password }}}}\"\n");
    place.start_agent("web-1", &file);
    wait_for("the agent reports", async || reports(&place, "web-1")).await;
    done(&place, &["param", "declare", "password", "--secret", "--type", "string"]);
    done(&place, &["profile", "set", "web", &format!("password={SECRET}"), "-q"]);
    done(&place, &["entity", "set", "web", "--selector", "role=web", "--profile", "web", "--soak", "100ms"]);
    done(&place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
    let script = format!(
        "cat {conf}\nprintf '{{\"url\": \"db://%s@host\"}}' \"$(cat {conf})\" > \"$BELLWETHER_OUTPUTS\""
    );
    apply(&place, &[("probe", "", &script)]);
    let run = start(&place, &[]);
    wait_for("it succeeds", async || state(&place, &run) == "succeeded").await;
    let job = format!("{run}/web-1/0");
    wait_for("it is told", async || outputs(&place, &job) == json!({"url": "db://***@host"})).await;
    let log = place.run(&["job", "logs", &job]);
    assert_eq!(code(&log), 0, "{}", text(&log.stderr));
    assert!(text(&log.stdout).contains("***") && !text(&log.stdout).contains(SECRET));
    let ledger = place.path(&format!("web-1/data/ledger/runs/{run}/work.json"));
    assert!(!std::fs::read_to_string(ledger).unwrap().contains(SECRET), "neither has the ledger");
}
