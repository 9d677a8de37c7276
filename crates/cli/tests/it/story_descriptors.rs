//! Descriptors that were open when an agent was started: no command of the node has them.

use crate::place::{Setup, done, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn descriptors_that_the_agent_was_started_with_do_not_reach_its_commands() {
    let mut place = Setup::new().await;
    let secret = place.path("server/admin-token");
    let list = place.path("descriptors");
    let script = format!("ls -l /proc/$$/fd > {list}.new; mv {list}.new {list}");
    let with_open = ["sh", "-c", &format!("exec 9<{secret}; exec \"$@\""), "sh"].map(str::to_owned);
    place.start_agent_on(
        &with_open,
        "web-1",
        &format!("[entity.app]\nstatic = [\"sh\", \"-c\", {script:?}]\n"),
    );
    done(&place, &["entity", "set", "app", "--selector", "all", "--soak", "0"]);
    done(&place, &["rollout", "start", "app", "v1"]);
    wait_for("the command has run", async || std::path::Path::new(&list).exists()).await;
    let listed = std::fs::read_to_string(&list).unwrap();
    assert!(listed.contains(" 2 -> ") && !listed.contains("admin-token"), "{listed}");
}
