//! The same etcd grown and shrunk by hand, with etcdctl, under the same client: what an ensemble is compared with.

use std::process::{Child, Command, Stdio};

use crate::place::{free_ports, text, wait_for};
use crate::story_ensembles::{Writer, nothing_is_lost, post};

/// Members on addresses of their own, which are ended with this.
struct ByHand {
    dir: tempfile::TempDir,
    ports: [u16; 2],
    members: Vec<(usize, Child)>,
}

impl Drop for ByHand {
    fn drop(&mut self) {
        for (_, member) in &mut self.members {
            drop(member.kill());
            drop(member.wait());
        }
    }
}

impl ByHand {
    fn url(&self, number: usize, port: usize) -> String {
        let port = self.ports.get(port).unwrap();
        format!("http://127.0.32.{number}:{port}")
    }

    fn client(&self, number: usize) -> String {
        self.url(number, 0).trim_start_matches("http://").to_owned()
    }

    /// Starts a member that knows these.
    fn start(&mut self, number: usize, state: &str, all: &[usize]) {
        let data = self.dir.path().join(number.to_string());
        let initial: Vec<String> = all.iter().map(|of| format!("m{of}={}", self.url(*of, 1))).collect();
        let log = std::fs::File::create(self.dir.path().join(format!("{number}.log"))).unwrap();
        let child = Command::new("etcd")
            .args(["--name", &format!("m{number}"), "--data-dir", &data.display().to_string()])
            .args([
                "--listen-client-urls",
                &self.url(number, 0),
                "--advertise-client-urls",
                &self.url(number, 0),
            ])
            .args([
                "--listen-peer-urls",
                &self.url(number, 1),
                "--initial-advertise-peer-urls",
                &self.url(number, 1),
            ])
            .args([
                "--initial-cluster-state",
                state,
                "--initial-cluster",
                &initial.join(","),
                "--pre-vote=true",
            ])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.members.push((number, child));
    }

    /// Runs etcdctl against the first member; what it printed, if it succeeded.
    fn etcdctl(&self, args: &[&str]) -> Option<String> {
        let output = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--endpoints", &self.client(1)])
            .args(args)
            .output();
        let output = output.unwrap();
        output.status.success().then(|| text(&output.stdout))
    }

    fn id(&self, number: usize) -> Option<String> {
        let listed = self.etcdctl(&["member", "list"])?;
        let line = listed.lines().find(|line| line.contains(&self.url(number, 1)))?;
        Some(line.split(',').next()?.to_owned())
    }

    /// Adds a member that does not vote, starts it, and makes it one that votes.
    async fn add(&mut self, number: usize) {
        let url = format!("--peer-urls={}", self.url(number, 1));
        let add = ["member", "add", &format!("m{number}"), "--learner", &url];
        wait_for("it is added", async || self.etcdctl(&add).is_some()).await;
        let all: Vec<usize> = (1..=number).collect();
        self.start(number, "existing", &all);
        wait_for("it is promoted", async || {
            let id = self.id(number);
            id.is_some_and(|id| self.etcdctl(&["member", "promote", &id]).is_some())
        })
        .await;
    }

    async fn remove(&mut self, number: usize) {
        wait_for("it is removed", async || {
            let id = self.id(number);
            id.is_none_or(|id| self.etcdctl(&["member", "remove", &id]).is_some())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_hand_an_etcd_grows_and_shrinks_under_the_same_client() {
    let mut hand = ByHand { dir: tempfile::tempdir().unwrap(), ports: free_ports(), members: Vec::new() };
    hand.start(1, "new", &[1]);
    let first = hand.client(1);
    wait_for("it serves", async || post(&first, "/v3/kv/range", r#"{"key": "AAAA"}"#).is_some()).await;
    let addresses: Vec<String> = (1..=5).map(|number| hand.client(number)).collect();
    let writer = Writer::start(addresses.clone());
    for number in 2..=5 {
        hand.add(number).await;
    }
    for number in [5, 4] {
        hand.remove(number).await;
    }
    eprint!("by hand: ");
    nothing_is_lost(writer, &addresses);
}
