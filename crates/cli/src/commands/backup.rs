//! `server backup`: writes a backup of a store that this process opens, or that a running server gives. A file has its name only once all
//! of the backup is in it.

use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bellwether_api::client::{AnswerBody, CallError};
use bellwether_api::v1::backup::NewBackup;
use bellwether_core::words::plural::Plural;
use bellwether_rt::clock::Clock;
use bellwether_server::config::Config;
use bellwether_server::transfer::backup::{self, BackupContents, BackupTaken};
use bellwether_server::transfer::location;
use hyper::body::Bytes;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::transfer::at;
use crate::args::Global;
use crate::context::Context;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::Show;

/// Bytes that are received and not yet checked, at most.
const UNCHECKED_BYTES: usize = 256 << 10;

/// What is in a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackupScope {
    /// The records.
    Records,
    /// The records, and the keys of the installation.
    WithKeys,
}

/// Writes a backup of the store of a configuration, which this process opens.
pub(super) async fn offline(
    global: &Global,
    config: &Config,
    (file, scope): (&Path, BackupScope),
) -> CommandResult {
    if is_stdout(file) {
        let taken = take(config, scope, &mut tokio::io::stdout()).await;
        return taken.map(|_| Exit::Yes);
    }
    let mut new = NewFile::create(file)?;
    let taken = take(config, scope, &mut new.out).await;
    let taken = match taken {
        Ok(taken) => taken,
        Err(failure) => return Err(new.discard(failure)),
    };
    new.keep().await?;
    let show = Show::new(global);
    let dir = config.data_dir.display().to_string();
    tell(&show, (file, scope), taken.records, &format!("keep {dir}/pki/ca.pem, ca.key and secrets.key"))?;
    if let Some(other) = location::other_authority(config, &taken.ca_fingerprint) {
        show.note(&format!("warning: {other}"));
    }
    Ok(Exit::Yes)
}

async fn take(
    config: &Config,
    scope: BackupScope,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<BackupTaken, Failure> {
    let now = Clock::system().now();
    let taken = match scope {
        BackupScope::Records => location::back_up(config, now, out).await,
        BackupScope::WithKeys => location::back_up_with_keys(config, now, out).await,
    };
    taken.map_err(|error| {
        let is_in_use = error.is_in_use();
        let failure = Failure::from(error);
        match is_in_use {
            true => failure.hint("have the server that runs take it: bellwether server backup --online FILE"),
            false => failure,
        }
    })
}

/// Writes a backup that a running server gives.
pub(super) async fn online(context: &Context, file: &Path, scope: BackupScope) -> CommandResult {
    let request = NewBackup { keys: scope == BackupScope::WithKeys };
    if is_stdout(file) {
        let body = context.client.backup(request).await?;
        receive(body, &mut tokio::io::stdout()).await?;
        return Ok(Exit::Yes);
    }
    let mut new = NewFile::create(file)?;
    let received = match context.client.backup(request).await {
        Ok(body) => receive(body, &mut new.out).await,
        Err(error) => Err(error.into()),
    };
    let contents = match received {
        Ok(contents) => contents,
        Err(failure) => return Err(new.discard(failure)),
    };
    new.keep().await?;
    let pki = "keep pki/ca.pem, ca.key and secrets.key of the server's data directory";
    tell(&context.show, (file, scope), contents.records, pki)?;
    Ok(Exit::Yes)
}

/// The parts of a backup, as they arrive.
trait Parts {
    /// The next part; none at the end.
    async fn next_part(&mut self) -> Result<Option<Bytes>, CallError>;
}

impl Parts for AnswerBody {
    async fn next_part(&mut self) -> Result<Option<Bytes>, CallError> {
        self.next().await
    }
}

/// Writes what arrives, and checks it: a backup is complete with a trailer that has the right count and checksum.
async fn receive(
    mut body: impl Parts,
    out: &mut (impl AsyncWrite + Unpin),
) -> Result<BackupContents, Failure> {
    let unwritten = |source| at("write", Path::new("the backup"), source);
    let (mut copy, checked) = tokio::io::duplex(UNCHECKED_BYTES);
    let passing = async move {
        while let Some(part) = body.next_part().await? {
            out.write_all(&part).await.map_err(unwritten)?;
            if copy.write_all(&part).await.is_err() {
                // It is found to be damaged.
                break;
            }
        }
        out.flush().await.map_err(unwritten)
    };
    let (passed, contents) = tokio::join!(passing, backup::inspect(checked));
    passed?;
    Ok(contents?)
}

/// Tells what was written, and what to do next.
fn tell(show: &Show, (file, scope): (&Path, BackupScope), records: u64, keep: &str) -> Result<(), Failure> {
    let data = serde_json::json!({"file": file, "records": records, "keys": scope == BackupScope::WithKeys});
    let name = file.display();
    let keys = match scope {
        BackupScope::Records => format!(
            "a restore needs the certificate authority and the keys of secrets too: {keep} in another place"
        ),
        BackupScope::WithKeys => {
            "the keys of the installation are in it: a restore needs nothing else".to_owned()
        }
    };
    show.data(
        &data,
        || vec![name.to_string()],
        |_| {
            let records = Plural(records, "record");
            format!(
                "{records} written to {name}\n\n{keys}\nverify the backup with: bellwether server inspect {name}"
            )
        },
    )?;
    if scope == BackupScope::WithKeys {
        show.note(&format!(
            "warning: {name} is not encrypted, and whoever reads it can be any server and any node and read every secret; encrypt it and \
             remove it, or write it encrypted at once: bellwether server backup --with-keys … - | age -r KEY > FILE"
        ));
    }
    Ok(())
}

fn is_stdout(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// A file that is being written, and has no name before it is whole: who breaks it off leaves nothing behind, least of all keys.
struct NewFile {
    file: PathBuf,
    /// The name that it has meanwhile, on file systems without files that have none.
    part: Option<PathBuf>,
    out: tokio::fs::File,
}

impl NewFile {
    /// Creates it, for its owner alone: a backup has hashes of tokens, and profiles.
    fn create(file: &Path) -> Result<Self, Failure> {
        if file.try_exists().unwrap_or(true) {
            let reason = format!("write {}: the file exists", file.display());
            return Err(Failure::new(Exit::Refused, reason).hint("name another file"));
        }
        let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let (part, out) = match rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR) {
            Ok(unnamed) => (None, std::fs::File::from(unnamed)),
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
                let (part, out) = named(file)?;
                (Some(part), out)
            }
            Err(error) => return Err(at("write", file, error.into())),
        };
        Ok(Self { file: file.to_owned(), part, out: out.into() })
    }

    /// Removes it, since an incomplete backup is of no use, and answers why it is incomplete.
    fn discard(self, failure: Failure) -> Failure {
        let Some(part) = self.part else { return failure };
        match std::fs::remove_file(&part) {
            Ok(()) => failure,
            Err(error) => failure.hint(format!("remove {}: {error}", part.display())),
        }
    }

    /// Gives it its name. Unlike a rename, a link never replaces a file.
    async fn keep(self) -> Result<(), Failure> {
        let unwritten = |source| at("write", &self.file, source);
        self.out.sync_all().await.map_err(unwritten)?;
        let Some(part) = &self.part else {
            let open = format!("/proc/self/fd/{}", self.out.as_raw_fd());
            let linked = rustix::fs::linkat(CWD, open, CWD, &self.file, AtFlags::SYMLINK_FOLLOW);
            return linked.map_err(|error| unwritten(error.into()));
        };
        let kept = async {
            tokio::fs::hard_link(part, &self.file).await?;
            tokio::fs::remove_file(part).await
        };
        let hint = format!("all of the backup is in {}", part.display());
        kept.await.map_err(|source| unwritten(source).hint(hint))
    }
}

