//! Reloads of an agent's configuration: on request and by SIGHUP, all of it or nothing, while its services go on.

use std::path::Path;
use std::time::Duration;

use bellwether_agent::status::AgentStatus;

use crate::place::{Setup, code, done, text, wait_for};

const NODE: &str = "web-1";

fn status(place: &Setup) -> AgentStatus {
    bellwether_agent::status::read(Path::new(&place.path("web-1/data"))).unwrap()
}

/// Reloads, and returns the exit code with everything that is printed.
fn reload(place: &Setup) -> (i32, String) {
    let output = place.run(&["agent", "reload", "--data-dir", &place.path("web-1/data")]);
    (code(&output), format!("{}{}", text(&output.stdout), text(&output.stderr)))
}

fn local_health(place: &Setup) -> String {
    let output =
        place.command(&["local-health"]).env("BELLWETHER_AGENT_DIR", place.path("web-1/data")).output();
    text(&output.unwrap().stdout)
}

/// Changes the agent's configuration.
fn change(place: &Setup, from: &str, to: &str) {
    let path = place.path("web-1/agent.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    assert!(config.contains(from), "{config}");
    std::fs::write(&path, config.replace(from, to)).unwrap();
}

async fn tags(place: &Setup, service: &str) -> Vec<String> {
    let view = place.client().service("default", service, None, Duration::ZERO).await;
    view.map_or_else(|_| Vec::new(), |view| view.instances.iter().flat_map(|one| one.tags.clone()).collect())
}

async fn service_events(place: &Setup) -> Vec<String> {
    let all = place.client().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    let all = all.into_iter().filter(|event| event.kind.starts_with("service."));
    all.map(|event| format!("{} {}", event.kind, event.subject)).collect()
}

/// A service whose check takes seconds to pass, and an entity whose static part takes as long as it is told to.
fn sections(place: &Setup) -> String {
    let (port, hold) = (place.port, place.path("hold"));
    let script = format!("echo begun >> {hold}.begun; while test -e {hold}; do sleep 0.05; done");
    format!(
        "service_dir = {:?}\n[[service]]\nname = \"web\"\ntags = [\"old\"]\n[[service.check]]\nname = \"port\"\n\
         tcp = \"127.0.0.1:{port}\"\ninterval = \"1s\"\nrise = 2\n\
         [entity.app]\nstatic = [\"/bin/sh\", \"-c\", {script:?}]\n",
        place.path("services")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_takes_over_the_whole_configuration_or_nothing_of_it() {
    let mut place = Setup::new().await;
    std::fs::create_dir(place.path("services")).unwrap();
    // A program left nonsense: the agent starts without it, and says so.
    std::fs::write(place.path("services/broken.json"), "{ nonsense").unwrap();
    let sections = sections(&place);
    place.start_agent(NODE, &sections);
    wait_for("the service passes", async || {
        service_events(&place).await.contains(&"service.passing service/web/web-1/web".to_owned())
    })
    .await;
    let health = local_health(&place);
    assert!(health.contains("configuration") && health.contains("broken.json"), "{health}");
    let (exit, said) = reload(&place);
    assert!(exit == 7 && said.contains("broken.json") && said.contains("stays in force"), "{exit}: {said}");

    // Valid again: by request.
    std::fs::remove_file(place.path("services/broken.json")).unwrap();
    change(&place, "\"old\"", "\"new\"");
    let events = service_events(&place).await;
    let (exit, said) = reload(&place);
    assert_eq!((exit, said.as_str()), (0, "configuration: reloaded\n"));
    wait_for("the new tag is registered", async || tags(&place, "web").await == ["new"]).await;
    assert_eq!(local_health(&place), "");
    let pid = status(&place).pid;

    // One mistake anywhere: nothing changes, with the reason in both places.
    change(&place, "\"new\"", "\"newest\"");
    change(&place, "rise = 2", "rise = 0");
    let (exit, said) = reload(&place);
    assert!(exit == 7 && said.contains("service.web.check.port.rise"), "{exit}: {said}");
    assert_eq!(tags(&place, "web").await, ["new"]);
    wait_for("the status says why", async || {
        let shown = text(&place.run(&["agent", "status", "--data-dir", &place.path("web-1/data")]).stdout);
        shown.contains("rise") && shown.contains("stays in force")
    })
    .await;
    assert!(local_health(&place).contains("rise"));

    // Mended: by signal.
    change(&place, "rise = 0", "rise = 3");
    place.hang_up_agent(NODE);
    wait_for("the newest tag is registered", async || tags(&place, "web").await == ["newest"]).await;
    assert_eq!(service_events(&place).await, events, "the service was healthy all the time");
    let status = status(&place);
    assert_eq!((status.pid, status.configuration.number), (pid, 3), "it is the same process");

    // What cannot change in a running agent is refused.
    change(&place, "name = \"web-1\"", "name = \"web-2\"");
    let (exit, said) = reload(&place);
    assert!(exit == 7 && said.contains("change agent.name without a restart"), "{exit}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_waits_for_the_step_that_runs_and_interrupts_none() {
    let mut place = Setup::new().await;
    std::fs::create_dir(place.path("services")).unwrap();
    let sections = sections(&place);
    place.start_agent(NODE, &sections);
    std::fs::write(place.path("hold"), "").unwrap();
    done(&place, &["entity", "set", "app", "--selector", "all", "--soak", "0s", "--deadline", "5m"]);
    done(&place, &["rollout", "start", "app", "v1"]);
    wait_for("the static part runs", async || Path::new(&place.path("hold.begun")).exists()).await;
    change(&place, "\"old\"", "\"new\"");
    let data = place.path("web-1/data");
    let late = place.run(&["agent", "reload", "--data-dir", &data, "--timeout", "1s"]);
    assert_eq!(code(&late), 3, "{}", text(&late.stderr));
    let (exit, said) = reload(&place);
    assert!(exit == 7 && said.contains("waits for the running steps"), "{exit}: {said}");
    assert_eq!(tags(&place, "web").await, ["old"]);
    std::fs::remove_file(place.path("hold")).unwrap();
    wait_for("the new tag is registered", async || tags(&place, "web").await == ["new"]).await;
    wait_for("v1 is good", async || {
        let view = place.client().current_rollout("default", "app", None, Duration::ZERO).await.unwrap();
        view.progress.last_known_good.as_deref() == Some("v1")
    })
    .await;
    let begun = std::fs::read_to_string(place.path("hold.begun")).unwrap();
    assert_eq!(begun.lines().count(), 1, "the static part ran once");
}
