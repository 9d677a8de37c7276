//! The listening socket: limits on connections first, then who may connect.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use axum::{Extension, Router};
use bellwether_rt::acceptor::Acceptor;
use bellwether_rt::tasks::Tasks;
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};

use super::problem;
use crate::http::serve::serve_connection;

/// Most connections at once: the clients are programs of one node.
const MAX_CONNECTIONS: usize = 64;

/// Owner and group may connect; the data directory's mode excludes everyone else as well.
const MODE: u32 = 0o660;

/// The client, as the kernel knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// Its process, if the kernel knows it.
    pub(super) pid: Option<i32>,
    /// Whether it is root or the agent's user, and not only of its group: it can run what the agent runs.
    pub(super) is_own: bool,
}

/// Replaces the socket of an agent that ended without removing it. The data directory's lock is held, so no agent
/// listens on it.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.file_type().is_socket() => fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::other("the path exists and is not a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
    Ok(listener)
}

/// Removes the socket after the last listener.
pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::debug!(path = %path.display(), %error, "cannot remove the socket");
    }
}

/// Serves `router` until the agent stops.
pub(super) async fn serve(listener: UnixListener, router: Router, tasks: Tasks) {
    let acceptor = Acceptor { name: "local connection", limit: MAX_CONNECTIONS };
    let serve = |(stream, _)| connection(stream, router.clone(), tasks.clone());
    acceptor.run(&tasks, |context| listener.poll_accept(context), serve).await;
}

async fn connection(stream: UnixStream, router: Router, tasks: Tasks) {
    let router = match stream.peer_cred() {
        Ok(peer) if may_ask(&peer) => {
            router.layer(Extension(Peer { pid: peer.pid(), is_own: is_own(&peer) }))
        }
        Ok(peer) => {
            tracing::warn!(user = peer.uid(), group = peer.gid(), "refused a client of the local socket");
            Router::new().fallback(problem::forbidden)
        }
        Err(error) => return tracing::warn!(%error, "cannot identify the client"),
    };
    serve_connection(stream, router, tasks).await;
}

/// Whether the client is root, or has the agent's own user or group.
fn may_ask(peer: &UCred) -> bool {
    is_own(peer) || peer.gid() == rustix::process::getegid().as_raw()
}

/// Whether the client is root, or the agent's own user.
fn is_own(peer: &UCred) -> bool {
    peer.uid() == 0 || peer.uid() == rustix::process::geteuid().as_raw()
}
