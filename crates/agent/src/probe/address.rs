//! Connecting to a data store.

use std::io::ErrorKind;

use tokio::net::TcpStream;

use super::answer::ProbeError;

/// Connects. A connection that is refused says that nothing listens there; other failures say nothing of the store.
pub(super) async fn connect(address: &str) -> Result<TcpStream, ProbeError> {
    TcpStream::connect(address).await.map_err(|error| broken(address, &error))
}

/// What an error of a connection says.
pub(super) fn broken(address: &str, error: &std::io::Error) -> ProbeError {
    let reason = format!("{address}: {error}");
    let kind = error.kind();
    let breaks_off = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe, ErrorKind::UnexpectedEof];
    if kind == ErrorKind::ConnectionRefused {
        ProbeError::Down(reason)
    } else if breaks_off.contains(&kind) {
        ProbeError::Broken(reason)
    } else {
        ProbeError::Unknown(reason)
    }
}
