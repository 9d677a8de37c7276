//! Outages in the middle of a rollout, longer than any deadline: a good version is not condemned by them, and a bad one is
//! not promoted.

use std::time::Duration;

use crate::place::{PROGRAM, Setup, done, free_port, page, text, wait_for};

/// Longer than the deadline of the rollouts here.
const AWAY: Duration = Duration::from_secs(9);

const NODES: [&str; 3] = ["web-1", "web-2", "web-3"];

/// An agent's sections: a service that takes a moment to update, and says of version v3 that it is broken.
fn sections(port: u16) -> String {
    format!(
        "[entity.web]\ntimeout = \"3s\"\nstatic = [\"/bin/sleep\", \"2\"]\n\n[entity.web.process]\nargv = [{PROGRAM:?}, \"demo-service\", \
         \"--port\", \"{port}\", \"--version-served\", \"{{version}}\"]\n\n\
         [[entity.web.check]]\nname = \"health\"\nhttp = \"http://127.0.0.1:{port}/health\"\ninterval = \"200ms\"\n"
    )
}

async fn fleet() -> (Setup, Vec<u16>) {
    let mut place = Setup::new().await;
    let ports: Vec<u16> = NODES.iter().map(|_| free_port()).collect();
    for (name, port) in NODES.iter().zip(&ports) {
        place.start_agent(name, &sections(*port));
    }
    let policy = ["--batch", "1", "--soak", "2s", "--deadline", "7s"];
    done(&place, &[&["entity", "set", "web", "--selector", "role=web"], &policy[..]].concat());
    done(&place, &["rollout", "start", "web", "v1", "--batch", "100%", "-w", "--timeout", "90s"]);
    (place, ports)
}

async fn restart(place: &mut Setup) {
    place.kill_server();
    tokio::time::sleep(AWAY).await;
    place.start_server().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_version_survives_a_server_that_is_away_for_longer_than_its_deadline() {
    let (mut place, ports) = fleet().await;
    done(&place, &["rollout", "start", "web", "v2"]);
    // Away before anybody could be assigned, while the first target applies, and while the next one soaks.
    restart(&mut place).await;
    place.until("a target is in flight", |view| view.counts.in_flight == 1).await;
    restart(&mut place).await;
    place.until("a target has succeeded", |view| view.counts.succeeded >= 1).await;
    place.until("another one is in flight", |view| view.counts.in_flight == 1).await;
    wait_for("it runs the new version", async || {
        let pages = [page(ports[0]).await, page(ports[1]).await, page(ports[2]).await];
        pages.iter().flatten().filter(|(_, text)| text == "v2").count() >= 2
    })
    .await;
    restart(&mut place).await;
    let view = place.ended().await;
    assert_eq!(view.progress.last_known_good.as_deref(), Some("v2"), "{view:#?}");
    assert!(view.progress.bad.is_empty(), "{:#?}", view.progress.bad);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_version_is_known_bad_after_the_server_was_away() {
    let (mut place, ports) = fleet().await;
    done(&place, &["rollout", "start", "web", "v3"]);
    place.until("a target is in flight", |view| view.counts.in_flight == 1).await;
    restart(&mut place).await;
    let view = place.ended().await;
    assert_eq!(view.progress.last_known_good.as_deref(), Some("v1"));
    assert_eq!(view.progress.bad.first().map(|bad| bad.version.as_str()), Some("v3"), "{view:#?}");
    for port in ports {
        wait_for("it is back on v1", async || page(port).await == Some((200, "v1".to_owned()))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_whose_agent_is_away_for_longer_than_its_deadline_goes_on_when_it_is_back() {
    let (mut place, _ports) = fleet().await;
    done(&place, &["rollout", "start", "web", "v2"]);
    place.until("web-1 is in flight", |view| view.counts.in_flight == 1).await;
    place.kill_agent("web-1");
    tokio::time::sleep(AWAY).await;
    place.resume_agent("web-1");
    let view = place.ended().await;
    assert_eq!(view.progress.last_known_good.as_deref(), Some("v2"), "{view:#?}");
    assert!(view.progress.bad.is_empty(), "{:#?}", view.progress.bad);
    assert_eq!(view.counts.succeeded, 3, "{:#?}", view.counts);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soak_that_ran_out_while_the_server_and_the_machine_were_dead_is_no_success() {
    let (mut place, _ports) = fleet().await;
    done(&place, &["rollout", "start", "web", "v2"]);
    // The machine dies while it soaks, and the server with it; the soak is over when only the server is back.
    let soaking = |view: &str| view.contains("healthy for");
    wait_for("web-1 soaks", async || soaking(&text(&place.run(&["why", "target/web/web-1"]).stdout))).await;
    place.kill_server();
    place.kill_agent("web-1");
    tokio::time::sleep(AWAY).await;
    place.start_server().await;
    let why = || text(&place.run(&["why", "target/web/web-1"]).stdout);
    wait_for("why names the wait", async || {
        why().contains("waits for its report after the outage, at most ")
    })
    .await;
    place
        .until("it is given up", |view| {
            assert_eq!(view.counts.succeeded, 0, "nobody has seen web-1 since");
            view.counts.in_flight == 0
                || view.rollout.as_ref().is_some_and(|rollout| rollout.batches.len() > 1)
        })
        .await;
    place.resume_agent("web-1");
    let view = place.ended().await;
    assert_eq!(view.progress.last_known_good.as_deref(), Some("v2"), "{view:#?}");
    assert!(view.progress.bad.is_empty(), "{:#?}", view.progress.bad);
}
