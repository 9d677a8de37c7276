//! A real etcd of one or three members on loopback, to be killed, paused and partitioned. Needs Debian's etcd-server and
//! etcd-client; without them the test fails.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bellwether_rt::tasks::Tasks;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::Instant;

use super::certificates::Certificates;
use crate::{Condition, EtcdSettings, Store};

/// How long an etcd may take to become ready: far longer than it does on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

/// Interval between two checks.
const LOOK: Duration = Duration::from_millis(20);

/// How often to try other ports when somebody else took them first.
const TRIES: usize = 5;

/// Options of a test etcd.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Number of members; 0 means 1.
    pub members: usize,
    /// Whether members and clients use TLS with certificates.
    pub tls: bool,
    /// Storage quota in bytes.
    pub quota_bytes: Option<u64>,
}

/// A running etcd. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct TestEtcd {
    options: Options,
    members: Vec<Member>,
    certificates: Option<Certificates>,
    dir: TempDir,
}

#[derive(Debug)]
struct Member {
    client_port: u16,
    peer_port: u16,
    /// Whether it joins others that are there.
    joins: bool,
    process: Option<Child>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Member {
    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("a child can be killed");
            process.wait().expect("a child can be waited for");
        }
    }
}

impl TestEtcd {
    /// One member without TLS, ready.
    pub async fn one() -> Self {
        Self::start(Options::default()).await
    }

    /// Three members without TLS, ready.
    pub async fn three() -> Self {
        Self::start(Options { members: 3, ..Options::default() }).await
    }

    /// An etcd with these options, ready.
    pub async fn start(options: Options) -> Self {
        for _ in 0..TRIES {
            let dir = TempDir::new().expect("this machine has room for a directory");
            let certificates = options.tls.then(|| Certificates::make(&dir.path().join("certificates")));
            let count = options.members.max(1);
            let ports = free_ports(count * 2);
            let (clients, peers) = ports.split_at(count);
            let pairs = clients.iter().zip(peers);
            let member = |(client, peer): (&u16, &u16)| Member {
                client_port: *client,
                peer_port: *peer,
                joins: false,
                process: None,
            };
            let mut etcd = Self { options, members: pairs.map(member).collect(), certificates, dir };
            for member in 0..count {
                etcd.restart(member);
            }
            if etcd.becomes_ready().await {
                return etcd;
            }
        }
        unreachable!("etcd did not start: see that etcd-server is installed")
    }

    /// Settings to use all members, without compaction, so that revisions are only the test's own.
    #[must_use]
    pub fn settings(&self) -> EtcdSettings {
        let members = 0..self.members.len();
        EtcdSettings {
            ca_file: self.certificates.as_ref().map(|files| files.ca.clone()),
            identity: self.certificates.as_ref().map(|files| files.client.clone()),
            probe_every: Duration::from_millis(100),
            compaction: None,
            ..EtcdSettings::new(members.map(|member| self.endpoint(member)).collect())
        }
    }

