//! Probes by commands on real processes: what each says is the state of its store, and nothing that a command started outlives it.

use std::path::Path;

use bellwether_api::v1::probes::DataStore;
use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Setup, wait_for};
use crate::story_locks::lives;
use crate::story_workflows::lines;

/// A probe by a script.
fn probe(place: &Setup, name: &str, script: &str, timeout: &str) -> String {
    let path = place.path(&format!("{name}.sh"));
    std::fs::write(&path, script).unwrap();
    format!("[probe.{name}]\nexec = [\"/bin/sh\", {path:?}]\ninterval = \"200ms\"\ntimeout = {timeout:?}\n")
}

async fn stores(place: &Setup) -> std::collections::BTreeMap<String, DataStore> {
    let probes = place.client().node("default", "db-1").await.unwrap().probes;
    probes.map(|probes| probes.stores).unwrap_or_default()
}

fn pids(path: &str) -> Vec<Pid> {
    lines(path).iter().map(|line| Pid::from_raw(line.parse().unwrap()).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_command_is_read_and_what_else_it_does_is_a_reason() {
    let mut place = Setup::new().await;
    let up = r#"echo noise >&2; echo '{"state":"up","facts":{"software":"our-db","shards":{"0":{"role":"primary","offset":{"amount":3,"unit":"bytes"}}}}}'"#;
    let of = [
        ("good", up, "60s", "up", ""),
        ("refusing", r#"echo '{"state":"down","reason":"no quorum"}'"#, "60s", "down", "no quorum"),
        ("failing", "echo oops >&2; exit 3", "60s", "unknown", "exit code 3: oops"),
        (
            "nonsense",
            "echo '{}'",
            "60s",
            "unknown",
            "its answer is not that of a probe: missing field `state` at line 1 column 2",
        ),
        ("long", "yes | head -c 20000000", "60s", "unknown", "its answer has more than 1048576 bytes"),
        ("slow", "sleep 600", "700ms", "unknown", "killed after its timeout"),
        ("endless", "yes", "700ms", "unknown", "killed after its timeout"),
    ];
    let missing = "[probe.missing]\nexec = [\"/no/such\"]\n".to_owned();
    let sections: String =
        of.iter().map(|(name, script, timeout, ..)| probe(&place, name, script, timeout)).collect();
    place.start_agent("db-1", &(sections + &missing));
    wait_for("every probe is told", async || stores(&place).await.len() == of.len() + 1).await;
    let told = stores(&place).await;
    for (name, _, _, state, reason) in of {
        let store = &told[name];
        assert_eq!(store.state.as_str(), state, "{name}: {}", store.reason);
        assert!(store.reason.contains(reason), "{name}: {}", store.reason);
    }
    assert_eq!(told["good"].facts.shards["0"].role.as_str(), "primary");
    assert!(told["missing"].reason.starts_with("cannot start: /no/such: "), "{}", told["missing"].reason);
}

/// Writes its number and that of a child, which has a session of its own, then does this.
fn hiding(pids: &str, then: &str) -> String {
    format!(
        "env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; sleep 600; true' >/dev/null 2>&1 &\n\
         echo $$ >> {pids}\nuntil [ \"$(wc -l < {pids})\" -ge 2 ]; do sleep 0.05; done\n{then}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_started_is_killed_at_its_end_at_its_timeout_and_with_its_agent() {
    let mut place = Setup::new().await;
    let [ending, hanging, waiting] =
        ["ending", "hanging", "waiting"].map(|name| place.path(&format!("{name}.pids")));
    let sections = [
        probe(&place, "ending", &hiding(&ending, "echo '{\"state\": \"up\"}'"), "60s"),
        probe(&place, "hanging", &hiding(&hanging, "sleep 600"), "5s"),
        probe(&place, "waiting", &hiding(&waiting, "sleep 600"), "600s"),
    ];
    place.start_agent("db-1", &sections.concat());
    for path in [&ending, &hanging] {
        // The first of them had two; the next run has begun then.
        wait_for("it is asked again", async || lines(path).len() > 2).await;
        assert!(!pids(path).into_iter().take(2).any(lives), "{path}: what it started goes on");
    }
    wait_for("it waits", async || lines(&waiting).len() == 2).await;
    place.stop_agent("db-1");
    let all = || [&ending, &hanging, &waiting].into_iter().flat_map(|path| pids(path));
    wait_for("all of it ends with the agent", async || !all().any(lives)).await;

    std::fs::remove_file(&waiting).unwrap();
    place.resume_agent("db-1");
    wait_for("it waits again", async || Path::new(&waiting).exists() && lines(&waiting).len() == 2).await;
    place.kill_agent("db-1");
    wait_for("all of it ends with an agent that is killed", async || !all().any(lives)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_detached_in_so_many_words_goes_on() {
    let mut place = Setup::new().await;
    let (stays, ran) = (place.path("stays"), place.path("ran"));
    let script = format!(
        "[ -e {stays} ] || BELLWETHER_DETACHED=true setsid sh -c 'echo $$ > {stays}; sleep 600; true' >/dev/null 2>&1 &\n\
         until [ -s {stays} ]; do sleep 0.05; done\necho ran >> {ran}\necho '{{\"state\": \"up\"}}'"
    );
    let section = probe(&place, "db", &script, "60s");
    place.start_agent("db-1", &section);
    wait_for("it is asked again", async || lines(&ran).len() > 1).await;
    let stay = pids(&stays);
    assert!(stay.iter().all(|pid| lives(*pid)), "it was ended");
    for pid in stay {
        kill_process(pid, Signal::KILL).unwrap();
    }
}
