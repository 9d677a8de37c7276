//! What an agent costs at rest, and how long a check that turns takes to reach every other agent's DNS. Real processes: one
//! server, agents with 20 checks each that answer DNS.
//!
//! `cargo xtask bench agent`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a measurement stops where it is wrong, and says what it measured"
)]

use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Agents beside each other.
const AGENTS: usize = 20;

/// Checks of each agent, every 10 s.
const CHECKS: usize = 20;

/// How long they are watched at rest.
const REST: Duration = Duration::from_secs(60);

/// How often a check is turned.
const TURNS: usize = 20;

struct Fleet {
    dir: tempfile::TempDir,
    program: PathBuf,
    port: u16,
    children: Vec<Child>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl Fleet {
    fn run(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let token = std::fs::read_to_string(self.path("server/admin-token")).unwrap_or_default();
        command.args(args).env_clear().env("HOME", self.dir.path()).env("BELLWETHER_TOKEN", token.trim());
        command.env("BELLWETHER_SERVER", format!("https://127.0.0.1:{}", self.port));
        command.env("BELLWETHER_CA", self.path("server/pki/ca.pem")).stdin(Stdio::null());
        command
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn start(&mut self, args: &[&str]) -> u32 {
        let child = self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        self.children.push(child);
        pid
    }

    /// Joins and starts an agent; answers its process and its DNS port.
    fn agent(&mut self, index: usize, checked: u16) -> (u32, u16) {
        let (name, dns) = (format!("node-{index}"), free_port());
        let data = self.path(&name);
        let token = self.path("join-token");
        std::fs::write(&token, self.run(&["join-token", "create", "--node", &name])).unwrap();
        let server = format!("https://127.0.0.1:{}", self.port);
        self.run(&[
            "agent",
            "join",
            "--server",
            &server,
            "--token-file",
            &token,
            "--name",
            &name,
            "--data-dir",
            &data,
        ]);
        let mut config = format!(
            "[agent]\nname = {name:?}\nserver = {server:?}\ndata_dir = {data:?}\naddresses = {{ eth0 = [\"10.0.0.{index}\"] }}\n\
             [dns]\nlisten = [\"127.0.0.1:{dns}\"]\n"
        );
        for check in 0..CHECKS {
            config.push_str(&format!(
                "[[service]]\nname = \"s{check}\"\nid = \"s{check}\"\nport = 1\n[[service.check]]\nname = \"port\"\n\
                 tcp = \"127.0.0.1:{}\"\n",
                self.port
            ));
        }
        if index == 1 {
            config.push_str(&format!(
                "[[service]]\nname = \"turning\"\nport = 1\n[[service.check]]\nname = \"port\"\n\
                 tcp = \"127.0.0.1:{checked}\"\ninterval = \"20ms\"\nfall = 1\nrise = 1\n"
            ));
        }
        let file = self.path(&format!("{name}.toml"));
        std::fs::write(&file, config).unwrap();
        (self.start(&["agent", "run", "--config", &file]), dns)
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether an agent's DNS has an address for the service whose check turns.
fn finds(socket: &UdpSocket, dns: u16) -> bool {
    let mut question = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in ["turning", "service", "bw", "internal"] {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend_from_slice(label.as_bytes());
    }
    question.extend_from_slice(&[0, 0, 1, 0, 1]);
    socket.send_to(&question, ("127.0.0.1", dns)).unwrap();
    let mut answer = [0_u8; 512];
    socket.recv(&mut answer).is_ok_and(|length| length > 12 && answer[7] > 0)
}

/// Waits until every agent finds it, or none does.
fn until(socket: &UdpSocket, ports: &[u16], there: bool) -> Duration {
    let begun = Instant::now();
    let mut left = ports.to_vec();
    while !left.is_empty() && begun.elapsed() < Duration::from_secs(60) {
        left.retain(|port| finds(socket, *port) != there);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(left.is_empty(), "{} agents never saw it", left.len());
    begun.elapsed()
}

/// Processor time of a process, in ticks of 10 ms, and its memory in KiB: resident, and of that its own alone.
fn cost(pid: u32) -> (u64, u64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after = stat.rsplit(") ").next().unwrap();
    let fields: Vec<&str> = after.split(' ').collect();
    let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    (ticks, kib("VmRSS:"), kib("RssAnon:"))
}

fn main() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/bellwether");
    let program = std::env::var_os("CARGO_TARGET_DIR")
        .map_or(program, |target| PathBuf::from(target).join("release/bellwether"));
    let dir = tempfile::tempdir().unwrap();
    let mut fleet = Fleet { dir, program, port: free_port(), children: Vec::new() };
    let config = fleet.path("server.toml");
    let text = format!("data_dir = {:?}\nlisten = \"127.0.0.1:{}\"\n", fleet.path("server"), fleet.port);
    std::fs::write(&config, text).unwrap();
    fleet.run(&["server", "init", "--config", &config]);
    fleet.start(&["server", "run", "--config", &config]);
    while !fleet.command(&["status"]).output().unwrap().status.success() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let checked = free_port();
    let agents: Vec<(u32, u16)> = (1..=AGENTS).map(|index| fleet.agent(index, checked)).collect();
    let ports: Vec<u16> = agents.iter().map(|(_, dns)| *dns).collect();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();

    let mut listener = Some(TcpListener::bind(("127.0.0.1", checked)).unwrap());
    until(&socket, &ports, true);
    let mut times = Vec::new();
    for turn in 0..TURNS {
        let there = turn % 2 == 1;
        listener = there.then(|| TcpListener::bind(("127.0.0.1", checked)).unwrap());
        times.push(until(&socket, &ports, there));
    }
    drop(listener);
    times.sort();
    println!(
        "a check that turns, until all of {AGENTS} agents' DNS say so: median {:?}, slowest {:?}",
        times[TURNS / 2],
        times[TURNS - 1]
    );

    // The turning check goes on at 20 ms on the first agent: the others are at rest.
    let before: Vec<(u64, u64, u64)> = agents.iter().skip(1).map(|(pid, _)| cost(*pid)).collect();
    std::thread::sleep(REST);
    let after: Vec<(u64, u64, u64)> = agents.iter().skip(1).map(|(pid, _)| cost(*pid)).collect();
    let ticks: u64 = after.iter().zip(&before).map(|(after, before)| after.0 - before.0).sum();
    let milliseconds = ticks * 10 * 1_000 / (after.len() as u64 * REST.as_secs());
    let resident: u64 = after.iter().map(|cost| cost.1).max().unwrap();
    let own: u64 = after.iter().map(|cost| cost.2).max().unwrap();
    println!(
        "agent at rest, {CHECKS} checks at 10 s: {resident} KiB resident, {own} KiB of it their own, at most of {} agents",
        after.len()
    );
    println!("turn-to-dns {} ms (at most, of {TURNS} turns)", times[TURNS - 1].as_millis());
    println!("agent-at-rest {}.{:03} % of a core", milliseconds / 10_000, milliseconds % 10_000 / 10);
}
