//! The soak as the agent measures it: a version succeeds once its machine confirms it, by asking every check again.

use bellwether_api::v1::target::TargetPhase;

use crate::bench::{Bench, lines};

/// An entity whose check notes that it was asked, passes while `good` exists, and is asked once an hour by itself.
fn entity(bench: &Bench) -> String {
    let (good, asked) = (bench.path("good"), bench.path("asked"));
    let check = format!("echo asked >> {}; test -e {}", asked.display(), good.display());
    format!(
        "[entity.web]\ndynamic = [\"true\"]\n[[entity.web.check]]\nname = \"good\"\nexec = [\"sh\", \"-c\", \"{check}\"]\n\
         interval = \"1h\"\nrise = 1\nfall = 1\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn every_check_is_asked_again_at_the_end_of_a_soak() {
    let bench = Bench::new().await;
    std::fs::write(bench.path("good"), "").unwrap();
    let agent = bench.agent(&entity(&bench)).await;
    bench.roll_for("v1", "2s").await;
    bench
        .until("it succeeds", async || {
            bench.target().await.filter(|target| target.phase == TargetPhase::Succeeded)
        })
        .await;
    // At the start, and at the end of the soak: its own turn comes in an hour.
    assert_eq!(lines(&bench.path("asked")).len(), 2);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_turned_bad_in_the_soak_is_found_at_its_end() {
    let bench = Bench::new().await;
    std::fs::write(bench.path("good"), "").unwrap();
    let agent = bench.agent(&entity(&bench)).await;
    bench.roll_for("v1", "2s").await;
    bench.until("it was asked", async || (!lines(&bench.path("asked")).is_empty()).then_some(())).await;
    std::fs::remove_file(bench.path("good")).unwrap();
    let failure = bench.failure().await;
    assert_eq!(failure.failing_checks, ["good"], "{failure:?}");
    agent.stop().await;
}