/// A file with another name, next to the one that it is to have.
fn named(file: &Path) -> Result<(PathBuf, std::fs::File), Failure> {
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    // One that an attempt left may be readable by others, or lead elsewhere.
    if let Err(source) = std::fs::remove_file(&part)
        && source.kind() != std::io::ErrorKind::NotFound
    {
        return Err(at("remove", &part, source));
    }
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(&part);
    let out = opened.map_err(|source| at("write", &part, source))?;
    Ok((part, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer that consists of these parts.
    struct Given(std::vec::IntoIter<Bytes>);

    impl Parts for Given {
        async fn next_part(&mut self) -> Result<Option<Bytes>, CallError> {
            Ok(self.0.next())
        }
    }

    fn parts(text: &[u8]) -> Given {
        Given(text.chunks(7).map(Bytes::copy_from_slice).collect::<Vec<_>>().into_iter())
    }

    /// A backup with one record.
    async fn whole() -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { data_dir: dir.path().join("server"), ..Config::load(None).unwrap() };
        bellwether_server::run::init(&config).await.unwrap();
        let mut bytes = Vec::new();
        location::back_up(&config, Clock::system().now(), &mut bytes).await.unwrap();
        bytes
    }

    #[tokio::test]
    async fn a_backup_is_written_as_it_arrives_and_one_that_is_cut_anywhere_is_refused() {
        let (text, mut out) = (whole().await, Vec::new());
        let contents = receive(parts(&text), &mut out).await.unwrap();
        assert!(contents.records > 0 && out == text);
        for cut in (0..text.len()).step_by(97).chain([text.len() - 1]) {
            let kept = text.get(..cut).unwrap();
            let refused = receive(parts(kept), &mut Vec::new()).await.unwrap_err();
            assert!(refused.message.contains("read the backup"), "{cut}: {}", refused.message);
        }
        // A line that is missing in between is found too.
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let mut fewer = lines.clone();
        fewer.remove(1);
        let refused = receive(parts(&fewer.concat()), &mut Vec::new()).await.unwrap_err();
        assert!(refused.message.contains("checksum"), "{}", refused.message);
    }
}
