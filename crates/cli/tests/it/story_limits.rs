//! Limits of a real agent: what an entity runs has them, and what cannot be started with them is told.

use crate::place::{Setup, text, wait_for};

fn ok(place: &Setup, args: &[&str]) -> String {
    let done = place.run(args);
    assert!(done.status.success(), "{args:?}: {}{}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout).to_owned()
}

const VERSION: &str = "case $BELLWETHER_VERSION in \
    large) exec dd if=/dev/zero of=/dev/null bs=200M count=1;; \
esac";

#[tokio::test(flavor = "multi_thread")]
async fn what_an_entity_runs_has_its_limits() {
    let mut place = Setup::new().await;
    let dir = place.dir.path().display().to_string();
    let sections = format!(
        r#"[entity.web]
static = [["sh", "-c", "ulimit -n > {dir}/command; {VERSION}"], ["{dir}/program"]]
memory_max = "64M"
nofile = 64
process = {{ argv = ["sh", "-c", "ulimit -n > {dir}/process; exec sleep 600"] }}
"#
    );
    std::os::unix::fs::symlink("/bin/true", place.path("program")).unwrap();
    place.start_agent("web-1", &sections);
    ok(&place, &["entity", "set", "web", "--selector", "all", "--soak", "0", "--on-failure", "pause"]);
    ok(&place, &["rollout", "start", "web", "small"]);
    wait_for("a version that needs little runs", async || {
        ok(&place, &["rollout", "history", "web"]).contains("succeeded")
    })
    .await;
    for file in ["command", "process"] {
        assert_eq!(std::fs::read_to_string(place.path(file)).unwrap(), "64\n", "{file}");
    }
    ok(&place, &["rollout", "start", "web", "large"]);
    // Refused by the address space of the process, or ended with its cgroup.
    wait_for("a version that needs much fails", async || {
        let shown = ok(&place, &["why", "web-1"]);
        shown.contains("exhausted") || shown.contains("signal 9")
    })
    .await;
    ok(&place, &["rollout", "abort", "web"]);
    std::fs::remove_file(place.path("program")).unwrap();
    ok(&place, &["rollout", "start", "web", "missing"]);
    wait_for("a program that is not there is named", async || {
        let shown = ok(&place, &["why", "web-1"]);
        shown.contains("127") && shown.contains(&format!("cannot start {dir}/program: No such file"))
    })
    .await;
}
