//! Services on the command line: registered, listed, waited for; and two nodes that wait for each other.

use std::process::Output;
use std::time::Duration;

use crate::place::{Setup, text, wait_for};

fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// Runs the command line with the agent of a node as this machine's.
fn run_on(place: &Setup, node: &str, args: &[&str]) -> Output {
    place.command(args).env("BELLWETHER_AGENT_DIR", place.path(&format!("{node}/data"))).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_registered_waited_for_failed_and_deregistered() {
    let mut place = Setup::new().await;
    place.start_agent("web-1", "addresses = { eth0 = [\"10.0.0.7\"] }\n");
    let never = place.run(&["wait", "--service", "shop", "--timeout", "200ms"]);
    assert_eq!(never.status.code(), Some(3), "{}", said(&never));
    assert!(said(&never).contains("waiting: service shop was never registered"), "{}", said(&never));

    let register = ["service", "register", "shop", "--port", "8080", "--ttl", "1m", "--tag", "blue"];
    wait_for("the agent answers", async || run_on(&place, "web-1", &register).status.success()).await;
    let near = place.run(&["wait", "--service", "shpo", "--timeout", "200ms"]);
    assert!(said(&near).contains("did you mean shop?"), "{}", said(&near));

    // Somebody waits in another terminal, and runs something then.
    let waiting = place
        .command(&[
            "wait",
            "--service",
            "shop",
            "--functional",
            "1",
            "--timeout",
            "60s",
            "--",
            "echo",
            "open",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let passed = run_on(&place, "web-1", &["service", "check", "pass", "shop"]);
    assert!(passed.status.success(), "{}", said(&passed));
    let waited = waiting.wait_with_output().unwrap();
    assert!(waited.status.success() && text(&waited.stdout) == "open\n", "{}", said(&waited));

    let got = said(&place.run(&["service", "get", "shop"]));
    assert!(got.contains("1 of 1 registered instances are functional") && got.contains("10.0.0.7"), "{got}");
    let list = said(&place.run(&["service", "list"]));
    assert!(list.contains("shop") && list.contains("1 of 1") && list.contains("blue"), "{list}");
    let broken = run_on(&place, "web-1", &["service", "check", "fail", "shop", "--reason", "out of bread"]);
    assert!(broken.status.success());
    wait_for("the reason is shown", async || {
        said(&place.run(&["service", "get", "shop"])).contains("check ttl: out of bread")
    })
    .await;
    let late = place.run(&["wait", "--service", "shop", "--timeout", "200ms"]);
    assert_eq!(late.status.code(), Some(3));
    assert!(
        said(&late)
            .contains("0 of 1 registered instances are functional, 1 needed; shop on web-1 is failing"),
        "{}",
        said(&late)
    );
    let registered = place.run(&["wait", "--service", "shop", "--addressable", "1", "--timeout", "10s"]);
    assert!(registered.status.success(), "{}", said(&registered));

    let gone = run_on(&place, "web-1", &["service", "deregister", "shop"]);
    assert!(gone.status.success(), "{}", said(&gone));
    wait_for("no instance is registered", async || {
        said(&place.run(&["service", "get", "shop"])).contains("no instance of shop is registered now")
    })
    .await;
    let again = run_on(&place, "web-1", &["service", "deregister", "shop"]);
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    let nobody = run_on(&place, "web-9", &["service", "local"]);
    assert_eq!(nobody.status.code(), Some(69), "{}", said(&nobody));
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_in_a_namespace_that_does_not_exist_fails() {
    let place = Setup::new().await;
    let nowhere = place.run(&["wait", "-n", "nowhere", "--service", "shop", "--timeout", "10s"]);
    assert_eq!(nowhere.status.code(), Some(1), "{}", said(&nowhere));
    assert!(said(&nowhere).contains("cannot find namespace nowhere"), "{}", said(&nowhere));
}

/// An entity that needs the other's service, and offers its own as soon as its static part was done.
fn needing(own: &str, other: &str, level: &str) -> String {
    format!(
        "[entity.{own}]\nneeds = [{{ service = \"{other}\", level = \"{level}\" }}]\nstatic = [\"true\"]\n\
         dynamic = [\"touch\", \"done\"]\nworkdir = \"/tmp\"\n\
         [[service]]\nname = \"{own}\"\nentity = \"{own}\"\n[[service.check]]\nname = \"done\"\n\
         exec = [\"test\", \"-e\", \"HOME/{own}.done\"]\ninterval = \"100ms\"\nfall = 1\nrise = 1\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_that_wait_for_each_other_are_named_and_go_on_when_one_needs_only_an_address() {
    let mut place = Setup::new().await;
    let home = place.path("");
    let part = |own: &str, other: &str, level: &str| {
        needing(own, other, level)
            .replace("HOME/", &home)
            .replace("[\"touch\", \"done\"]", &format!("[\"touch\", \"{home}{own}.done\"]"))
    };
    place.start_agent("lb-1", &part("lb", "app", "functional"));
    place.start_agent("app-1", &part("app", "lb", "functional"));
    for (entity, node) in [("lb", "lb-1"), ("app", "app-1")] {
        let label = place.run(&["node", "label", node, &format!("runs={entity}")]);
        assert!(label.status.success(), "{}", said(&label));
        let selector = format!("runs={entity}");
        for args in [
            &["entity", "set", entity, "--selector", &selector, "--soak", "0s", "--deadline", "5m"][..],
            &["rollout", "start", entity, "v1"][..],
        ] {
            let done = place.run(args);
            assert!(done.status.success(), "{}", said(&done));
        }
    }
    let wait_cycle = "app (on app-1) waits for lb, lb (on lb-1) waits for app";
    for subject in ["node/lb-1", "node/app-1", "entity/app", "target/lb/lb-1"] {
        wait_for(&format!("the why of {subject} names the circle"), async || {
            said(&place.run(&["why", subject])).contains(wait_cycle)
        })
        .await;
    }
    let events = place.client().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    let events = events.iter().filter(|event| event.kind == "wait.cycle_started").count();
    assert_eq!(events, 1, "the cycle has one event");

    // The application can begin once it knows the load balancer's address.
    place.kill_agent("app-1");
    let config = place.path("app-1/agent.toml");
    let changed = std::fs::read_to_string(&config).unwrap();
    let changed = changed
        .replace("service = \"lb\", level = \"functional\"", "service = \"lb\", level = \"addressable\"");
    std::fs::write(&config, changed).unwrap();
    place.resume_agent("app-1");
    for entity in ["app", "lb"] {
        wait_for(&format!("{entity} is done"), async || {
            let view = place.client().current_rollout("default", entity, None, Duration::ZERO).await.unwrap();
            view.progress.last_known_good.as_deref() == Some("v1")
        })
        .await;
    }
    wait_for("the end of the cycle has an event", async || {
        let events = place.client().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
        events.iter().any(|event| event.kind == "wait.cycle_ended")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_services_on_two_nodes_that_wait_for_each_other_are_named_until_one_needs_less() {
    let mut place = Setup::new().await;
    let service = |own: &str, need: &str| format!("[[service]]\nname = \"{own}\"\nneeds = [\"{need}\"]\n");
    place.start_agent("shop-1", &service("shop", "bank"));
    place.start_agent("bank-1", &service("bank", "shop"));
    let wait_cycle = "service bank (on bank-1) waits for shop, service shop (on shop-1) waits for bank";
    let why = |subject: &str| said(&place.run(&["why", subject]));
    for subject in ["node/shop-1", "node/bank-1", "service/shop", "service/bank", "bank"] {
        wait_for(&format!("the why of {subject} names the circle"), async || {
            why(subject).contains(wait_cycle)
        })
        .await;
    }
    let lines = why("service/shop");
    assert!(lines.contains("0 of 1 registered are functional"), "{lines}");
    assert!(lines.contains("shop on shop-1 is failing: needs 1 functional of bank"), "{lines}");
    let described = said(&place.run(&["describe", "service/bank"]));
    assert!(described.contains("wait.cycle_started") && described.contains(wait_cycle), "{described}");
    let unheard = place.run(&["why", "service/shpo"]);
    assert!(said(&unheard).contains("did you mean shop?"), "{}", said(&unheard));

    // The shop can open once it knows where the bank is.
    place.kill_agent("shop-1");
    let config = place.path("shop-1/agent.toml");
    let changed = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, changed.replace("\"bank\"]", "\"1 addressable of bank\"]")).unwrap();
    place.resume_agent("shop-1");
    for name in ["shop", "bank"] {
        wait_for(&format!("{name} serves"), async || {
            said(&place.run(&["why", &format!("service/{name}")]))
                .contains("1 of 1 registered instances are functional")
        })
        .await;
    }
    let events = place.client().events("default", None, 1_000, Duration::ZERO).await.unwrap().items;
    let events: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    let events = events.iter().filter(|kind| kind.starts_with("wait.")).copied().collect::<Vec<_>>();
    assert_eq!(events, ["wait.cycle_started", "wait.cycle_ended"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_one_service_are_drained_one_after_the_other() {
    let mut place = Setup::new().await;
    for node in ["web-1", "web-2", "web-3"] {
        place.start_agent(node, "addresses = { eth0 = [\"10.0.0.7\"] }\n");
        let register = ["service", "register", "shop", "--port", "8080", "--ttl", "1h"];
        wait_for("the agent answers", async || run_on(&place, node, &register).status.success()).await;
        assert!(run_on(&place, node, &["service", "check", "pass", "shop"]).status.success());
    }
    wait_for("all are functional", async || said(&place.run(&["service", "get", "shop"])).contains("3 of 3"))
        .await;

    let unasked = place.run(&["node", "drain", "-l", "all"]);
    assert_eq!(unasked.status.code(), Some(64), "{}", said(&unasked));
    let question =
        "drain 3 nodes (web-1, web-2, web-3) with at most 1 of the instances of each service unavailable?";
    assert!(said(&unasked).contains(question), "{}", said(&unasked));
    let zero = place.run(&["node", "drain", "web-1", "--max-unavailable", "0"]);
    assert!(!zero.status.success() && said(&zero).contains("--max-unavailable"), "{}", said(&zero));

    let args = ["node", "drain", "-l", "all", "--yes", "-w", "--reason", "new disks"];
    let mut watching = place.command(&args);
    let watching = watching.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let watching = watching.spawn().unwrap();
    for node in ["web-1", "web-2"] {
        wait_for("it is drained", async || {
            said(&place.run(&["node", "get", node])).contains("drained   by admin")
        })
        .await;
        let left = said(&place.run(&["service", "get", "shop"]));
        assert!(left.contains("2 of 3") && left.contains("drained by admin: new disks"), "{left}");
        let why = said(&place.run(&["node", "why", "web-3"]));
        assert!(why.contains("its drain waits: 1 of 3 instances of service shop is unavailable"), "{why}");
        let status = said(&place.run(&["status"]));
        assert!(
            status.contains("waiting; web-") && status.contains("of service shop is unavailable"),
            "{status}"
        );
        assert!(place.run(&["node", "uncordon", node]).status.success());
    }
    let watched = watching.wait_with_output().unwrap();
    assert!(watched.status.success(), "{}", said(&watched));
    assert!(said(&watched).contains("node web-3: drained"), "{}", said(&watched));
    let again = place.run(&["node", "drain", "web-3", "--reason", "new disks"]);
    assert_eq!(said(&again), "node web-3: unchanged, drained\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_says_itself_which_service_it_may_not_register() {
    let mut place = Setup::new().await;
    place.start_agent("web-1", "[[service]]\nname = \"db\"\nport = 5432\n");
    wait_for("it is registered", async || {
        place.run(&["wait", "--service", "db", "--addressable", "1", "--timeout", "10s"]).status.success()
    })
    .await;
    let none = place.run(&["node", "allow-services", "web-1", "Web*"]);
    assert!(said(&none).contains("lower-case letters, digits and hyphens"), "{}", said(&none));
    assert!(place.run(&["node", "allow-services", "web-1", "web*"]).status.success());
    wait_for("the machine knows", async || {
        let own = run_on(&place, "web-1", &["local-health"]);
        own.status.code() == Some(1)
            && said(&own).contains("may not register service db; it may register: web*")
    })
    .await;
    let refused = run_on(&place, "web-1", &["service", "register", "cache"]);
    assert_ne!(refused.status.code(), Some(0));
    assert!(
        said(&refused).contains("may not register service cache")
            && said(&refused).contains("allow-services"),
        "{}",
        said(&refused)
    );
    let events = || said(&place.run(&["events", "--since", "1h"]));
    assert!(events().contains("service.refused"), "{}", events());
    let registered = events().matches("service.registered").count();
    assert!(place.run(&["node", "allow-services", "web-1", "*"]).status.success());
    assert_eq!(events().matches("service.registered").count(), registered + 1, "{}", events());
    wait_for("it is well again", async || run_on(&place, "web-1", &["local-health"]).status.success()).await;
}
