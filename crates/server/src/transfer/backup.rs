//! Backups: a text file with a header, one line per record, and a trailer with count and checksum.
//!
//! ```text
//! {"backup":1,"installation":{…},"revision":4711,"taken_ms":1800000000000,"version":"0.1.0"}
//! {"key":"/bw/ns/default/node/web-1","value":"{…}"}
//! {"records":2,"sha256":"…"}
//! ```
//!
//! One with the keys of the installation is of format 2, and has a line for each file of them after the header.

mod keys;

use std::collections::BTreeMap;
use std::path::Path;

use bellwether_core::words::name::ServerName;
use bellwether_core::words::time::Timestamp;
use bellwether_core::words::zone::rfc3339;
use bellwether_store::{Revision, Store};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};

use self::keys::KeyLine;
use super::{
    RecordReader, TransferError, begin, clear, event_time, finish_in, in_another_store, restored_event,
    unused, write,
};
use crate::installation::{Installation, InstallationError, TransferKind};
use crate::key_files::{KeyDir, KeyText};
use crate::records::key_text;
use crate::secret;
use crate::world;

/// The format of a backup of records alone.
const FORMAT: u32 = 1;

/// The format of a backup that has the keys of the installation too, which releases before it do not read.
const FORMAT_WITH_KEYS: u32 = 2;

/// Most bytes of a backup that are held until they are written: a line is much shorter than what is written at once.
const HELD_BYTES: usize = 256 << 10;

/// Longest line, in bytes: a record fits a transaction, and JSON within JSON is a little more than twice as long.
const LONGEST_LINE: usize = 8 << 20;

