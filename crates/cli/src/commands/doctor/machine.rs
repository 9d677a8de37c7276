//! What a server and an agent need of their machine: room on the disk, files that only they can read, a certificate that is valid.

use std::fs;
use std::path::Path;

use bellwether_core::words::time::{Span, Timestamp};
use bellwether_rt::own_files::{NotPrivate, OwnFiles};

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

/// Whether a data directory and its keys are for their user alone, and the user of this command can read `key`.
pub(super) fn private(part: &str, own: &OwnFiles, key: &Path) -> Vec<Finding> {
    let check = format!("{part}/permissions");
    let (dir, outside) = (own.data_dir.display(), "run this as root or as the user of the service");
    match own.look() {
        Err(error) => vec![Finding::failed(check, format!("cannot look at {dir}: {error}"), outside)],
        Ok((user, faults)) if faults.is_empty() => vec![match fs::File::open(key) {
            Ok(_) => {
                Finding::ok(check, format!("{dir} and its keys are for their owner, user {user}, alone"))
            }
            Err(error) => Finding::failed(check, format!("cannot open {}: {error}", key.display()), outside),
        }],
        Ok((_, faults)) => {
            let failed = |NotPrivate { path, reason, mend }| {
                Finding::failed(check.clone(), format!("{}: {reason}", path.display()), mend)
            };
            faults.into_iter().map(failed).collect()
        }
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
    fn everything_that_others_can_use_is_found_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let keys = ["ca.key", "secrets.key"].map(|name| dir.path().join(name));
        let data_dir = dir.path().to_owned();
        let own = OwnFiles { data_dir, unwritable: vec![], secret: keys.clone().into() };
        assert!(private("server", &own, &keys[0])[0].detail.contains("No such file"));
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for key in &keys {
            fs::write(key, "").unwrap();
            mode(key, 0o640);
        }
        mode(dir.path(), 0o777);
        let found = private("server", &own, &keys[0]);
        assert!(found.iter().all(|finding| finding.state == FindingState::Failed), "{found:?}");
        let next: Vec<Option<String>> = found.into_iter().map(|finding| finding.next).collect();
        let [first, second] = keys.each_ref().map(|key| Some(format!("chmod 0600 {}", key.display())));
        assert_eq!(next, [Some(format!("chmod 0700 {}", dir.path().display())), first, second]);
        mode(dir.path(), 0o700);
        keys.iter().for_each(|key| mode(key, 0o600));
        assert_eq!(private("server", &own, &keys[0])[0].state, FindingState::Ok);
    }
}
