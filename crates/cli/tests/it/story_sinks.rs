//! Sinks on real processes: whatever the receiver answers, and though the server is killed in the middle, every event arrives at least once
//! and in order.

use std::process::{Child, Command, Stdio};

use bellwether_api::v1::filter::FilterSpec;
use bellwether_api::v1::sink::Sink;

use crate::place::{Setup, code, done, text, wait_for};

/// A receiver that does what the file `mode` says, and writes the number and the signature of each event that it takes to `taken`.
const RECEIVER: &str = r#"
import base64, hashlib, hmac, http.server, json, os, sys, threading, time
place, key = sys.argv[1], base64.b64decode(sys.argv[2])
calls = 0
class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", "0")
        self.end_headers()
    def do_GET(self):
        open(os.path.join(place, "followed"), "w").close()
        self.answer(200)
    def do_POST(self):
        global calls
        calls += 1
        body = self.rfile.read(int(self.headers["content-length"]))
        mode = open(os.path.join(place, "mode")).read().strip()
        signed = f'{self.headers["webhook-id"]}.{self.headers["webhook-timestamp"]}.'.encode() + body
        right = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        if right not in self.headers.get("webhook-signature", "").split(): return self.answer(401)
        if mode == "fails" or mode == "flaky" and calls % 3 == 0: return self.answer(500)
        if mode == "moved": return self.answer(302, location="/elsewhere")
        if mode == "gone": return self.answer(410)
        if mode == "slow": time.sleep(0.05)
        with open(os.path.join(place, "taken"), "a") as taken:
            taken.write(f'{json.loads(body)["data"]["seq"]}\n')
        self.answer(200)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
with open(os.path.join(place, "port.new"), "w") as file: file.write(str(server.server_port))
os.rename(os.path.join(place, "port.new"), os.path.join(place, "port"))
server.serve_forever()
"#;

const KEY: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

