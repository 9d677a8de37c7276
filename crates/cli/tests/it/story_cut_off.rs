//! Cut off: the server dies with kill -9 in the middle of a rollout and comes back; agents die and come back; a minute
//! without a server changes nothing for the services.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;

use crate::place::{PROGRAM, Setup, free_port, page, text, wait_for};

const NODES: [&str; 4] = ["web-1", "web-2", "web-3", "web-4"];

/// An agent's sections: a service that says its version, and a static part that leaves a mark each time it runs.
fn sections(place: &Setup, name: &str, port: u16) -> String {
    let marks = place.path(&format!("{name}/marks"));
    let mark = format!("echo $BELLWETHER_VERSION >> {marks}; sleep 0.3");
    format!(
        "[entity.web]\nstatic = [\"/bin/sh\", \"-c\", {mark:?}]\n\n\
         [entity.web.process]\nargv = [{PROGRAM:?}, \"demo-service\", \"--port\", \"{port}\", \
         \"--version-served\", \"{{version}}\"]\nenv = {{ PLACE = {marks:?} }}\n\n\
         [[entity.web.check]]\nname = \"health\"\nhttp = \"http://127.0.0.1:{port}/health\"\ninterval = \"200ms\"\n"
    )
}

/// How often the static part of a version ran on a node.
fn marks(place: &Setup, name: &str, version: &str) -> usize {
    let text = std::fs::read_to_string(place.path(&format!("{name}/marks"))).unwrap_or_default();
    text.lines().filter(|line| *line == version).count()
}

async fn fleet() -> (Setup, BTreeMap<&'static str, u16>) {
    let mut place = Setup::new().await;
    let ports: BTreeMap<&str, u16> = NODES.into_iter().map(|name| (name, free_port())).collect();
    for (name, port) in &ports {
        let sections = sections(&place, name, *port);
        place.start_agent(name, &sections);
    }
    let set = place.run(&["entity", "set", "web", "--selector", "role=web", "--batch", "1", "--soak", "1s"]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    let started = place.run(&["rollout", "start", "web", "v1", "-w", "--timeout", "90s"]);
    assert!(started.status.success(), "{}{}", text(&started.stdout), text(&started.stderr));
    (place, ports)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_in_the_middle_of_a_rollout_goes_on_without_a_second_batch() {
    let (mut place, ports) = fleet().await;
    let started = place.run(&["rollout", "start", "web", "v2"]);
    assert!(started.status.success(), "{}", text(&started.stderr));
    for killed in 1..=3 {
        place.until("a target is in flight", |view| view.counts.in_flight == 1).await;
        place.kill_server();
        place.start_server().await;
        let view = place.until("the rollout is there again", |view| view.rollout.is_some()).await;
        assert!(view.counts.in_flight <= 1, "after kill {killed}: a second batch is in flight");
        let before = view.counts.succeeded;
        place.until("it goes on", |view| view.counts.succeeded > before).await;
    }
    let view = place.ended().await;
    assert_eq!(view.progress.last_known_good.as_deref(), Some("v2"));
    for (name, port) in &ports {
        assert_eq!(page(*port).await, Some((200, "v2".to_owned())));
        assert_eq!(marks(&place, name, "v2"), 1, "{name} applied v2 more than once");
    }
    let events = place.client().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "events were lost or doubled");
    let started = events.iter().filter(|event| event.kind == "rollout.started").count();
    assert_eq!(started, 2, "each rollout started once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_and_started_again_runs_nothing_twice_and_keeps_its_service() {
    let (mut place, ports) = fleet().await;
    let pids = service_pids(&place);
    place.kill_agent("web-1");
    assert_eq!(page(ports["web-1"]).await, Some((200, "v1".to_owned())), "the service died with its agent");
    place.resume_agent("web-1");
    wait_for("the agent is up again", async || {
        let node = place.client().node("default", "web-1").await.unwrap();
        node.presence.state == "up" && node.running.get("web").is_some_and(|version| version == "v1")
    })
    .await;
    let started = place.run(&["rollout", "start", "web", "v2", "-w", "--timeout", "90s"]);
    assert!(started.status.success(), "{}{}", text(&started.stdout), text(&started.stderr));
    assert_eq!(page(ports["web-1"]).await, Some((200, "v2".to_owned())));
    assert_eq!((marks(&place, "web-1", "v1"), marks(&place, "web-1", "v2")), (1, 1));
    assert_ne!(pids, service_pids(&place), "v2 is another process");
    assert_eq!(service_pids(&place).len(), NODES.len(), "no service runs twice");
}

/// Pids of the services of this place.
fn service_pids(place: &Setup) -> Vec<u32> {
    let ports = place.dir.path();
    let mut pids = Vec::new();
    for name in NODES {
        let config = std::fs::read_to_string(ports.join(name).join("agent.toml")).unwrap();
        let port = config.split("--port\", \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            if words.contains(&b"demo-service".as_slice()) && words.contains(&port.as_bytes()) {
                pids.push(pid);
            }
        }
    }
    pids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minute_without_a_server_changes_nothing_for_the_services_and_then_they_catch_up() {
    let (mut place, ports) = fleet().await;
    place.kill_server();
    let clock = Clock::system();
    let end = clock.now().plus(Span::from_secs(60));
    let mut fetched = 0;
    while clock.now() < end {
        for port in ports.values() {
            assert_eq!(page(*port).await, Some((200, "v1".to_owned())));
            fetched += 1;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(fetched > 100);
    place.start_server().await;
    // Each agent calls again at a moment of its own, later than the silence that this server takes for absence.
    wait_for("every agent reaches the server again", async || {
        NODES.iter().all(|name| {
            let log = std::fs::read_to_string(place.dir.path().join(format!("{name}.log"))).unwrap();
            log.contains("the control plane answers again")
        })
    })
    .await;
    let started = place.run(&["rollout", "start", "web", "v2", "-w", "--timeout", "90s"]);
    assert!(started.status.success(), "{}{}", text(&started.stdout), text(&started.stderr));
    for (name, port) in &ports {
        assert_eq!(page(*port).await, Some((200, "v2".to_owned())));
        assert_eq!(marks(&place, name, "v1"), 1, "{name} applied v1 again while it was cut off");
    }
}
