//! A TCP proxy that can be made slow and lossy, or be blocked: then data waits, as on a network that drops
//! packets.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use bellwether_rt::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Bytes forwarded at once.
const PIECE_BYTES: usize = 64 << 10;

/// The faults of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkFaults {
    /// Whether data passes. Connections stay open either way.
    pub open: bool,
    /// Added latency, in each direction.
    pub latency: Duration,
    /// How many of 1,000 forwarded chunks break their connection instead.
    pub broken_per_mille: u64,
}

impl LinkFaults {
    /// No faults.
    pub const FAIR: Self = Self { open: true, latency: Duration::ZERO, broken_per_mille: 0 };
}

/// A listening port that forwards to another.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<LinkFaults>,
}

impl Proxy {
    /// Listens on a free port of the address `host` and forwards to `target`, `HOST:PORT`. Ends with `tasks`. Needs a tokio
    /// runtime.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn start(host: &str, target: String, tasks: &Tasks) -> Result<Self> {
        let listener = std::net::TcpListener::bind((host, 0)).context("cannot listen")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let weather = watch::Sender::new(LinkFaults::FAIR);
        let (level, seen) = (tasks.child(), weather.subscribe());
        tasks.spawn("proxy", async move {
            // Both arms only wait.
            tokio::select! {
                () = level.cancelled() => {}
                () = serve(&listener, &target, &seen, &level) => {}
            }
        });
        Ok(Self { address, weather })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the faults from now on. Data that waited while it was blocked is delivered once it passes again.
    pub fn set(&self, weather: LinkFaults) {
        self.weather.send_replace(weather);
    }
}

async fn serve(listener: &TcpListener, target: &str, weather: &watch::Receiver<LinkFaults>, level: &Tasks) {
    let mut seed: u64 = 1;
    while let Ok((near, _)) = listener.accept().await {
        seed = seed.wrapping_add(2);
        let (weather, inner, target) = (weather.clone(), level.clone(), target.to_owned());
        level.spawn("proxied connection", async move {
            // The end of either direction closes both.
            tokio::select! {
                () = inner.cancelled() => {}
                _ = pass(near, &target, weather, seed) => {}
            }
        });
    }
}

async fn pass(
    near: TcpStream,
    target: &str,
    weather: watch::Receiver<LinkFaults>,
    seed: u64,
) -> io::Result<()> {
    let far = TcpStream::connect(target).await?;
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    // Whichever side ends first ends the connection.
    tokio::select! {
        there = copy(near_in, far_out, weather.clone(), seed) => there,
        back = copy(far_in, near_out, weather.clone(), seed.rotate_left(32)) => back,
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<LinkFaults>,
    mut random: u64,
) -> io::Result<()> {
    let mut bytes = vec![0; PIECE_BYTES];
    loop {
        let count = from.read(&mut bytes).await?;
        let Ok(weather) = weather.wait_for(|weather| weather.open).await.map(|weather| *weather) else {
            return Ok(());
        };
        // A plain generator is random enough, and the same connection has the same faults in every run.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if count == 0 || (random >> 33) % 1_000 < weather.broken_per_mille {
            return Ok(());
        }
        tokio::time::sleep(weather.latency).await;
        to.write_all(bytes.get(..count).unwrap_or_default()).await?;
    }
}
