//! A way to a port that can be cut: then what is sent on it waits, as on a network that drops packets.

use std::io;

use bellwether_rt::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A listening port on loopback in front of another.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    open: watch::Sender<bool>,
}

impl Proxy {
    /// Listens on a free port and passes on to `target`. Ends with `tasks`.
    pub async fn start(target: u16, tasks: &Tasks) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("this machine has ports");
        let port = listener.local_addr().expect("a listener has an address").port();
        let open = watch::Sender::new(true);
        let (level, gate) = (tasks.child(), open.subscribe());
        tasks.spawn("proxy", async move {
            // Both arms only wait.
            tokio::select! {
                () = level.cancelled() => {}
                () = serve(&listener, target, &gate, &level) => {}
            }
        });
        Self { port, open }
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets nothing through any more. Connections stay open.
    pub fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Lets everything through again, also what was sent meanwhile.
    pub fn heal(&self) {
        self.open.send_replace(true);
    }
}

async fn serve(listener: &TcpListener, target: u16, gate: &watch::Receiver<bool>, level: &Tasks) {
    while let Ok((near, _)) = listener.accept().await {
        let (gate, inner) = (gate.clone(), level.clone());
        level.spawn("proxied connection", async move {
            // Ending either way closes both sides.
            tokio::select! {
                () = inner.cancelled() => {}
                _ = pass(near, target, gate) => {}
            }
        });
    }
}

async fn pass(near: TcpStream, target: u16, gate: watch::Receiver<bool>) -> io::Result<()> {
    let far = TcpStream::connect(("127.0.0.1", target)).await?;
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    // Whichever side ends first ends the connection.
    tokio::select! {
        there = copy(near_in, far_out, gate.clone()) => there,
        back = copy(far_in, near_out, gate.clone()) => back,
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut gate: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut bytes).await?;
        if gate.wait_for(|is_open| *is_open).await.is_err() || count == 0 {
            return Ok(());
        }
        to.write_all(bytes.get(..count).unwrap_or_default()).await?;
    }
}
