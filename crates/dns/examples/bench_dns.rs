//! How many DNS questions a second are answered, beside unbound with the same records on the same machine.
//!
//! `cargo run --release -p bellwether-dns --example bench_dns`; asked by `dnsperf`, in turns. Last come the figures, one a
//! line: `name value unit (peer value, ratio)`. Rates suffer from whatever else the machine does; what an answer costs in
//! processor time, kernel and all, suffers less.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::instance::{Instance, InstanceState};
use bellwether_core::dns::zone::{Zone, ZoneOrigin, ZoneSettings};
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::time::Timestamp;
use bellwether_dns::config::Config;
use bellwether_dns::serve::serve;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

/// A large fleet's worth.
const SERVICES: u16 = 1_000;
const INSTANCES: u16 = 10;
/// How long each figure is measured, in seconds. Longer brings the same figures.
const SECONDS: &str = "3";
/// Rounds of both in turn, as other work on the machine comes and goes; the median is printed.
const ROUNDS: usize = 5;
/// Questions on their way at once, over how many sockets: enough that neither server waits for questions.
const LOAD: [&str; 6] = ["-c", "16", "-T", "1", "-q", "400"];

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    needed()?;
    let dir = tempfile::tempdir()?;
    let tasks = Tasks::new();
    let (_publish, zone) = watch::channel(Arc::new(zone()?));
    let serving = serve(Config::on(["127.0.0.1:0".parse()?]), zone, &tasks).await?;
    let ours = serving.addresses().first().copied().ok_or("no address")?;
    let (theirs, mut unbound) = unbound(dir.path()).await?;
    let ours = Peer { at: ours, process: std::process::id() };
    let theirs = Peer { at: theirs, process: unbound.id() };
    let measured = measure(dir.path(), &ours, &theirs);
    unbound.kill()?;
    unbound.wait()?;
    tasks.stop(Duration::from_secs(5)).await?;
    for (kind, [ours, theirs]) in measured? {
        let (rate, cost) = (ours.rate / theirs.rate, ours.micros / theirs.micros);
        println!("dns-{kind} {:.0} answers/s (unbound {:.0}, {rate:.2})", ours.rate, theirs.rate);
        println!("dns-{kind}-cpu {:.1} µs/answer (unbound {:.1}, {cost:.2})", ours.micros, theirs.micros);
    }
    Ok(())
}

