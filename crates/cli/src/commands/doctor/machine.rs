//! What a server and an agent need of their machine: room on the disk, files that only they can read, a certificate that is valid.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bellwether_core::words::time::{Span, Timestamp};

use super::finding::Finding;
use crate::show::time::date;

/// Below this, a store or a ledger may soon not be written, in bytes.
const LITTLE_BYTES: u64 = 512 << 20;

/// Below this, it counts as full, in bytes: less than what one rotation of logs takes.
const FULL_BYTES: u64 = 64 << 20;

/// Room on the file system of a directory.
pub(super) fn disk(part: &str, dir: &Path) -> Finding {
    let check = format!("{part}/disk");
    let stat = match rustix::fs::statvfs(dir) {
        Ok(stat) => stat,
        Err(error) => {
            let detail = format!("cannot look at the file system of {}: {error}", dir.display());
            return Finding::failed(check, detail, "create the directory, or mend its file system");
        }
    };
    room(check, dir, stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn room(check: String, dir: &Path, free: u64) -> Finding {
    let detail = format!("{} MiB free at {}", free >> 20, dir.display());
    let next = format!("make room on the file system of {}", dir.display());
    match free {
        free if free < FULL_BYTES => Finding::failed(check, detail, next),
        free if free < LITTLE_BYTES => Finding::warning(check, detail, next),
        _ => Finding::ok(check, detail),
    }
}

/// Whether nobody but its owner can read or write a file or directory, which the user of this command can read.
pub(super) fn private(part: &str, path: &Path) -> Finding {
    let check = format!("{part}/permissions");
    let shown = path.display();
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) => {
            let detail = format!("cannot look at {shown}: {error}");
            return Finding::failed(check, detail, "run this as root or as the user of the service");
        }
    };
    let mode = about.mode() & 0o7777;
    if mode & 0o077 != 0 {
        let detail = format!("{shown} can be used by others than its owner (mode {mode:04o})");
        return Finding::failed(check, detail, format!("chmod go= {shown}"));
    }
    match fs::File::open(path) {
        Ok(_) => Finding::ok(check, format!("{shown} is for its owner, user {}, alone", about.uid())),
        Err(error) => Finding::failed(
            check,
            format!("cannot open {shown}: {error}"),
            "run this as root or as the user of the service",
        ),
    }
}

/// How long a certificate is valid; `soon` before its end, that is a warning.
pub(super) fn certificate(
    check: &str,
    (now, expires): (Timestamp, Timestamp),
    soon: Span,
    next: &str,
) -> Finding {
    let until = date(expires.as_millis());
    if now >= expires {
        return Finding::failed(check, format!("the certificate has expired at {until}"), next);
    }
    let detail = format!("the certificate is valid until {until}");
    if now.plus(soon) >= expires { Finding::warning(check, detail, next) } else { Finding::ok(check, detail) }
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_disk_without_room_and_a_certificate_without_time_fail_after_a_warning() {
        let state = |free: u64| room("server/disk".to_owned(), Path::new("/x"), free).state;
        assert_eq!(
            [1 << 40, 100 << 20, 1].map(state),
            [FindingState::Ok, FindingState::Warning, FindingState::Failed]
        );
        let at = Timestamp::from_millis;
        let of = |now: u64| certificate("c", (at(now), at(10_000)), Span::from_secs(5), "renew").state;
        assert_eq!(
            [1, 6_000, 10_000].map(of),
            [FindingState::Ok, FindingState::Warning, FindingState::Failed]
        );
    }

    #[test]
    fn a_key_that_others_can_read_is_found_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key");
        fs::write(&key, "").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        let found = private("server", &key);
        assert_eq!(found.state, FindingState::Failed);
        assert_eq!(found.next, Some(format!("chmod go= {}", key.display())));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(private("server", &key).state, FindingState::Ok);
        assert!(private("server", &dir.path().join("gone")).detail.contains("No such file"));
    }
}