struct Receiver {
    process: Child,
    dir: tempfile::TempDir,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Receiver {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("mode"), "takes").unwrap();
        let mut python = Command::new("python3");
        python.args(["-c", RECEIVER, &dir.path().display().to_string(), KEY]).stdin(Stdio::null());
        let receiver = Self { process: python.spawn().unwrap(), dir };
        wait_for("the receiver listens", async || receiver.dir.path().join("port").exists()).await;
        receiver
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/events", std::fs::read_to_string(self.dir.path().join("port")).unwrap())
    }

    fn does(&self, mode: &str) {
        std::fs::write(self.dir.path().join("mode.new"), mode).unwrap();
        std::fs::rename(self.dir.path().join("mode.new"), self.dir.path().join("mode")).unwrap();
    }

    /// The numbers of the events that it took, in the order in which it did.
    fn taken(&self) -> Vec<u64> {
        let text = std::fs::read_to_string(self.dir.path().join("taken")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}

/// An installation that may send to this machine, with a sink of the events of filters.
async fn installed(receiver: &Receiver) -> Setup {
    let mut place = Setup::new().await;
    place.kill_server();
    let config = place.path("server.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    let directory = place.path("events");
    let table = format!("[sinks]\nallow_addresses = [\"127.0.0.1\"]\ndirectory = {directory:?}\n");
    std::fs::write(&config, format!("{before}\n{table}")).unwrap();
    place.start_server().await;
    let set = place.run_with(&["secret", "set", "audit/key", "--file", "-"], &format!("whsec_{KEY}\n"));
    assert_eq!(code(&set), 0, "{}", text(&set.stderr));
    let (url, filter) = (receiver.url(), "kind = filter.changed");
    done(&place, &["sink", "set", "audit", "--webhook", &url, "--secret", "audit/key", "--filter", filter]);
    done(&place, &["sink", "set", "log", "--to-file", "all/events.jsonl", "--filter", filter]);
    place
}

/// Makes so many events of filters.
async fn happens(place: &Setup, name: &str, count: usize) {
    let client = place.client();
    for number in 0..count {
        let spec =
            FilterSpec { of: "nodes".to_owned(), filter: "all".to_owned(), description: String::new() };
        client.set_filter("default", &format!("{name}-{number}"), &spec).await.unwrap();
    }
}

/// The numbers of all events that the sinks are to have.
async fn expected(place: &Setup) -> Vec<u64> {
    let events = place.client().events("default", Some(0), 1_000, std::time::Duration::ZERO).await.unwrap();
    events.items.iter().filter(|event| event.kind == "filter.changed").map(|event| event.seq).collect()
}

async fn sink(place: &Setup, name: &str) -> Sink {
    place.client().sink("default", name).await.unwrap()
}

async fn waits(place: &Setup, why: &str) {
    let waits = async || {
        sink(place, "audit").await.status.unwrap().waits_for.is_some_and(|waits| waits.contains(why))
    };
    wait_for(why, waits).await;
}

/// Every event is there, and where one is sent again, all after it are: nothing was left out on the way.
fn in_order(taken: &[u64], expected: &[u64]) {
    let mut next = 0;
    for event in taken {
        let at = expected.iter().position(|known| known == event).unwrap();
        assert!(at <= next, "{event} came before {:?}: {taken:?}", expected.get(next));
        next = next.max(at + 1);
    }
    assert_eq!(next, expected.len(), "{taken:?} of {expected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_arrives_in_order_whatever_the_receiver_answers_and_whoever_dies() {
    let receiver = Receiver::new().await;
    let mut place = installed(&receiver).await;
    happens(&place, "first", 5).await;
    wait_for("the first ones", async || receiver.taken().len() == 5).await;

    // It fails for a while: nothing is lost, and it says why.
    receiver.does("fails");
    happens(&place, "failing", 3).await;
    waits(&place, "status 500").await;
    receiver.does("moved");
    waits(&place, "redirects are not followed").await;
    receiver.does("flaky");
    wait_for("those that failed", async || receiver.taken().len() >= 8).await;

    // The server is killed while it sends: those that were not recorded are sent again.
    receiver.does("slow");
    happens(&place, "many", 40).await;
    wait_for("some of them", async || receiver.taken().len() >= 15).await;
    place.kill_server();
    place.start_server().await;
    happens(&place, "last", 3).await;
    let all = expected(&place).await;
    let last = *all.last().unwrap();
    wait_for("the last one", async || receiver.taken().last() == Some(&last)).await;
    in_order(&receiver.taken(), &all);
    assert!(!receiver.dir.path().join("followed").exists(), "a redirect was followed");

    // The file of the other sink has them too.
    let path = place.path("events/default/all/events.jsonl");
    let lines = || std::fs::read_to_string(&path).unwrap_or_default();
    let numbers = || -> Vec<u64> {
        let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        lines().lines().map(|line| read(line)["data"]["seq"].as_u64().unwrap()).collect()
    };
    wait_for("the lines", async || numbers().last() == Some(&last)).await;
    in_order(&numbers(), &all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_stops_the_sink_and_a_person_enables_tests_and_replays_it() {
    let receiver = Receiver::new().await;
    let place = installed(&receiver).await;
    receiver.does("gone");
    happens(&place, "a", 1).await;
    waits(&place, "it stopped until it is enabled or changed: status 410").await;
    let tested = place.run(&["sink", "test", "audit"]);
    assert_eq!((code(&tested), text(&tested.stdout).contains("status 410")), (1, true));
    let shown = done(&place, &["sink", "get", "audit"]);
    assert!(shown.contains("undelivered    1") && shown.contains("status 410"), "{shown}");
    assert!(done(&place, &["events", "--about", "sink/audit"]).contains("sink.stopped"));

    receiver.does("takes");
    assert!(done(&place, &["sink", "test", "audit"]).contains("delivered after"));
    done(&place, &["sink", "enable", "audit", "--reason", "it is back"]);
    // The test event has no number of its own.
    wait_for("the event", async || receiver.taken().len() == 2).await;
    let event = receiver.taken()[1];
    let is_through = async || sink(&place, "audit").await.status.unwrap().undelivered == 0;
    wait_for("it is recorded", is_through).await;
    done(&place, &["sink", "replay", "audit", "--from", &event.to_string()]);
    wait_for("it came again", async || receiver.taken() == [0, event, event]).await;
    wait_for("that is recorded, too", is_through).await;
    done(&place, &["sink", "disable", "audit"]);
    assert!(done(&place, &["sink", "list"]).contains("it is disabled"));
    let document = done(&place, &["sink", "get", "audit", "-o", "yaml"]);
    let applied = place.run_with(&["apply", "-f", "-"], &document);
    assert!(
        text(&applied.stdout).contains("unchanged"),
        "{}{}",
        text(&applied.stdout),
        text(&applied.stderr)
    );
    done(&place, &["sink", "delete", "audit", "--yes"]);
    assert_ne!(code(&place.run(&["sink", "get", "audit"])), 0);
}