/// Says which programs are not there.
fn needed() -> Result<()> {
    let has = |program: &str| {
        Command::new(program).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let missing: Vec<&str> = ["dnsperf", "unbound"].into_iter().filter(|program| !has(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("not here: {0}. On Debian: apt-get install {0}", missing.join(" ")).into())
}

fn address(service: u16, instance: u16) -> IpAddr {
    let [high, low] = service.to_be_bytes();
    let [_, last] = instance.to_be_bytes();
    IpAddr::from([10, high, low, last])
}

/// Every instance on a node of its own, so that SRV names nodes.
fn zone() -> Result<Zone> {
    let mut catalogue = Catalogue::default();
    for service in 1..=SERVICES {
        for instance in 1..=INSTANCES {
            let node = format!("node-{service}-{instance}");
            let list = vec![address(service, instance)];
            let addresses = Addresses(BTreeMap::from([("eth0".parse()?, list)]));
            catalogue.set_host(&node.parse()?, Some(addresses.clone()));
            let instance = Instance {
                name: "main".parse()?,
                node: node.parse()?,
                addresses,
                port: Some(8_080),
                tags: ["blue".parse()?].into(),
                meta: BTreeMap::new(),
                level: InstanceState::Passing,
                since: Timestamp::EPOCH,
            };
            catalogue.put(&format!("service-{service}").parse()?, instance);
        }
    }
    let origin = Arc::new(ZoneOrigin::new(ZoneSettings::new("dc1".parse()?, "node-1-1".parse()?))?);
    Ok(Zone { origin, catalogue, serial: 1, stale_since: None })
}

/// Unbound with the same records, as its own manual tunes it for two cores.
async fn unbound(dir: &Path) -> Result<(SocketAddr, Child)> {
    let at = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    let mut config = format!(
        "server:\n interface: {}\n port: {}\n num-threads: 2\n so-reuseport: yes\n username: \"\"\n chroot: \"\"\n \
         do-daemonize: no\n use-syslog: no\n verbosity: 0\n pidfile: \"\"\n module-config: \"iterator\"\n \
         outgoing-range: 64\n num-queries-per-thread: 4096\n so-rcvbuf: 1m\n local-zone: \"bw.internal.\" static\n\
         remote-control:\n control-enable: no\nserver:\n",
        at.ip(),
        at.port()
    );
    for service in 1..=SERVICES {
        for instance in 1..=INSTANCES {
            let name = format!("service-{service}.service.bw.internal.");
            let node = format!("node-{service}-{instance}.node.dc1.bw.internal.");
            let address = address(service, instance);
            writeln!(config, " local-data: \"{name} 0 IN A {address}\"")?;
            writeln!(config, " local-data: \"{name} 0 IN SRV 1 1 8080 {node}\"")?;
            writeln!(config, " local-data: \"{node} 0 IN A {address}\"")?;
        }
    }
    let path = dir.join("unbound.conf");
    std::fs::write(&path, config)?;
    let mut child = Command::new("unbound").arg("-d").arg("-c").arg(&path).stdin(Stdio::null()).spawn()?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    socket.connect(at)?;
    for _ in 0..100 {
        // Whatever is said of its zone, unbound is there.
        let asked = socket.send(b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x02bw\x08internal\0\0\x06\0\x01");
        if asked.is_ok() && socket.recv(&mut [0; 512]).is_ok() {
            return Ok((at, child));
        }
        if let Some(status) = child.try_wait()? {
            return Err(format!("unbound ended: {status}").into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    child.kill()?;
    Err("unbound does not answer".into())
}

/// A server that is measured.
struct Peer {
    at: SocketAddr,
    process: u32,
}

/// How it did: answers a second, and processor time for each, in microseconds.
#[derive(Debug, Clone, Copy)]
struct Figure {
    rate: f64,
    micros: f64,
}

/// For A and for SRV: how we did, and how unbound did.
fn measure(dir: &Path, ours: &Peer, theirs: &Peer) -> Result<Vec<(&'static str, [Figure; 2])>> {
    let mut counts = Vec::new();
    for (name, kind) in [("a", "A"), ("srv", "SRV")] {
        let path = dir.join(name);
        let mut questions = String::new();
        for service in 1..=SERVICES {
            writeln!(questions, "service-{service}.service.bw.internal {kind}")?;
        }
        std::fs::write(&path, questions)?;
        let (mut mine, mut peer) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // Who is first changes, as whatever comes second may find the machine otherwise.
            let (one, other) = if round % 2 == 0 {
                let one = figure(ours, &path)?;
                (one, figure(theirs, &path)?)
            } else {
                let other = figure(theirs, &path)?;
                (figure(ours, &path)?, other)
            };
            println!("round {round}: {kind} ours {one:.1?} unbound {other:.1?}");
            mine.push(one);
            peer.push(other);
        }
        counts.push((name, [median(&mine), median(&peer)]));
    }
    Ok(counts)
}

fn figure(peer: &Peer, questions: &Path) -> Result<Figure> {
    let before = processor_ticks(peer.process)?;
    let (rate, answers) = dnsperf(peer.at, questions)?;
    // Linux counts in hundredths of a second.
    let micros = (processor_ticks(peer.process)? - before) * 10_000.0 / answers;
    Ok(Figure { rate, micros })
}

/// Processor time that a process and its kernel side took.
fn processor_ticks(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    let mut next = || {
        fields.next().ok_or("no processor time")?.parse::<f64>().map_err(Box::<dyn Error + Send + Sync>::from)
    };
    Ok(next()? + next()?)
}

/// What `dnsperf` counted: the rate, and all answers.
fn dnsperf(at: SocketAddr, questions: &Path) -> Result<(f64, f64)> {
    let mut dnsperf = Command::new("dnsperf");
    dnsperf.args(["-s", &at.ip().to_string(), "-p", &at.port().to_string(), "-l", SECONDS, "-e"]);
    let output = dnsperf.args(LOAD).arg("-d").arg(questions).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let value = |mark: &str| said.lines().find_map(|line| line.trim().strip_prefix(mark)).map(str::trim);
    let codes = value("Response codes:").unwrap_or_default();
    if !codes.starts_with("NOERROR") || codes.contains(',') {
        return Err(format!("dnsperf saw other answers than records:\n{said}").into());
    }
    let answers =
        value("Queries completed:").and_then(|line| line.split(' ').next()).ok_or("dnsperf says no count")?;
    Ok((value("Queries per second:").ok_or("dnsperf says no rate")?.parse()?, answers.parse()?))
}

fn median(counts: &[Figure]) -> Figure {
    let middle = |value: fn(&Figure) -> f64| {
        let mut values: Vec<f64> = counts.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Figure { rate: middle(|one| one.rate), micros: middle(|one| one.micros) }
}