/// Records per write.
const CHUNK: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BackupHeader {
    backup: u32,
    installation: Installation,
    revision: u64,
    taken_ms: u64,
    version: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct BackupLine {
    key: String,
    value: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct BackupTrailer {
    records: u64,
    sha256: String,
}

/// Summary of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackupContents {
    /// Id of the installation.
    pub installation: String,
    /// SHA-256 of the CA's certificate, lower-case hex.
    pub ca_fingerprint: String,
    /// The revision of the store.
    pub revision: u64,
    /// When it was taken, by the clock of the machine that took it.
    pub taken_ms: u64,
    /// The newest time in it: when it was taken, or of its newest event if that is later.
    pub newest_ms: u64,
    /// The release that took it.
    pub version: String,
    /// Number of records.
    pub records: u64,
    /// Number of records by namespace and kind.
    pub kinds: BTreeMap<String, u64>,
    /// The files with keys of the installation that are in it; none in a backup of records alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<&'static str>,
    /// The first record that this release does not read, with the reason: `restore` refuses the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// A backup that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupTaken {
    /// Number of records.
    pub records: u64,
    /// SHA-256 of the certificate of the installation's authority, lower-case hex.
    pub ca_fingerprint: String,
}

/// Writes a backup of the present state.
///
/// # Errors
/// [`TransferError`]; what was written is not a backup, since it has no trailer.
pub async fn take(
    store: &Store,
    now: Timestamp,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<BackupTaken, TransferError> {
    take_with(store, (now, None), out).await
}

/// Writes a backup of the present state, with the keys in a directory if one is given.
pub(crate) async fn take_with(
    store: &Store,
    (now, keys): (Timestamp, Option<&KeyDir>),
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<BackupTaken, TransferError> {
    let mut out = BufWriter::with_capacity(HELD_BYTES, out);
    let installation = Installation::read(store).await?.ok_or(InstallationError::Missing)?;
    let ca_fingerprint = installation.ca_fingerprint.clone();
    let texts = match keys {
        Some(dir) => keys::read(dir, &ca_fingerprint).await?,
        None => Vec::new(),
    };
    let mut reader = RecordReader::start(store, None).await?;
    let mut sum = Sha256::new();
    let head = BackupHeader {
        backup: if texts.is_empty() { FORMAT } else { FORMAT_WITH_KEYS },
        installation,
        revision: reader.at.0,
        taken_ms: now.as_millis(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    put(&mut out, &mut sum, &head).await?;
    for text in texts {
        put(&mut out, &mut sum, &KeyLine::from(text)).await?;
    }
    let mut records = 0;
    while let Some(page) = reader.next().await? {
        for (key, value) in page {
            let line = BackupLine { key: text(&key)?, value: text(&value)? };
            put(&mut out, &mut sum, &line).await?;
            records += 1;
        }
    }
    let tail = BackupTrailer { records, sha256: hex(sum.clone()) };
    put(&mut out, &mut sum, &tail).await?;
    out.flush().await.map_err(unwritten)?;
    Ok(BackupTaken { records, ca_fingerprint })
}

/// Reads a backup to its end and returns its summary.
///
/// # Errors
/// [`TransferError::Damaged`] and [`TransferError::Newer`].
pub async fn inspect(from: impl AsyncRead + Unpin) -> Result<BackupContents, TransferError> {
    Ok(look(from).await?.0)
}

/// The summary of a backup, and the keys that are in it.
async fn look(from: impl AsyncRead + Unpin) -> Result<(BackupContents, Vec<KeyText>), TransferError> {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let (mut newest, mut unreadable) = (Timestamp::EPOCH, None);
    let Contained { head, keys, records } = read(from, async |records: Vec<(Bytes, Bytes)>| {
        for (key, value) in records {
            newest = newest.max(event_time(&key, &value).unwrap_or(newest));
            if unreadable.is_none() {
                unreadable = world::unreadable(&key, &value);
            }
            *kinds.entry(kind(&String::from_utf8_lossy(&key))).or_insert(0) += 1;
        }
        Ok(())
    })
    .await?;
    let contents = BackupContents {
        installation: head.installation.id,
        ca_fingerprint: head.installation.ca_fingerprint,
        revision: head.revision,
        taken_ms: head.taken_ms,
        newest_ms: head.taken_ms.max(newest.as_millis()),
        version: head.version,
        records,
        kinds,
        keys: keys.iter().map(|key| key.file).collect(),
        unreadable,
    };
    Ok((contents, keys))
}

/// Reads a backup to its end, with the keys that are in it, and refuses one with a record that no server of this release could read.
///
/// # Errors
/// [`TransferError::Damaged`], [`TransferError::Newer`] and [`TransferError::Unreadable`].
pub(super) async fn restorable(file: &Path) -> Result<(BackupContents, Vec<KeyText>), TransferError> {
    let (contents, keys) = look(open(file).await?).await?;
    match &contents.unreadable {
        None => Ok((contents, keys)),
        Some(reason) => {
            Err(TransferError::Unreadable { reason: reason.clone(), version: contents.version.clone() })
        }
    }
}

/// Restores a backup into an empty store. It is read to its end first, with every record, so that a damaged one writes nothing. An
/// event tells of it, by the server of this name.
///
/// # Errors
/// [`TransferError`]; the records of an interrupted attempt are not an installation, and the next attempt starts over.
pub async fn restore(
    store: &Store,
    by: (&ServerName, Timestamp),
    file: &Path,
) -> Result<BackupContents, TransferError> {
    restore_noting(store, by, file, || ()).await
}

/// The same; calls `begun` once the store is marked as one whose restore has begun.
pub(super) async fn restore_noting(
    store: &Store,
    (by, now): (&ServerName, Timestamp),
    file: &Path,
    begun: impl FnOnce(),
) -> Result<BackupContents, TransferError> {
    unused(store).await?;
    let (contents, _) = restorable(file).await?;
    let head = head_of(file).await?;
    let there = in_another_store(&head.installation, Revision(head.revision));
    let there = there.restored(Timestamp::from_millis(head.taken_ms), now)?;
    if begin(store, &head.installation, TransferKind::Restore).await? {
        clear(store).await?;
    }
    begun();
    read(open(file).await?, async |records| write(store, records).await).await?;
    // Written last: its presence marks the installation as complete.
    let cause = format!(
        "a backup of {} was restored, with the records of revision {}; every node moves to the versions that they name at once, without batches",
        rfc3339(Timestamp::from_millis(head.taken_ms)),
        head.revision
    );
    let event = restored_event::write(store, (by, now), cause).await?;
    finish_in(store, there.to_bytes()?, event).await?;
    Ok(contents)
}

/// Reads the header of a backup.
pub(super) async fn head_of(file: &Path) -> Result<BackupHeader, TransferError> {
    let first = line(&mut BufReader::new(open(file).await?)).await?.ok_or_else(|| damaged("it is empty"))?;
    format(&first)?;
    parse(&first)
}

/// Checks that the first line is the header of a backup in a format that this release reads.
fn format(first: &[u8]) -> Result<(), TransferError> {
    let format: BackupFormat = serde_json::from_slice(first)
        .map_err(|_| damaged("it is not a backup; use a file written by `bellwether server backup`"))?;
    if format.backup > FORMAT_WITH_KEYS {
        return Err(TransferError::Newer { found: format.backup, known: FORMAT_WITH_KEYS });
    }
    Ok(())
}

pub(super) async fn open(file: &Path) -> Result<tokio::fs::File, TransferError> {
    let opened = tokio::fs::File::open(file).await;
    opened.map_err(|source| TransferError::File { action: "read", path: file.to_owned(), source })
}

/// What a backup contains besides the records themselves.
struct Contained {
    head: BackupHeader,
    keys: Vec<KeyText>,
    records: u64,
}

/// Reads a backup and passes its records on in chunks.
async fn read(
    from: impl AsyncRead + Unpin,
    mut take: impl AsyncFnMut(Vec<(Bytes, Bytes)>) -> Result<(), TransferError>,
) -> Result<Contained, TransferError> {
    let mut lines = BufReader::new(from);
    let mut sum = Sha256::new();
    let first = line(&mut lines).await?.ok_or_else(|| damaged("it is empty"))?;
    format(&first)?;
    let head: BackupHeader = parse(&first)?;
    sum.update(&first);
    let (mut count, mut chunk, mut keys) = (0_u64, Vec::with_capacity(CHUNK), Vec::new());
    while let Some(line) = line(&mut lines).await? {
        if let Ok(tail) = serde_json::from_slice::<BackupTrailer>(&line) {
            if tail.records != count || tail.sha256 != hex(sum) {
                return Err(damaged("the count or the checksum does not match"));
            }
            if head.backup == FORMAT_WITH_KEYS {
                keys::check(&keys, &head.installation.ca_fingerprint)?;
            }
            take(chunk).await?;
            return Ok(Contained { head, keys, records: count });
        }
        sum.update(&line);
        if count == 0
            && head.backup == FORMAT_WITH_KEYS
            && let Some(key) = keys::of(&line)?
        {
            keys.push(key);
            continue;
        }
        let record: BackupLine = parse(&line)?;
        count += 1;
        chunk.push((record.key.into(), record.value.into()));
        if chunk.len() == CHUNK {
            take(std::mem::take(&mut chunk)).await?;
        }
    }
    Err(damaged("it has no trailer"))
}

#[derive(Deserialize)]
struct BackupFormat {
    backup: u32,
}

async fn line(lines: &mut (impl AsyncBufReadExt + Unpin)) -> Result<Option<Vec<u8>>, TransferError> {
    let mut line = Vec::new();
    let most = u64::try_from(LONGEST_LINE).unwrap_or(u64::MAX);
    let read = tokio::io::AsyncReadExt::take(lines, most).read_until(b'\n', &mut line).await;
    read.map_err(|error| damaged(&error.to_string()))?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) => Err(damaged("its last line is incomplete")),
    }
}

fn parse<T: for<'a> Deserialize<'a>>(line: &[u8]) -> Result<T, TransferError> {
    serde_json::from_slice(line).map_err(|error| damaged(&format!("a line is not valid: {error}")))
}

async fn put(
    out: &mut (impl AsyncWrite + Unpin),
    sum: &mut Sha256,
    line: &impl Serialize,
) -> Result<(), TransferError> {
    let mut bytes = serde_json::to_vec(line).map_err(|error| damaged(&error.to_string()))?;
    bytes.push(b'\n');
    sum.update(&bytes);
    out.write_all(&bytes).await.map_err(unwritten)
}

fn unwritten(source: std::io::Error) -> TransferError {
    TransferError::File { action: "write", path: "the backup".into(), source }
}

fn damaged(reason: &str) -> TransferError {
    TransferError::Damaged(reason.to_owned())
}

fn text(bytes: &[u8]) -> Result<String, TransferError> {
    String::from_utf8(bytes.to_vec()).map_err(|error| damaged(&format!("a record is not UTF-8: {error}")))
}

fn hex(sum: Sha256) -> String {
    secret::hex(&sum.finalize())
}

/// `default node` of `/bw/ns/default/node/web-1`, `token` of `/bw/token/…`.
fn kind(key: &str) -> String {
    let mut parts = key.strip_prefix(key_text::ROOT).unwrap_or(key).split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("ns"), Some(namespace), Some(kind)) => format!("{namespace} {kind}"),
        (Some(kind), _, _) => kind.to_owned(),
        (None, _, _) => key.to_owned(),
    }
}
