//! Reads a snapshot of etcd through its gateway: lines of JSON with pieces of the database, whose last 32 bytes are the SHA-256 of all before.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bellwether_core::records::ensemble_snapshots::SnapshotContent;
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// Length of the checksum at the end.
const CHECKSUM: usize = 32;

/// Most bytes of one line: etcd sends pieces of 32 KiB, and later releases of a few MiB.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// A snapshot that is being written to a file, readable by its owner alone.
#[derive(Debug)]
pub(super) struct SnapshotWriter {
    path: PathBuf,
    file: File,
    /// The begin of a line whose end has not come yet.
    line: Vec<u8>,
    digest: Sha256,
    /// The last bytes, which may be the checksum.
    tail: Vec<u8>,
    bytes: u64,
}

#[derive(Debug, serde::Deserialize)]
struct Line {
    result: Option<Piece>,
    error: Option<serde_json::Value>,
}

#[derive(Debug, serde::Deserialize)]
struct Piece {
    #[serde(default)]
    blob: String,
}

impl SnapshotWriter {
    pub(super) async fn create(path: &Path) -> Result<Self, String> {
        let mut options = tokio::fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path).await.map_err(|error| failed("create", path, &error))?;
        let (line, tail) = (Vec::new(), Vec::new());
        Ok(Self { path: path.to_owned(), file, line, digest: Sha256::new(), tail, bytes: 0 })
    }

    /// Takes what came next. Not cancel safe: what is written in part is of no use.
    pub(super) async fn take(&mut self, received: &[u8]) -> Result<(), String> {
        for part in received.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.piece(&line).await?;
            } else if self.line.len() > MAX_LINE {
                return Err(format!("etcd answered a line of more than {MAX_LINE} bytes"));
            }
        }
        Ok(())
    }

    async fn piece(&mut self, line: &[u8]) -> Result<(), String> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let line: Line =
            serde_json::from_slice(line).map_err(|error| format!("etcd answered no piece of it: {error}"))?;
        if let Some(error) = line.error {
            return Err(format!("etcd ended it: {error}"));
        }
        let blob = line.result.map(|piece| piece.blob).unwrap_or_default();
        let piece = STANDARD.decode(blob).map_err(|error| format!("etcd answered no base64: {error}"))?;
        self.file.write_all(&piece).await.map_err(|error| failed("write", &self.path, &error))?;
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        self.tail.extend_from_slice(&piece);
        let sure = self.tail.len().saturating_sub(CHECKSUM);
        self.digest.update(self.tail.drain(..sure).as_slice());
        Ok(())
    }

    /// Checks that it is whole, and writes it to the disk.
    pub(super) async fn finish(mut self, revision: u64) -> Result<SnapshotContent, String> {
        let line = std::mem::take(&mut self.line);
        self.piece(&line).await?;
        let sum = self.digest.finalize();
        if self.bytes <= CHECKSUM as u64 || sum.as_slice() != self.tail {
            return Err(format!(
                "it is not whole: its {} bytes do not have the checksum at its end",
                self.bytes
            ));
        }
        self.file.sync_all().await.map_err(|error| failed("write", &self.path, &error))?;
        let sha256 = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(SnapshotContent { bytes: self.bytes, revision, sha256 })
    }
}

fn failed(action: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {action} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(data: &[u8], piece: usize) -> Vec<u8> {
        let mut whole = data.to_vec();
        whole.extend_from_slice(&Sha256::digest(data));
        let lines = whole.chunks(piece).map(|piece| {
            let blob = STANDARD.encode(piece);
            format!("{{\"result\":{{\"remaining_bytes\":\"1\",\"blob\":\"{blob}\"}}}}\n")
        });
        lines.collect::<String>().into_bytes()
    }

    async fn written(answer: &[u8], packet: usize) -> Result<(SnapshotContent, Vec<u8>), String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("snapshot");
        let mut writer = SnapshotWriter::create(&path).await?;
        for packet in answer.chunks(packet) {
            writer.take(packet).await?;
        }
        let content = writer.finish(7).await?;
        Ok((content, std::fs::read(&path).unwrap()))
    }

    #[tokio::test]
    async fn pieces_and_packets_of_any_size_are_one_file_with_its_checksum() {
        let data: Vec<u8> = (0_u32..10_000).flat_map(u32::to_le_bytes).collect();
        for (piece, packet) in [(7, 100), (1_000, 1), (100_000, 100_000), (31, 33)] {
            let (content, file) = written(&answer(&data, piece), packet).await.unwrap();
            assert_eq!((content.bytes, content.revision), (data.len() as u64 + 32, 7));
            assert!(file.starts_with(&data) && content.sha256.len() == 64);
        }
    }

    #[tokio::test]
    async fn what_is_cut_off_changed_or_an_error_is_no_snapshot() {
        let data = vec![1; 5_000];
        let whole = answer(&data, 1_000);
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let shorter = lines.split_last().unwrap().1.concat();
        assert!(written(&shorter, 100).await.unwrap_err().contains("it is not whole"));
        let other = String::from_utf8(whole.clone()).unwrap().replacen("AQEB", "AQEC", 1);
        assert!(written(other.as_bytes(), 100).await.unwrap_err().contains("it is not whole"));
        assert!(written(b"", 1).await.unwrap_err().contains("it is not whole"));
        let ended = b"{\"error\":{\"message\":\"no leader\"}}\n";
        assert!(written(ended, 10).await.unwrap_err().contains("no leader"));
    }
}
