//! A small fleet, a server that answers from it, and ways to ask.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::catalogue::Catalogue;
use bellwether_core::catalogue::instance::{Instance, InstanceState};
use bellwether_core::dns::zone::{Zone, ZoneOrigin, ZoneSettings};
use bellwether_core::words::addresses::Addresses;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_dns::config::Config;
use bellwether_dns::serve::{DnsServer, serve};
use bellwether_rt::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::timeout;

/// Long enough for a busy machine, short enough to be a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server of a test, and what it answers from.
pub(crate) struct Server {
    pub(crate) tasks: Tasks,
    pub(crate) serving: DnsServer,
    pub(crate) publish: watch::Sender<Arc<Zone>>,
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) async fn start(zone: Zone) -> Server {
    start_with(zone, Config::on([loopback()])).await
}

pub(crate) async fn start_with(zone: Zone, config: Config) -> Server {
    let (publish, zone) = watch::channel(Arc::new(zone));
    let tasks = Tasks::new();
    let serving = serve(config, zone, &tasks).await.unwrap();
    Server { tasks, serving, publish }
}

impl Server {
    pub(crate) fn at(&self) -> SocketAddr {
        self.serving.addresses()[0]
    }

    pub(crate) async fn stop(self) {
        self.tasks.stop(PATIENCE).await.unwrap();
    }

    /// What the real `dig` prints, given what one would type after the server.
    pub(crate) async fn dig(&self, args: &str) -> String {
        let at = self.at();
        let args: Vec<String> = args.split_whitespace().map(ToOwned::to_owned).collect();
        let asked = tokio::task::spawn_blocking(move || {
            let mut dig = Command::new("dig");
            dig.arg(format!("@{}", at.ip())).args(["-p", &at.port().to_string(), "+tries=1", "+time=10"]);
            dig.args(args).output().expect("dig is there: `cargo xtask test` installs it (bind9-dnsutils)")
        });
        let output = asked.await.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The lines of `dig +short`, in order.
    pub(crate) async fn short(&self, args: &str) -> Vec<String> {
        let said = self.dig(&format!("+short {args}")).await;
        let mut lines: Vec<String> = said.lines().map(ToOwned::to_owned).collect();
        lines.sort();
        lines
    }

    /// Sends bytes over UDP and waits for what comes back.
    pub(crate) async fn udp(&self, message: &[u8]) -> Vec<u8> {
        let socket = UdpSocket::bind(loopback()).await.unwrap();
        socket.connect(self.at()).await.unwrap();
        socket.send(message).await.unwrap();
        let mut buffer = vec![0; 65_536];
        let length = timeout(PATIENCE, socket.recv(&mut buffer)).await.unwrap().unwrap();
        buffer.truncate(length);
        buffer
    }

    /// The same over TCP.
    pub(crate) async fn tcp(&self, message: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.at()).await.unwrap();
        tell(&mut stream, message).await;
        hear(&mut stream).await
    }
}

pub(crate) async fn tell(stream: &mut TcpStream, message: &[u8]) {
    let mut frame = u16::try_from(message.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(message);
    stream.write_all(&frame).await.unwrap();
}

pub(crate) async fn hear(stream: &mut TcpStream) -> Vec<u8> {
    let length = timeout(PATIENCE, stream.read_u16()).await.unwrap().unwrap();
    let mut message = vec![0; usize::from(length)];
    timeout(PATIENCE, stream.read_exact(&mut message)).await.unwrap().unwrap();
    message
}

/// A question as bytes; `payload` is EDNS's.
pub(crate) fn question(name: &str, kind: u16, payload: Option<u16>) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(payload.is_some())];
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend_from_slice(label.as_bytes());
    }
    message.push(0);
    message.extend_from_slice(&kind.to_be_bytes());
    message.extend_from_slice(&[0, 1]);
    if let Some(payload) = payload {
        message.extend_from_slice(&[0, 0, 41]);
        message.extend_from_slice(&payload.to_be_bytes());
        message.extend_from_slice(&[0; 6]);
    }
    message
}

pub(crate) fn addresses(list: &[&str]) -> Addresses {
    let list = list.iter().map(|address| address.parse().unwrap()).collect();
    Addresses(BTreeMap::from([("eth0".parse().unwrap(), list)]))
}

pub(crate) fn instance(node: &str, at: &[&str], tags: &[&str], level: InstanceState) -> Instance {
    Instance {
        name: "main".parse().unwrap(),
        node: node.parse().unwrap(),
        addresses: addresses(at),
        port: Some(8_080),
        tags: tags.iter().map(|tag| tag.parse().unwrap()).collect(),
        meta: BTreeMap::new(),
        level,
        since: Timestamp::EPOCH,
    }
}

pub(crate) fn zone_of(catalogue: Catalogue) -> Zone {
    let settings = ZoneSettings {
        negative_ttl: Span::from_secs(3),
        ..ZoneSettings::new("dc1".parse().unwrap(), "ns-1".parse().unwrap())
    };
    Zone { origin: Arc::new(ZoneOrigin::new(settings).unwrap()), catalogue, serial: 42, stale_since: None }
}

/// Three web servers, one of them down, one reached at an address of its own.
pub(crate) fn small() -> Zone {
    let mut catalogue = Catalogue::default();
    let down = InstanceState::Failing { reason: "tcp: refused".into() };
    for (node, at) in
        [("ns-1", "10.0.0.9"), ("web-1", "10.0.0.1"), ("web-2", "10.0.0.2"), ("web-3", "10.0.0.3")]
    {
        let six = at.replace("10.0.0.", "fd00::");
        catalogue.set_host(&node.parse().unwrap(), Some(addresses(&[at, &six])));
    }
    let web = "web".parse().unwrap();
    catalogue.put(&web, instance("web-1", &["10.0.0.1", "fd00::1"], &["blue"], InstanceState::Passing));
    catalogue.put(&web, instance("web-2", &["10.9.0.2"], &["green"], InstanceState::Passing));
    catalogue.put(&web, instance("web-3", &["10.0.0.3", "fd00::3"], &["blue"], down));
    catalogue.hear_of(&"idle".parse().unwrap());
    zone_of(catalogue)
}

/// One service with this many instances, each on a node of its own.
pub(crate) fn large(count: u16) -> Zone {
    let mut catalogue = Catalogue::default();
    let big = "big".parse().unwrap();
    for number in 1..=count {
        let [high, low] = number.to_be_bytes();
        let (node, at) = (format!("node-{number}"), format!("10.7.{high}.{low}"));
        catalogue.set_host(&node.parse().unwrap(), Some(addresses(&[&at])));
        catalogue.put(&big, instance(&node, &[&at], &[], InstanceState::Passing));
    }
    zone_of(catalogue)
}
