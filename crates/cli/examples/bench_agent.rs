//! What an agent costs at rest, how long a check that turns takes to reach every other agent's DNS, and how many answers are wrong
//! while an agent restarts. Real processes: one server, agents with 20 checks each that answer DNS.
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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Agents beside each other.
const AGENTS: usize = 20;

/// Checks of each agent, every 10 s.
const CHECKS: usize = 20;

/// How long they are watched at rest.
const REST: Duration = Duration::from_secs(60);

/// How often a check is turned.
const TURNS: usize = 20;

/// How often an agent is restarted, in turns by SIGTERM and by kill -9.
const RESTARTS: usize = 20;

/// How long answers are watched after each restart: more than an interval of the checks.
const WATCH: Duration = Duration::from_secs(13);

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

    /// Ends an agent, in order or by kill -9, and starts it again.
    fn restart(&mut self, index: usize, kills: bool) {
        // The server is the first child.
        let child = &mut self.children[index];
        let signal = if kills { Signal::KILL } else { Signal::TERM };
        kill_process(Pid::from_child(child), signal).unwrap();
        child.wait().unwrap();
        let file = self.path(&format!("node-{index}.toml"));
        let mut again = self.command(&["agent", "run", "--config", &file]);
        let again = again.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.children[index] = again;
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether an agent's DNS has an address for the service whose check turns.
fn finds(socket: &UdpSocket, dns: u16) -> bool {
    addresses(socket, dns, "turning").is_some_and(|count| count > 0)
}

/// How many addresses an agent's DNS has for a service; `None` without an answer.
fn addresses(socket: &UdpSocket, dns: u16, service: &str) -> Option<u8> {
    let mut question = vec![7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in [service, "service", "bw", "internal"] {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend_from_slice(label.as_bytes());
    }
    question.extend_from_slice(&[0, 0, 1, 0, 1]);
    socket.send_to(&question, ("127.0.0.1", dns)).unwrap();
    let mut answer = [0_u8; 512];
    socket.recv(&mut answer).ok().filter(|length| *length > 12).map(|_| answer[7])
}

/// Restarts agents and asks the DNS of all of them meanwhile. Answers the number of answers that lack an instance, of all, and the
/// longest time for which the DNS of a restarted agent did not answer.
fn restarts(fleet: &mut Fleet, ports: &[u16]) -> (u64, u64, Duration) {
    let all = u8::try_from(AGENTS).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    while !ports.iter().all(|port| addresses(&socket, *port, "s0") == Some(all)) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let (mut wrong, mut answers, mut longest) = (0, 0, Duration::ZERO);
    for turn in 0..RESTARTS {
        let index = turn / 2 % AGENTS + 1;
        // Its own DNS is down while it is; whoever asks it waits, and gets no wrong answer.
        let stop = Arc::new(AtomicBool::new(false));
        let asking = ports.iter().enumerate().map(|(number, port)| {
            let (stop, port, own) = (stop.clone(), *port, number + 1 == index);
            std::thread::spawn(move || ask(&stop, port, own))
        });
        let asking: Vec<_> = asking.collect();
        fleet.restart(index, turn % 2 == 1);
        std::thread::sleep(WATCH);
        stop.store(true, Ordering::SeqCst);
        for thread in asking {
            let (lacked, answered, gap) = thread.join().unwrap();
            (wrong, answers, longest) = (wrong + lacked, answers + answered, longest.max(gap));
        }
    }
    (wrong, answers, longest)
}

/// Asks one agent's DNS until it is stopped: wrong answers, all answers, and the longest time without one.
fn ask(stop: &AtomicBool, port: u16, own: bool) -> (u64, u64, Duration) {
    let all = u8::try_from(AGENTS).unwrap();
    let (mut wrong, mut answers, mut gap) = (0, 0, Duration::ZERO);
    let mut last = Instant::now();
    while !stop.load(Ordering::SeqCst) {
        // A socket of its own for each question: an answer that comes late belongs to no other question.
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(if own { 10 } else { 1_000 }))).unwrap();
        if let Some(count) = addresses(&socket, port, "s0") {
            (answers, wrong) = (answers + 1, wrong + u64::from(count != all));
            gap = gap.max(last.elapsed());
            last = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    (wrong, answers, if own { gap } else { Duration::ZERO })
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
    let (wrong, answers, gap) = restarts(&mut fleet, &ports);
    println!("{RESTARTS} restarts of agents, half of them by kill -9: {answers} answers of all agents' DNS");
    println!("wrong-dns-answers-over-a-restart {wrong} answers");
    println!("dns-away-over-a-restart {} ms (at most)", gap.as_millis());
    println!("turn-to-dns {} ms (at most, of {TURNS} turns)", times[TURNS - 1].as_millis());
    println!("agent-at-rest {}.{:03} % of a core", milliseconds / 10_000, milliseconds % 10_000 / 10);
}
