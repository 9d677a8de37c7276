//! The socket at which a daemon of Ceph answers about itself: a request is JSON that ends with a zero, an answer JSON after its length in four
//! bytes, the highest first.

use std::os::fd::AsRawFd;
use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// The socket of a monitor, within the directory in which it runs.
pub(super) const MONITOR: &str = "monitor.asok";

/// The socket of a manager, within the directory in which it runs.
pub(super) const MANAGER: &str = "manager.asok";

/// The socket of an OSD, within the directory in which it runs.
pub(super) const OSD: &str = "osd.asok";

/// Most bytes of an answer.
const MAX_BYTES: u32 = 4 * 1024 * 1024;

/// What the daemon that runs in this directory answers. Has no limit of time.
///
/// # Errors
/// Why there is no answer, in one line.
pub(super) async fn ask(dir: &Path, socket: &str, request: &str) -> Result<Value, String> {
    let asked = exchange(dir, socket, request).await;
    let answer = asked.map_err(|error| format!("its socket {socket} does not answer: {error}"))?;
    serde_json::from_slice(&answer).map_err(|error| format!("its answer is not JSON: {error}"))
}

async fn exchange(dir: &Path, socket: &str, request: &str) -> std::io::Result<Vec<u8>> {
    // A path of a socket has no more than 107 bytes; that of a directory which is open is short.
    let open = std::fs::File::open(dir)?;
    let path = format!("/proc/self/fd/{}/{socket}", open.as_raw_fd());
    let mut stream = UnixStream::connect(path).await?;
    let mut line = json!({"prefix": request, "format": "json"}).to_string().into_bytes();
    line.push(0);
    stream.write_all(&line).await?;
    let length = stream.read_u32().await?;
    if length > MAX_BYTES {
        return Err(std::io::Error::other(format!("the answer has {length} bytes")));
    }
    let mut answer = Vec::new();
    stream.take(length.into()).read_to_end(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn an_answer_comes_after_its_length_from_a_directory_with_a_path_of_any_length() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a".repeat(120));
        std::fs::create_dir(&dir).unwrap();
        let open = std::fs::File::open(&dir).unwrap();
        let listener = UnixListener::bind(format!("/proc/self/fd/{}/{MONITOR}", open.as_raw_fd())).unwrap();
        let daemon = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            loop {
                match stream.read_u8().await.unwrap() {
                    0 => break,
                    byte => request.push(byte),
                }
            }
            let answer = br#"{"state":"leader"}"#;
            stream.write_u32(answer.len().try_into().unwrap()).await.unwrap();
            stream.write_all(answer).await.unwrap();
            String::from_utf8(request).unwrap()
        };
        let (answer, request) = tokio::join!(ask(&dir, MONITOR, "mon_status"), daemon);
        assert_eq!(answer.unwrap(), json!({"state": "leader"}));
        assert!(request.contains(r#""prefix":"mon_status""#), "{request}");
        let silent = ask(&dir, MANAGER, "status").await.unwrap_err();
        assert!(silent.starts_with("its socket manager.asok does not answer: "), "{silent}");
    }
}
