//! Services of a node: from its configuration, from programs, from definitions in Consul's form; in the catalogue, and in
//! DNS on the node itself, queried with dig.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use bellwether_agent::local::client::{LocalError, call};
use bellwether_api::paths::{self, fill};
use bellwether_api::v1::service::definition::{CheckDefinition, LocalService, ServiceDefinition, TtlUpdate};
use bellwether_rt::free_ports::free_port;
use http::Method;

use crate::bench::{Agent, Bench, NS, within};

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let found = within(async || holds().await.then_some(())).await;
    assert!(found.is_some(), "waited in vain until {what}");
}

/// The answer of this node's DNS in dig's short form, sorted.
fn dig(port: u16, name: &str, kind: &str) -> Vec<String> {
    let output = Command::new("dig")
        .args(["+short", "+time=2", "+tries=2", "@127.0.0.1", "-p", &port.to_string(), name, kind])
        .output()
        .unwrap();
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

pub(crate) async fn level(bench: &Bench, service: &str) -> Option<String> {
    let view = bench.client.service(NS, service, None, Duration::ZERO).await.ok()?;
    view.instances.first().map(|instance| instance.status.to_string())
}

pub(crate) async fn register(
    bench: &Bench,
    definition: &ServiceDefinition,
) -> Result<serde_json::Value, LocalError> {
    call(&bench.data_dir(), Method::PUT, paths::AGENT_SERVICES, Some(definition)).await
}

pub(crate) async fn update_check(
    bench: &Bench,
    id: &str,
    level: &str,
    note: &str,
) -> Result<serde_json::Value, LocalError> {
    let update_check = TtlUpdate { status: level.parse().unwrap(), note: note.to_owned() };
    call(&bench.data_dir(), Method::PUT, &fill(paths::AGENT_TTL_UPDATE, &[id]), Some(&update_check)).await
}

fn listening(ttl: &str) -> ServiceDefinition {
    let check =
        CheckDefinition { name: "alive".to_owned(), ttl: Some(ttl.to_owned()), ..CheckDefinition::default() };
    ServiceDefinition {
        name: "queue".to_owned(),
        port: Some(5672),
        checks: vec![check],
        ..ServiceDefinition::default()
    }
}

fn head(dns: u16) -> String {
    format!("addresses = {{ eth0 = [\"10.0.0.7\", \"fd00::7\"] }}\n[dns]\nlisten = [\"127.0.0.1:{dns}\"]\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_functional_service_is_found_by_name_also_on_a_node_that_is_cut_off() {
    let mut bench = Bench::new().await;
    let (port, dns) = (free_port(), free_port());
    let config = format!(
        "{}[[service]]\nname = \"web\"\nport = {port}\ntags = [\"blue\"]\n[[service.check]]\nname = \"port\"\n\
         tcp = \"127.0.0.1:{port}\"\ninterval = \"50ms\"\nfall = 1\nrise = 1\n",
        head(dns)
    );
    let agent: Agent = bench.agent(&config).await;
    until("it is registered and fails", async || level(&bench, "web").await.as_deref() == Some("failing"))
        .await;
    assert_eq!(dig(dns, "web.service.bw.internal", "A"), Vec::<String>::new());
    until("any. finds it all the same", async || {
        dig(dns, "any.web.service.bw.internal", "A") == ["10.0.0.7"]
    })
    .await;

    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let serves = async || dig(dns, "web.service.bw.internal", "A") == ["10.0.0.7"];
    until("it is found", serves).await;
    assert_eq!(dig(dns, "web.service.bw.internal", "AAAA"), ["fd00::7"]);
    assert_eq!(dig(dns, "blue.web.service.default.bw.internal", "A"), ["10.0.0.7"]);
    assert_eq!(dig(dns, "green.web.service.bw.internal", "A"), Vec::<String>::new());
    let target = format!("1 1 {port} web-1.node.default.bw.internal.");
    assert_eq!(dig(dns, "_web._tcp.service.bw.internal", "SRV"), [target]);
    assert_eq!(dig(dns, "web-1.node.bw.internal", "A"), ["10.0.0.7"]);
    assert_eq!(dig(dns, "7.0.0.10.in-addr.arpa", "PTR"), ["web-1.node.default.bw.internal."]);

    // Without a server, and after a restart, the last catalogue is used.
    bench.stop_server().await;
    until("the catalogue is kept", async || {
        std::fs::read_to_string(bench.data_dir().join("catalogue.json"))
            .is_ok_and(|text| text.contains("passing"))
    })
    .await;
    agent.stop().await;
    let agent = bench.agent_again(&config);
    until("names are answered without a server", serves).await;
    bench.start_server().await;

    drop(listener);
    until("it is no longer found", async || dig(dns, "web.service.bw.internal", "A").is_empty()).await;
    until("the server lists it", async || level(&bench, "web").await.as_deref() == Some("failing")).await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_does_not_answer_with_an_instance_of_its_own_that_fails() {
    let mut bench = Bench::new().await;
    let (port, dns) = (free_port(), free_port());
    let config = format!(
        "{}[[service]]\nname = \"web\"\nport = {port}\n[[service.check]]\nname = \"port\"\n\
         tcp = \"127.0.0.1:{port}\"\ninterval = \"50ms\"\nfall = 1\nrise = 1\n",
        head(dns)
    );
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let agent: Agent = bench.agent(&config).await;
    let found = |name: &str| dig(dns, &format!("{name}.service.bw.internal"), "A") == ["10.0.0.7"];
    until("it is found", async || found("web")).await;
    bench.stop_server().await;
    drop(listener);
    until("it is no longer found", async || !found("web")).await;
    assert!(found("any.web"), "it is registered all the same");
    let _listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    until("it is found again", async || found("web")).await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_registers_itself_updates_its_check_and_deregisters() {
    let bench = Bench::new().await;
    let agent = bench.agent("").await;
    until("the socket is there", async || register(&bench, &listening("5s")).await.is_ok()).await;
    until("it fails before its first update", async || {
        level(&bench, "queue").await.as_deref() == Some("failing")
    })
    .await;
    update_check(&bench, "queue", "passing", "").await.unwrap();
    until("it passes", async || level(&bench, "queue").await.as_deref() == Some("passing")).await;
    until("it fails without updates", async || level(&bench, "queue").await.as_deref() == Some("failing"))
        .await;
    update_check(&bench, "queue", "warning", "nearly full").await.unwrap();
    until("it warns", async || level(&bench, "queue").await.as_deref() == Some("warning")).await;
    let own: Vec<LocalService> =
        call::<(), _>(&bench.data_dir(), Method::GET, paths::AGENT_SERVICES, None).await.unwrap();
    assert_eq!(
        own.first().map(|own| (own.source.as_str(), own.definition.port)),
        Some(("registered", Some(5672)))
    );

    // It is still registered after a restart, and its last update counts for the rest of its time.
    agent.stop().await;
    let agent = bench.agent_again("");
    until("it is there again", async || {
        level(&bench, "queue").await.as_deref() == Some("warning")
            && update_check(&bench, "queue", "warning", "nearly full").await.is_ok()
    })
    .await;
    let path = fill(paths::AGENT_TTL_UPDATE, &["queue"]);
    let word = serde_json::json!({ "status": "excellent" });
    let excellent = call::<_, serde_json::Value>(&bench.data_dir(), Method::PUT, &path, Some(&word)).await;
    for (bad, reason) in [
        (excellent, "`passing`, `warning`, `failing`"),
        (update_check(&bench, "other", "passing", "").await, "no service on this node has that id"),
        (
            register(&bench, &ServiceDefinition { name: "Q".to_owned(), ..ServiceDefinition::default() })
                .await,
            "name",
        ),
        (
            register(&bench, &ServiceDefinition { id: Some("queue".to_owned()), ..listening_as("other") })
                .await,
            "queue of service queue has that id",
        ),
    ] {
        let said = bad.unwrap_err().to_string();
        assert!(said.contains(reason), "{said}");
    }
    let gone = fill(paths::AGENT_SERVICE, &["queue"]);
    let _: serde_json::Value = call::<(), _>(&bench.data_dir(), Method::DELETE, &gone, None).await.unwrap();
    until("it is gone", async || level(&bench, "queue").await.is_none()).await;
    let view = bench.client.service(NS, "queue", None, Duration::ZERO).await.unwrap();
    assert_eq!(view.addressable, 0, "no ghost, and the name stays known");
    agent.stop().await;
}

pub(crate) fn listening_as(name: &str) -> ServiceDefinition {
    ServiceDefinition { name: name.to_owned(), ..listening("1s") }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_programs_do_not_register_one_instance() {
    let bench = Bench::new().await;
    let agent = bench.agent("[[service]]\nname = \"web\"\nport = 80\n").await;
    until("the socket is there", async || register(&bench, &listening("9s")).await.is_ok()).await;
    // This process keeps running; another one that registers the same id is refused.
    let socket = bench.data_dir().join("agent.sock");
    let curl = |path: &str, body: &str| {
        let output = Command::new("curl")
            .args(["-s", "--unix-socket", socket.to_str().unwrap(), "-X", "PUT", "-d", body])
            .arg(format!("http://agent{path}"))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = curl("/v1/agent/services", "{\"name\": \"queue\", \"port\": 1}");
    assert!(said.contains("registered it and is still running"), "{said}");
    let said = curl("/v1/agent/services", "{\"name\": \"web\", \"port\": 81}");
    assert!(said.contains("it is defined in the configuration of this agent"), "{said}");
    // A registration of a process that has ended can be replaced.
    assert_eq!(curl("/v1/agent/services", "{\"name\": \"cache\", \"port\": 1}"), "{}");
    assert_eq!(curl("/v1/agent/services", "{\"name\": \"cache\", \"port\": 2}"), "{}");
    until("the new one counts", async || {
        let view = bench.client.service(NS, "cache", None, Duration::ZERO).await;
        view.is_ok_and(|view| view.instances.first().is_some_and(|instance| instance.port == Some(2)))
    })
    .await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_in_consuls_form_are_registered_and_warn_by_exit_code() {
    let bench = Bench::new().await;
    let dir = bench.path("consul.d");
    std::fs::create_dir(&dir).unwrap();
    let state = bench.path("state");
    std::fs::write(&state, "0").unwrap();
    let definition = format!(
        "{{\"service\": {{\"name\": \"keystone\", \"port\": 5000, \"tags\": [\"real\"], \"check\": \
         {{\"script\": \"echo 81% full; exit $(cat {})\", \"interval\": \"50ms\"}}}}}}",
        state.display()
    );
    std::fs::write(dir.join("keystone.json"), definition).unwrap();
    let agent = bench.agent(&format!("service_dir = \"{}\"\n", dir.display())).await;
    for (exit, wanted) in [("0", "passing"), ("1", "warning"), ("2", "failing"), ("0", "passing")] {
        std::fs::write(&state, exit).unwrap();
        until(wanted, async || level(&bench, "keystone").await.as_deref() == Some(wanted)).await;
    }
    std::fs::write(&state, "1").unwrap();
    until("the reason is what it said", async || {
        let view = bench.client.service(NS, "keystone", None, Duration::ZERO).await.unwrap();
        view.instances.first().is_some_and(|instance| instance.reason == "check check-1: 81% full")
    })
    .await;
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_of_an_entity_is_registered_after_its_static_part() {
    let bench = Bench::new().await;
    let flag = bench.path("go");
    let config = format!(
        "[entity.web]\nstatic = [\"sh\", \"-c\", \"test -e {0} || exit 75\"]\ndynamic = [\"sh\", \"-c\", \"exit 75\"]\n\
         [[service]]\nname = \"web\"\nentity = \"web\"\n",
        flag.display()
    );
    let agent = bench.agent(&config).await;
    bench.roll("v1").await;
    until("it waits", async || {
        let own: Result<Vec<LocalService>, _> =
            call::<(), _>(&bench.data_dir(), Method::GET, paths::AGENT_SERVICES, None).await;
        own.is_ok_and(|own| own.first().is_some_and(|own| own.status == "held"))
    })
    .await;
    assert_eq!(level(&bench, "web").await, None);
    std::fs::write(&flag, "").unwrap();
    // The dynamic part never ends here: clients that wait for the address get it all the same.
    until("it is addressable", async || level(&bench, "web").await.as_deref() == Some("passing")).await;
    agent.stop().await;
}
