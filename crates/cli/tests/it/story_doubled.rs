//! Two agents on copies of one data directory, as of a machine that was cloned: each finds that another one reports as its node, and says so.

use crate::place::{Setup, copied, done, text, wait_for};
use crate::story_workflows::installed;

/// Sets a status by way of the agent whose data are in this directory, once that runs.
fn sets(place: &Setup, home: &str, reason: &str) {
    let data = format!("{home}/data");
    place.run(&["update-status", "disk", "success", "--data-dir", &data, "--reason", reason]);
}

fn told(place: &Setup) -> String {
    text(&place.run(&["get-failures"]).stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_with_one_identity_are_told_of_until_one_of_them_has_another() {
    let mut place = installed(&["web-1"]).await;
    place.stop_agent("web-1");
    let (own, copy) = (place.path("web-1"), place.path("copy"));
    copied(&own, &copy);
    let config = std::fs::read_to_string(format!("{own}/agent.toml")).unwrap();
    std::fs::write(format!("{copy}/agent.toml"), config.replace(&own, &copy)).unwrap();
    place.resume_agent("web-1");
    place.resume_agent("copy");
    let mut round = 0;
    wait_for("both are told of", async || {
        round += 1;
        sets(&place, &own, &format!("own {round}"));
        sets(&place, &copy, &format!("copy {round}"));
        told(&place).contains("another agent reports as this node")
    })
    .await;
    assert!(done(&place, &["node", "list"]).contains("web-1"));
    place.stop_agent("copy");
    place.stop_agent("web-1");
    place.resume_agent("web-1");
    wait_for("it is the only one again", async || !told(&place).contains("another agent")).await;
}
