//! A Redis that was deleted and created anew under its name, and a backup of the control plane from before: what is recorded then is another ensemble,
//! and nodes leave the members of the newer one as they are.

use crate::place::{done, text, wait_for};
use crate::story_ensemble_overtaken::{address_of, founded};
use crate::story_redis_ensemble::{Writer, complete, kill, primary, programs, spec};

#[tokio::test(flavor = "multi_thread")]
async fn members_of_an_ensemble_that_was_created_anew_after_the_backup_are_left_alone() {
    let (mut place, port, _) = founded().await;
    place.back_up().await;
    done(&place, &["ensemble", "delete", "cache", "--yes", "-w"]);
    place.client().set_ensemble("default", "cache", &spec(3, port, false)).await.unwrap();
    let members = complete(&place, 3).await;
    let address = address_of(&primary(&members));
    let writer = Writer::start(vec![address.clone()]);
    writer.goes_on().await;
    let running = || members.iter().flat_map(|member| programs(port, member)).collect::<Vec<_>>();
    let pids = running();
    assert_eq!(pids.len(), 3);

    place.kill_server();
    place.put_back().await;
    let said = |args: &[&str]| text(&place.run(args).stdout);
    let why = ["why", "ensemble/cache"];
    wait_for("each node says so", async || {
        said(&why).matches("of another ensemble of this name").count() >= members.len()
    })
    .await;
    let told = said(&why);
    assert!(!told.contains("ensemble resume") && told.contains("ensemble delete cache"), "{told}");
    let resumed = place.run(&["ensemble", "resume", "cache", "--accept-data-loss", "--yes"]);
    assert!(text(&resumed.stderr).contains("ensemble delete cache"), "{}", text(&resumed.stderr));
    writer.goes_on().await;
    assert_eq!(running(), pids);

    // Deleted, the one that is recorded leaves them as they are.
    done(&place, &["ensemble", "delete", "cache", "--yes", "-w"]);
    wait_for("they are known", async || said(&["status"]).contains("3 members are not recorded")).await;
    writer.all_is_at(&address, "a namesake after a restore").await;
    assert_eq!(running(), pids);
    kill(&pids);
}
