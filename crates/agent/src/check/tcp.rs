//! Asking a port: a connection that is accepted passes.

use tokio::net::TcpStream;

/// Connects, and hangs up.
pub(super) async fn ask(authority: &str) -> Result<Option<String>, String> {
    TcpStream::connect(authority)
        .await
        .map(|_| None)
        .map_err(|error| format!("connect to {authority}: {error}"))
}
