//! Discovery over HTTP: the agent's port queried with curl and with a client made for Consul.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use serde_json::{Value, json};

pub(crate) use bellwether_rt::free_ports::free_port;

use crate::bench::{Agent, Bench, LONG, lines, within};

pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let found = within(async || holds().await.then_some(())).await;
    assert!(found.is_some(), "waited in vain until {what}");
}

/// An answer: its status, its headers in lower case, and its body.
pub(crate) struct Page {
    status: u16,
    head: String,
    pub(crate) body: String,
}

impl Page {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}: {}", self.status, self.body))
    }

    pub(crate) const fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn index(&self) -> u64 {
        self.header("x-consul-index").unwrap().parse().unwrap()
    }
}

pub(crate) fn curl(port: u16, path: &str, more: &[&str]) -> Page {
    let output = Command::new("curl")
        .args(["-s", "-i", "-g", "--max-time", "60", &format!("http://127.0.0.1:{port}{path}")])
        .args(more)
        .output()
        .unwrap();
    page(&String::from_utf8_lossy(&output.stdout))
}

fn page(text: &str) -> Page {
    let text = text.replace('\r', "");
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Page { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// A blocking query in flight. The agent has received it when this returns: a client started later might miss the next
/// change.
struct Asked(TcpStream);

impl Asked {
    fn now(port: u16, path: &str) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        // Connections that came before are accepted by the time that this one is answered.
        assert_eq!(curl(port, "/v1/status/leader", &[]).status, 200);
        Self(stream)
    }

    fn is_answered(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let answered = self.0.peek(&mut [0]).is_ok();
        self.0.set_nonblocking(false).unwrap();
        answered
    }

    /// The answer, when it arrives.
    async fn answer(mut self) -> Page {
        let read = move || {
            let mut text = String::new();
            self.0.set_read_timeout(Some(LONG)).unwrap();
            self.0.read_to_string(&mut text).unwrap();
            page(&text)
        };
        tokio::task::spawn_blocking(read).await.unwrap()
    }
}

/// A service that passes while something listens on its port.
fn web(port: u16) -> String {
    format!(
        "[[service]]\nname = \"web\"\nport = {port}\ntags = [\"blue\", \"v1\"]\nmeta = {{ path = \"/x\" }}\n\
         [[service.check]]\nname = \"port\"\ntcp = \"127.0.0.1:{port}\"\ninterval = \"50ms\"\nfall = 1\nrise = 1\n"
    )
}

pub(crate) fn head(http: u16) -> String {
    format!("addresses = {{ eth0 = [\"127.0.0.1\"] }}\n[http]\nlisten = [\"127.0.0.1:{http}\"]\n")
}

pub(crate) async fn listening(http: u16, service: &str) {
    until("the service is known", async || {
        let page = curl(http, &format!("/v1/catalog/service/{service}"), &[]);
        page.status == 200 && page.json() != json!([])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_is_served_in_consuls_form() {
    let bench = Bench::new().await;
    let (http, port) = (free_port(), free_port());
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let other = "[[service]]\nname = \"bare\"\n";
    let agent: Agent = bench.agent(&format!("{}{}{other}", head(http), web(port))).await;
    listening(http, "bare").await;
    until("it passes", async || curl(http, "/v1/health/service/web?passing", &[]).json() != json!([])).await;

    let node = json!({
        "ID": "web-1", "Node": "web-1", "Address": "127.0.0.1", "Datacenter": "default",
        "TaggedAddresses": { "lan_ipv4": "127.0.0.1" }, "Meta": {},
    });
    let service = json!({
        "ID": "web", "Service": "web", "Tags": ["blue", "v1"], "Address": "127.0.0.1", "Port": port,
        "TaggedAddresses": { "lan_ipv4": { "Address": "127.0.0.1", "Port": port } }, "Meta": { "path": "/x" },
        "Weights": { "Passing": 1, "Warning": 1 }, "EnableTagOverride": false,
    });
    let ask = |path: &str| curl(http, path, &[]).json();
    assert_eq!(ask("/v1/catalog/datacenters"), json!(["default"]));
    assert_eq!(ask("/v1/catalog/services"), json!({ "bare": [], "web": ["blue", "v1"] }));
    assert_eq!(ask("/v1/catalog/nodes"), json!([node]));
    let found = ask("/v1/catalog/node/web-1");
    assert_eq!((&found["Node"], &found["Services"]["web"]), (&node, &service));
    assert_eq!(ask("/v1/catalog/node/nobody"), Value::Null);
    let found = ask("/v1/catalog/service/web?tag=blue&tag=v1");
    assert_eq!((&found[0]["ServiceID"], &found[0]["ServicePort"]), (&json!("web"), &json!(port)));
    assert_eq!(ask("/v1/catalog/service/web?tag=blue&tag=green"), json!([]));
    let found = ask("/v1/health/service/web?dc=default&passing=1&stale=");
    assert_eq!((&found[0]["Node"], &found[0]["Service"]), (&node, &service));
    let checks: Vec<&Value> =
        found[0]["Checks"].as_array().unwrap().iter().map(|it| &it["CheckID"]).collect();
    assert_eq!(checks, [&json!("serfHealth"), &json!("service:web")]);
    let found = ask("/v1/health/node/web-1");
    let checks: Vec<&Value> = found.as_array().unwrap().iter().map(|it| &it["CheckID"]).collect();
    assert_eq!(checks, [&json!("serfHealth"), &json!("service:bare"), &json!("service:web")]);
    assert_eq!(ask("/v1/agent/self")["Config"]["NodeName"], "web-1");
    assert_eq!(ask("/v1/status/leader"), json!(bench.address.to_string()));

    drop(listener);
    until("it is critical", async || {
        let found = ask("/v1/health/service/web");
        found[0]["Checks"][1]["Status"] == "critical" && found[0]["Checks"][0]["Status"] == "passing"
    })
    .await;
    assert_eq!(ask("/v1/health/service/web?passing"), json!([]));
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_requests_are_refused_with_a_reason() {
    let bench = Bench::new().await;
    let http = free_port();
    let agent = bench.agent(&format!("{}[[service]]\nname = \"web\"\nport = 80\n", head(http))).await;
    listening(http, "web").await;
    for (path, status, said) in [
        ("/v1/health/service/web?dc=elsewhere", 500, "No path to datacenter"),
        ("/v1/health/service/web?filter=a", 400, "\"filter\" is not supported"),
        ("/v1/health/service/web?passing=maybe", 400, "passing"),
        ("/v1/health/service/web?index=x", 400, "index"),
        ("/v1/kv/a", 404, "/v1/kv/a"),
        ("/v1/http-sd", 400, "?service=NAME"),
        ("/v1/http-sd?service=wev", 404, "did you mean web?"),
    ] {
        let page = curl(http, path, &[]);
        assert_eq!(page.status, status, "{path}: {}", page.body);
        assert!(page.body.contains(said), "{path}: {}", page.body);
    }
    for method in ["PUT", "POST", "DELETE"] {
        let page = curl(http, "/v1/catalog/services", &["-X", method]);
        assert_eq!((page.status, page.header("allow")), (405, Some("get")), "{method}");
    }
    assert_eq!(curl(http, "/v1/health/service/nobody", &[]).json(), json!([]));
    // A page in a browser of this machine, whose name was made to mean this address.
    let foreign = curl(http, "/v1/catalog/services", &["-H", "Host: evil.example"]);
    assert_eq!(foreign.status, 421, "{}", foreign.body);
    assert!(foreign.body.contains("hosts of [http]"), "{}", foreign.body);
    assert_eq!(curl(http, "/v1/catalog/services", &["-H", "Host: localhost"]).status, 200);
    let long = format!("x-long: {}", "a".repeat(100_000));
    assert_eq!(curl(http, "/v1/catalog/services", &["-H", &long]).status, 431, "a head has its limit");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_query_returns_when_its_answer_changes_and_its_index_only_rises() {
    let mut bench = Bench::new().await;
    let (http, port) = (free_port(), free_port());
    let config = format!("{}{}", head(http), web(port));
    let agent = bench.agent(&config).await;
    listening(http, "web").await;
    // It is critical before its check has a result too: a refused connection keeps it so.
    until("it is critical", async || {
        let check = curl(http, "/v1/health/service/web", &[]).json()[0]["Checks"][1].clone();
        check["Status"] == "critical" && check["Output"].as_str().is_some_and(|said| said.contains("refused"))
    })
    .await;
    let mut index = curl(http, "/v1/health/service/web", &[]).index();
    assert!(index > 0);
    // Nothing changes: the wait ends, and the index is the same.
    let page = curl(http, &format!("/v1/health/service/web?index={index}&wait=50ms"), &[]);
    assert_eq!(page.index(), index);
    assert_eq!(
        (page.header("x-consul-knownleader"), page.header("x-consul-lastcontact")),
        (Some("true"), Some("0"))
    );

    let next = Asked::now(http, &format!("/v1/health/service/web?index={index}&wait=10m"));
    let passing = Asked::now(http, &format!("/v1/health/service/web?passing&index={index}&wait=10m"));
    let other = Asked::now(http, &format!("/v1/health/service/nobody?index={index}&wait=10m"));
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let page = next.answer().await;
    assert!(page.index() > index, "{} after {index}", page.index());
    index = page.index();
    assert_eq!(page.json()[0]["Checks"][1]["Status"], "passing");
    assert_eq!(passing.answer().await.json().as_array().map(Vec::len), Some(1));
    assert!(!other.is_answered(), "whoever waits for something else is not woken");

    // After a restart without a server it answers from its copy, marks that, and its index rises further.
    until("the catalogue is kept", async || {
        std::fs::read_to_string(bench.data_dir().join("catalogue.json"))
            .is_ok_and(|text| text.contains("passing"))
    })
    .await;
    bench.stop_server().await;
    agent.stop().await;
    assert_eq!(other.answer().await.status, 200, "an agent that ends answers what is there");
    let agent = bench.agent_again(&config);
    until("it answers", async || curl(http, "/v1/status/leader", &[]).status == 200).await;
    let page = curl(http, &format!("/v1/health/service/web?passing&index={index}&wait=10m"), &[]);
    assert_eq!((page.status, page.header("x-consul-knownleader")), (200, Some("false")));
    assert!(page.index() > index, "{} after {index}", page.index());
    assert_eq!(page.json()[0]["Service"]["Port"], port);
    assert_eq!(curl(http, "/v1/status/leader", &[]).json(), json!(""));
    drop(listener);
    agent.stop().await;
}

/// Debian's python3-consul, which watches a service and prints its ports when they change.
const WATCHER: &str = r#"
import consul, sys
client, index, before = consul.Consul(port=int(sys.argv[1])), None, None
assert client.agent.self()["Config"]["Datacenter"] == "default"
assert client.catalog.datacenters() == ["default"]
_, services = client.catalog.services()
assert services == {"web": ["blue", "v1"]}, services
_, nodes = client.catalog.nodes()
assert [node["Node"] for node in nodes] == ["web-1"], nodes
_, node = client.catalog.node("web-1")
assert list(node["Services"]) == ["web"], node
while True:
    last = index
    index, found = client.health.service("web", index=index, wait="10m", passing=True, tag="blue")
    assert last is None or int(index) > int(last), (index, last)
    ports = ["%s:%d" % (one["Service"]["Address"], one["Service"]["Port"]) for one in found]
    if ports != before:
        print(" ".join(ports) or "none", flush=True)
    before = ports
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_made_for_consul_watches_a_service_that_fails_and_recovers() {
    let bench = Bench::new().await;
    let (http, port) = (free_port(), free_port());
    let mut listener = Some(TcpListener::bind(("127.0.0.1", port)).unwrap());
    let agent = bench.agent(&format!("{}{}", head(http), web(port))).await;
    until("it passes", async || {
        let page = curl(http, "/v1/health/service/web?passing", &[]);
        page.status == 200 && page.json() != json!([])
    })
    .await;
    let out = bench.path("watched");
    let mut watcher = Command::new("/usr/bin/python3")
        .args(["-c", WATCHER, &http.to_string()])
        .stdout(std::fs::File::create(&out).unwrap())
        .spawn()
        .expect("python3-consul is here: `cargo xtask test` installs it");
    let there = format!("127.0.0.1:{port}");
    let mut expected = vec![there.clone()];
    until("it is found", async || lines(&out) == expected).await;
    for _ in 0..3 {
        listener.take();
        expected.push("none".to_owned());
        until("it is gone", async || lines(&out) == expected).await;
        listener = Some(TcpListener::bind(("127.0.0.1", port)).unwrap());
        expected.push(there.clone());
        until("it is back", async || lines(&out) == expected).await;
    }
    assert!(watcher.try_wait().unwrap().is_none(), "it watches");
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    agent.stop().await;
}