    /// A member's client URL.
    #[must_use]
    pub fn endpoint(&self, member: usize) -> String {
        let scheme = if self.certificates.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port(member))
    }

    /// A member's client port.
    #[must_use]
    pub fn port(&self, member: usize) -> u16 {
        self.member(member).client_port
    }

    /// The certificates, if it uses TLS.
    #[must_use]
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// A store in it.
    pub async fn store(&self, tasks: &Tasks) -> Store {
        Store::etcd(self.settings(), tasks).await.expect("a ready etcd lets a store in")
    }

    /// Kills a member with SIGKILL. One of a release that then loses what it acknowledged (etcd 3.5.0 to 3.5.2, its issue
    /// 13766) is ended with SIGTERM: what it loses is not ours to keep.
    pub fn kill(&mut self, member: usize) {
        let version = Command::new("etcd").arg("--version").output().expect("etcd is installed").stdout;
        let version = String::from_utf8_lossy(&version);
        if ["3.5.0", "3.5.1", "3.5.2"]
            .iter()
            .any(|loses| version.starts_with(&format!("etcd Version: {loses}\n")))
        {
            self.signal(member, Signal::TERM);
            let member = self.members.get_mut(member).expect("there is such a member");
            let ended = member.process.as_mut().map(Child::wait);
            ended.expect("the member runs").expect("a child can be waited for");
        }
        self.members.get_mut(member).expect("there is such a member").kill();
    }

    /// Kills a member and removes its data, as when a machine is reinstalled.
    pub fn forget(&mut self, member: usize) {
        self.kill(member);
        std::fs::remove_dir_all(self.data(member)).expect("the test's own directory can be changed");
    }

    /// Adds a member; answers its index once it is ready.
    pub async fn grow(&mut self) -> usize {
        let known = self.settings().endpoints.join(",");
        let ports = free_ports(2);
        let [client_port, peer_port] = ports[..] else { unreachable!("there are two") };
        self.members.push(Member { client_port, peer_port, joins: true, process: None });
        let member = self.members.len() - 1;
        let (name, peer) = (self.name(member), format!("--peer-urls=http://127.0.0.1:{peer_port}"));
        let add = ["--endpoints", &known, "member", "add", &name, &peer];
        let until = Instant::now() + BOUND;
        // Refused until the others have been connected for some seconds.
        while !self.etcdctl(&add).contains("added to cluster") {
            assert!(Instant::now() < until, "no member could be added within {BOUND:?}");
            tokio::time::sleep(LOOK).await;
        }
        self.restart(member);
        while !self.is_ready(member).await {
            assert!(Instant::now() < until, "the new member was not ready within {BOUND:?}");
            tokio::time::sleep(LOOK).await;
        }
        member
    }

    /// Removes a member from the others, and kills it.
    pub async fn remove(&mut self, member: usize) {
        let others = (0..self.members.len()).filter(|other| *other != member);
        let others = others.map(|other| self.endpoint(other)).collect::<Vec<_>>().join(",");
        let until = Instant::now() + BOUND;
        loop {
            let list = self.etcdctl(&["--endpoints", &others, "member", "list"]);
            let line = list.lines().find(|line| line.contains(&self.name(member)));
            let Some(id) = line.and_then(|line| line.split(',').next()) else { break };
            self.etcdctl(&["--endpoints", &others, "member", "remove", id]);
            assert!(Instant::now() < until, "the member could not be removed within {BOUND:?}");
            tokio::time::sleep(LOOK).await;
        }
        self.members.get_mut(member).expect("there is such a member").kill();
    }

    /// Writes a snapshot of the only member to a file.
    pub fn snapshot(&self, file: &Path) {
        self.etcdctl(&["snapshot", "save", &file.display().to_string()]);
        assert!(file.exists(), "etcdctl wrote no snapshot");
    }

    /// Sets the only member back to a snapshot, as people do who know nothing of what uses it.
    pub fn set_back(&mut self, snapshot: &Path) {
        self.forget(0);
        let (name, data) = (self.name(0), self.data(0).display().to_string());
        let peer = format!("http://127.0.0.1:{}", self.member(0).peer_port);
        let cluster = format!("{name}={peer}");
        let urls = ["--initial-advertise-peer-urls", &peer, "--initial-cluster", &cluster];
        let place = ["snapshot", "restore", &snapshot.display().to_string(), "--name", &name];
        self.etcdctl(&[&place[..], &["--data-dir", &data], &urls].concat());
        self.restart(0);
    }

    /// Stops a member with SIGSTOP: its connections stay open and silent.
    pub fn pause(&self, member: usize) {
        self.signal(member, Signal::STOP);
    }

    /// Resumes a paused member.
    pub fn resume(&self, member: usize) {
        self.signal(member, Signal::CONT);
    }

    /// Index of the member that leads.
    pub async fn leader(&self) -> usize {
        let until = Instant::now() + BOUND;
        while Instant::now() < until {
            if let Some(member) = (0..self.members.len()).find(|member| self.leads(*member)) {
                return member;
            }
            tokio::time::sleep(LOOK).await;
        }
        unreachable!("no member came to lead within {BOUND:?}")
    }

    fn leads(&self, member: usize) -> bool {
        let said =
            self.etcdctl(&["--endpoints", &self.endpoint(member), "endpoint", "status", "-w", "fields"]);
        let value = |name: &str| {
            let line = said.lines().find(|line| line.starts_with(name))?;
            line.split(':').next_back().map(str::trim)
        };
        value("\"MemberID\"").is_some() && value("\"MemberID\"") == value("\"Leader\"")
    }

    /// The output of etcdctl; its errors are ignored.
    #[expect(clippy::must_use_candidate, reason = "some commands are given for what they do")]
    pub fn etcdctl(&self, args: &[&str]) -> String {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3");
        if !args.contains(&"--endpoints") {
            command.args(["--endpoints", &self.settings().endpoints.join(",")]);
        }
        if let Some(files) = &self.certificates {
            command.arg("--cacert").arg(&files.ca);
            command.arg("--cert").arg(&files.client.cert_file).arg("--key").arg(&files.client.key_file);
        }
        let output = command.args(args).stdin(Stdio::null()).output().expect("etcd-client is installed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn member(&self, member: usize) -> &Member {
        self.members.get(member).expect("there is such a member")
    }

    fn signal(&self, member: usize, signal: Signal) {
        let process = self.member(member).process.as_ref().expect("the member runs");
        let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw).expect("a child has a number");
        kill_process(pid, signal).expect("a child can be signalled");
    }

    /// Restarts a killed member with its data. Does not wait until it is ready.
    pub fn restart(&mut self, member: usize) {
        let peers = self.members.iter().enumerate();
        let peer =
            |(at, peer): (usize, &Member)| format!("{}=http://127.0.0.1:{}", self.name(at), peer.peer_port);
        let cluster: Vec<_> = peers.map(peer).collect();
        let client = self.endpoint(member);
        let peer = format!("http://127.0.0.1:{}", self.member(member).peer_port);
        let mut command = Command::new("etcd");
        command.args(["--name", &self.name(member), "--data-dir"]).arg(self.data(member));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args([
            "--initial-cluster",
            &cluster.join(","),
            "--initial-cluster-state",
            if self.member(member).joins { "existing" } else { "new" },
            "--pre-vote",
        ]);
        // Short, so that a test waits little; long enough for a busy machine.
        command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]);
        command.args(["--logger", "zap", "--log-level", "fatal"]);
        if let Some(files) = &self.certificates {
            command.args(["--client-cert-auth", "--trusted-ca-file"]).arg(&files.ca);
            command.arg("--cert-file").arg(&files.server.cert_file);
            command.arg("--key-file").arg(&files.server.key_file);
        }
        if let Some(quota) = self.options.quota_bytes {
            command.args(["--quota-backend-bytes", &quota.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("etcd-server is installed");
        self.members.get_mut(member).expect("there is such a member").process = Some(process);
    }

    /// A member's name, unique among the etcds of this machine.
    fn name(&self, member: usize) -> String {
        format!("m{member}-{}", self.member(member).peer_port)
    }

    fn data(&self, member: usize) -> PathBuf {
        self.dir.path().join(format!("m{member}"))
    }

    /// Waits until it has a leader; false if a member exited instead.
    async fn becomes_ready(&mut self) -> bool {
        let until = Instant::now() + BOUND;
        while Instant::now() < until {
            let has_ended =
                |child: &mut Child| child.try_wait().expect("a child can be looked after").is_some();
            if self.members.iter_mut().filter_map(|member| member.process.as_mut()).any(has_ended) {
                return false;
            }
            let mut ready = 0;
            for member in 0..self.members.len() {
                ready += usize::from(self.is_ready(member).await);
            }
            if ready == self.members.len() {
                // Another etcd may have taken the port first, and ours be about to notice.
                return self.etcdctl(&["member", "list"]).contains(&self.name(0));
            }
            tokio::time::sleep(LOOK).await;
        }
        false
    }

    async fn is_ready(&self, member: usize) -> bool {
        let settings = EtcdSettings { endpoints: vec![self.endpoint(member)], ..self.settings() };
        match Store::etcd(settings, &Tasks::new()).await {
            Ok(store) => store.health().borrow().condition == Condition::Writable,
            Err(_) => false,
        }
    }
}

/// Ports that are free now.
fn free_ports(count: usize) -> Vec<u16> {
    let open = || TcpListener::bind(("127.0.0.1", 0)).expect("this machine has ports");
    let listeners: Vec<_> = (0..count).map(|_| open()).collect();
    let port = |listener: &TcpListener| listener.local_addr().expect("a listener has an address").port();
    listeners.iter().map(port).collect()
}
