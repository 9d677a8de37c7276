//! Hosts with addresses of their own: services are found at them by name, and not while their host's cable is out.

use std::process::Output;

use bellwether_testbed::Network;

use crate::place::{PROGRAM, Setup, text, wait_for};

fn lines(output: &Output) -> Vec<String> {
    let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_found_at_their_hosts_addresses_and_not_while_a_cable_is_out() {
    let hosts = Network::new(3).unwrap();
    let mut place = Setup::at(&hosts.outside()).await;
    // What runs there is known by its place, so that it ends with the story.
    let home = place.path("");
    let serve = |host: usize| {
        format!(
            "[entity.web]\nenv = {{ PLACE = {home:?} }}\n[entity.web.process]\nargv = [{PROGRAM:?}, \"demo-service\", \"--address\", \"{0}\", \"--port\", \
             \"8080\"]\n\
             [[service]]\nname = \"web\"\nport = 8080\nentity = \"web\"\n[[service.check]]\nname = \"page\"\n\
             http = \"http://{0}:8080/\"\ninterval = \"200ms\"\n",
            hosts.address(host)
        )
    };
    for host in [1, 2] {
        place.start_agent_on(&hosts.on(host).unwrap(), &format!("web-{host}"), &serve(host));
    }
    place.start_agent_on(&hosts.on(3).unwrap(), "client", "[dns]\nlisten = [\"127.0.0.1:53\"]\n");
    for args in [
        &["entity", "set", "web", "--selector", "name in (web-1, web-2)", "--soak", "0s", "--batch", "100%"]
            [..],
        &["rollout", "start", "web", "v1", "-w", "--timeout", "60s"][..],
    ] {
        let done = place.run(args);
        assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    }

    // The client knows nobody: it asks its own machine by name.
    let found = || lines(&hosts.run(3, &["dig", "+short", "@127.0.0.1", "web.service.bw.internal"]).unwrap());
    let both = vec![hosts.address(1), hosts.address(2)];
    wait_for("both are found at their own addresses", async || found() == both).await;
    for address in &both {
        let page = hosts.run(3, &["curl", "-s", "-m", "5", &format!("http://{address}:8080/")]).unwrap();
        assert_eq!(text(&page.stdout).trim(), "v1", "{}", text(&page.stderr));
    }

    hosts.cable(1, false).unwrap();
    wait_for("the one that is cut off is not found", async || found() == [hosts.address(2)]).await;
    let view = place.client().service("default", "web", None, std::time::Duration::ZERO).await.unwrap();
    let level = |node: &str| view.instances.iter().find(|one| one.node == node).unwrap().status;
    assert_eq!((level("web-1").as_str(), level("web-2").as_str()), ("unreachable", "passing"));
    let own =
        hosts.run(1, &["curl", "-s", "-m", "5", &format!("http://{}:8080/", hosts.address(1))]).unwrap();
    assert_eq!(text(&own.stdout).trim(), "v1", "what runs there goes on");
    hosts.cable(1, true).unwrap();
    wait_for("it is found again", async || found() == both).await;

    // The client itself is cut off: it goes on with what it knew.
    hosts.cable(3, false).unwrap();
    assert_eq!(found(), both);
    hosts.cable(3, true).unwrap();
    let name = format!("{}.in-addr.arpa", hosts.address(1).split('.').rev().collect::<Vec<_>>().join("."));
    let pointer = lines(&hosts.run(3, &["dig", "+short", "@127.0.0.1", &name, "PTR"]).unwrap());
    assert_eq!(pointer, ["web-1.node.default.bw.internal."]);
}
