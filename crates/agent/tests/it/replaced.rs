//! Service instances of an entity follow its supervised process: withdrawn before it is stopped, back once their checks pass with
//! the next one, and untouched by a restart of the agent.

use std::net::TcpListener;
use std::time::Duration;

use tokio::time::Instant;

use crate::bench::{Bench, lines};
use crate::restart::service_events;
use crate::service::{alive, entity, free_port, kill, started};
use crate::services::{level, until};

/// The entity `web` with a service `site` on its port, which would pass for a long time without an answer.
fn site(bench: &Bench, port: u16, drain: &str) -> String {
    let entity = entity(bench, port);
    let entity = entity.replace("[entity.web.process]\n", &format!("[entity.web.process]\n{drain}"));
    format!(
        "{entity}[[service]]\nname = \"site\"\nentity = \"web\"\nport = {port}\n[[service.check]]\nname = \"http\"\n\
         http = \"http://127.0.0.1:{port}/\"\ninterval = \"100ms\"\nfall = 100\n"
    )
}

async fn is(bench: &Bench, wanted: &str) {
    until(&format!("it is {wanted}"), async || level(bench, "site").await.as_deref() == Some(wanted)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_is_withdrawn_before_its_process_is_stopped_and_returns_with_the_next_one() {
    let bench = Bench::new().await;
    let config = site(&bench, free_port(), "drain_time = \"3s\"\n");
    let agent = bench.agent(&format!("services_on_exit = \"stop\"\n{config}")).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    is(&bench, "passing").await;
    let (old, _) = started(&bench)[0].clone();
    bench.roll("v2").await;
    is(&bench, "failing").await;
    assert!(alive(old) && started(&bench).len() == 1, "it is withdrawn first, and has its drain time");
    is(&bench, "passing").await;
    let all = started(&bench);
    assert!(all.len() == 2 && !alive(old) && alive(all[1].0), "{all:?}");
    bench.runs("v2").await;
    let events = service_events(&bench).await;
    let [.., withdrawn, back] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(withdrawn, "service.failing: its process is being replaced");
    assert!(back.starts_with("service.passing"), "{events:?}");

    // A process that ends by itself takes its instance along, long before 100 failures.
    kill(all[1].0);
    until("it is failing, or was", async || {
        let events = service_events(&bench).await;
        events.iter().any(|event| event == "service.failing: the process ended: killed by signal 9")
    })
    .await;
    is(&bench, "passing").await;
    assert_eq!(started(&bench).len(), 3);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_agent_leaves_the_instance_of_a_running_process_as_it_is() {
    let bench = Bench::new().await;
    let config = site(&bench, free_port(), "");
    let agent = bench.agent(&config).await;
    bench.roll("v1").await;
    bench.runs("v1").await;
    is(&bench, "passing").await;
    let before = service_events(&bench).await;
    agent.stop().await;
    let agent = bench.agent_again(&format!("services_on_exit = \"stop\"\n{config}"));
    bench
        .says("it runs", |status| {
            status.alive && status.entities.get("web").is_some_and(|web| web.health == "healthy")
        })
        .await;
    let restarted = Instant::now();
    while restarted.elapsed() < Duration::from_secs(3) {
        assert_eq!(level(&bench, "site").await.as_deref(), Some("passing"));
    }
    assert_eq!(service_events(&bench).await, before);
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_whose_process_never_stays_up_is_registered_once_and_never_functional() {
    let bench = Bench::new().await;
    // Somebody else answers the check: each attempt would pass it at once.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, starts) = (other.local_addr().unwrap().port(), bench.path("starts"));
    let script = format!("echo up >> {}; sleep 0.2; echo Address already in use; exit 1", starts.display());
    let service = |name: &str, check: &str| {
        format!("[[service]]\nname = \"{name}\"\nentity = \"web\"\nport = {port}\n{check}")
    };
    let check = format!(
        "[[service.check]]\nname = \"port\"\ntcp = \"127.0.0.1:{port}\"\ninterval = \"1s\"\nrise = 2\n"
    );
    let config = format!(
        "[entity.web]\n[entity.web.process]\nargv = [\"/bin/sh\", \"-c\", \"{script}\"]\n{}{}",
        service("site", &check),
        service("bare", "")
    );
    let agent = bench.agent(&config).await;
    bench.roll("v1").await;
    bench.until("four attempts", async || (lines(&starts).len() >= 4).then_some(())).await;
    for name in ["site", "bare"] {
        assert_eq!(level(&bench, name).await.as_deref(), Some("failing"));
    }
    let events = service_events(&bench).await;
    let count = |kind: &str| events.iter().filter(|event| event.starts_with(kind)).count();
    assert_eq!(
        (count("service.registered"), count("service.passing"), count("service.deregistered")),
        (2, 0, 0),
        "{events:?}"
    );
    agent.stop().await;
}
