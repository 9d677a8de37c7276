//! Output of a supervised process: its end, and what it writes from then on, read from its node by way of the server.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::place::{Setup, text, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_a_process_is_read_from_its_node_and_followed() {
    let mut place = Setup::new().await;
    let input = place.path("input");
    assert!(std::process::Command::new("mkfifo").arg(&input).status().unwrap().success());
    // Held open by both, so that neither waits for the other to open it.
    let script =
        format!("seq 5000; echo begun; exec 3<>{input}; while read line <&3; do echo got $line; done");
    place.start_agent("web-1", &format!("[entity.app.process]\nargv = [\"/bin/sh\", \"-c\", {script:?}]\n"));
    let nothing = place.run(&["node", "logs", "web-1", "app"]);
    assert!(!nothing.status.success(), "{}", text(&nothing.stdout));
    for args in [
        ["entity", "set", "app", "--selector", "all", "--soak", "0"].as_slice(),
        &["rollout", "start", "app", "v1"],
    ] {
        let done = place.run(args);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    wait_for("the end of the output", async || {
        text(&place.run(&["node", "logs", "web-1", "app"]).stdout).ends_with("5000\nbegun\n")
    })
    .await;
    let end = text(&place.run(&["node", "logs", "web-1", "app"]).stdout).to_owned();
    assert!(end.len() <= 16 << 10 && !end.starts_with("1\n"), "only its end: {}", end.len());
    let first = end.lines().next().unwrap();
    assert!(first.len() == 4 && first.parse::<u32>().is_ok(), "it begins with a whole line: {first}");
    let mut follower = place
        .command(&["node", "logs", "web-1", "app", "-f"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut until = |wanted: &str| lines.by_ref().find(|line| line.as_ref().unwrap() == wanted).is_some();
    assert!(until("begun"));
    std::fs::write(&input, "one\n").unwrap();
    assert!(until("got one"));
    std::fs::write(&input, "two\n").unwrap();
    assert!(until("got two"));
    follower.kill().unwrap();
    follower.wait().unwrap();
    let unknown = place.run(&["node", "logs", "web-1", "other"]);
    let said = text(&unknown.stderr);
    assert!(said.contains("no process of other was started on this node"), "{said}");
    let nowhere = place.run(&["node", "logs", "web-9", "app"]);
    assert!(text(&nowhere.stderr).contains("cannot find node web-9"), "{}", text(&nowhere.stderr));
}
