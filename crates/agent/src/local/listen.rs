//! The socket: who may connect, and how many at once. Limits first, then the question.

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
use crate::http::serve::speak;

/// Most connections at once: programs of one machine.
const MAX_CONNECTIONS: usize = 64;

/// Owner and group may connect; the data directory keeps everybody else away as well.
const MODE: u32 = 0o660;

/// The process that asks, if it can be told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) Option<i32>);

/// Takes the place of the socket of an agent that ended without removing it. The data directory's lock is held, so nobody
/// listens on it.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.file_type().is_socket() => fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::other("there is something else than a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
    Ok(listener)
}

/// Removes the socket when nobody listens on it any more.
pub(super) fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::debug!(path = %path.display(), %error, "could not remove the socket");
    }
}

/// Serves `router` until the level stops.
pub(super) async fn serve(listener: UnixListener, router: Router, tasks: Tasks) {
    let doorway = Acceptor { name: "local connection", room: MAX_CONNECTIONS };
    let serve = |(stream, _)| connection(stream, router.clone(), tasks.clone());
    doorway.attend(&tasks, |context| listener.poll_accept(context), serve).await;
}

async fn connection(stream: UnixStream, router: Router, tasks: Tasks) {
    let router = match stream.peer_cred() {
        Ok(peer) if may_ask(&peer) => router.layer(Extension(Peer(peer.pid()))),
        Ok(peer) => {
            tracing::warn!(user = peer.uid(), group = peer.gid(), "refused somebody on the local socket");
            Router::new().fallback(problem::stranger)
        }
        Err(error) => return tracing::warn!(%error, "could not tell who connects"),
    };
    speak(stream, router, tasks).await;
}

/// Root, and the agent's own user and group.
fn may_ask(peer: &UCred) -> bool {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    peer.uid() == 0 || peer.uid() == user || peer.gid() == group
}
