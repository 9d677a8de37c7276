//! A task that asks for the end of a boot: no other job and no action begins on its node before that, however often the agent starts
//! again; they begin once somebody gives it up.

use crate::place::{Setup, done, wait_for};
use crate::story_workflows::{ALLOWED, apply, booted, lines, reports, start, state, why};

/// A run whose task asks for a reboot that does not come, and two runs and an action behind it; answers the runs.
async fn rebooting(place: &mut Setup, on: &[String], (rebooted, out): (&str, &str)) -> (String, [String; 2]) {
    let says = format!("cat /proc/sys/kernel/random/boot_id >> {out}");
    let sections = format!(
        "{ALLOWED}\nreboot_command = [\"sh\", \"-c\", \"echo reboot >> {rebooted}\"]\n\
         [action.says]\nrun = [\"sh\", \"-c\", {says:?}]\n[entity.says]\naction = \"says\"\n"
    );
    place.start_agent_on(on, "web-1", &sections);
    wait_for("the agent reports", async || reports(place, "web-1")).await;
    let gate = place.path("gate");
    apply(place, &[("boots", "", &format!("while [ ! -e {gate} ]; do sleep 0.1; done\nexit 64"))]);
    let first = start(place, &[]);
    wait_for("it runs", async || why(place, &first, "web-1").contains("task boots")).await;
    apply(place, &[("says", "", &says)]);
    let behind = [start(place, &["--queue"]), start(place, &["--queue"])];
    done(place, &["entity", "set", "says", "--selector", "role=web", "--action", "says", "--soak", "0s"]);
    done(place, &["rollout", "start", "says"]);
    let in_progress = format!("run {first} is in progress on this node");
    for (waiting, reason) in
        [(&*behind[0], &*in_progress), (&*behind[1], &*in_progress), ("says", "another job or action runs")]
    {
        wait_for("it waits", async || why(place, waiting, "web-1").contains(reason)).await;
    }
    std::fs::write(gate, "").unwrap();
    wait_for("the machine is to reboot", async || lines(rebooted).len() == 1).await;
    let reason = format!("run {first} has asked for the machine to reboot");
    wait_for("the action says why", async || why(place, "says", "web-1").contains(&reason)).await;
    for run in &behind {
        wait_for("the run waits", async || why(place, run, "web-1").contains(&in_progress)).await;
    }
    (first, behind)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_job_and_no_action_begins_between_the_end_of_a_task_and_the_reboot_that_it_asked_for() {
    let mut place = Setup::new().await;
    let (rebooted, out) = (place.path("rebooted"), place.path("out"));
    let boot = booted(&place, "boot-1");
    let (first, behind) = rebooting(&mut place, &boot, (&rebooted, &out)).await;
    for starts in 2..6 {
        if starts % 2 == 0 {
            place.stop_agent("web-1")
        } else {
            place.kill_agent("web-1")
        }
        place.resume_agent_on(&boot, "web-1");
        wait_for("it asks again in the same boot", async || lines(&rebooted).len() == starts).await;
    }
    assert!(lines(&out).is_empty(), "something began before the reboot");
    place.kill_agent("web-1");
    let boot = booted(&place, "boot-2");
    place.resume_agent_on(&boot, "web-1");
    for run in [&first, &behind[0], &behind[1]] {
        wait_for("it ends", async || state(&place, run) == "succeeded").await;
    }
    done(&place, &["rollout", "status", "says", "--wait", "--timeout", "60s"]);
    assert_eq!(lines(&out), ["boot-2"; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_reboot_never_comes_lets_others_begin_once_it_is_aborted() {
    let mut place = Setup::new().await;
    let (rebooted, out) = (place.path("rebooted"), place.path("out"));
    let boot = booted(&place, "boot-1");
    let (first, behind) = rebooting(&mut place, &boot, (&rebooted, &out)).await;
    place.stop_agent("web-1");
    place.resume_agent_on(&boot, "web-1");
    wait_for("it asks again in the same boot", async || lines(&rebooted).len() == 2).await;
    done(&place, &["rollout", "abort", &first]);
    for run in &behind {
        wait_for("it ends", async || state(&place, run) == "succeeded").await;
    }
    done(&place, &["rollout", "status", "says", "--wait", "--timeout", "60s"]);
    assert_eq!(lines(&out), ["boot-1"; 3]);
}
