//! Working directories of jobs whose agent was killed: params and secrets are in them, and nobody else removes them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_rt::observed::TimeLimit;
use bellwether_rt::tasks::Tasks;

use super::guarded::KILLED;
use crate::disk;
use crate::guard::message::GRACE;

/// Where they are until they are removed, beside the directory of those in use.
const FORMER: &str = "former-work";

/// Interval between two attempts: what the killed agent left running may write there until its guard has ended it.
const AGAIN: Duration = Duration::from_secs(1);

/// Moves all working directories away, before this agent begins a job, and has them removed.
pub(crate) fn remove(work: &Path, tasks: &Tasks) {
    let former = work.with_file_name(FORMER);
    if let Err(error) = move_away(work, &former) {
        tracing::warn!(path = %work.display(), %error, "cannot move away the working directories of former jobs");
    }
    tasks.spawn("former work", remove_all(former, tasks.clone()));
}

fn move_away(work: &Path, former: &Path) -> io::Result<()> {
    disk::private_dir(former)?;
    let mut number = 0_u32;
    loop {
        match fs::rename(work, former.join(number.to_string())) {
            // Those of another life, which could not be removed.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                number = number.saturating_add(1)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => return Ok(()),
        }
    }
}

/// Tries until the guards of former jobs have had their time; the next life of the agent tries again.
async fn remove_all(former: PathBuf, tasks: Tasks) {
    let token = tasks.token();
    let mut limit = TimeLimit::new(GRACE + KILLED);
    loop {
        let removed = former.clone();
        let removed = tasks.spawn_blocking(move || fs::remove_dir_all(removed)).await;
        match removed.map_err(io::Error::other).flatten() {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) if limit.left().is_zero() => {
                return tracing::warn!(path = %former.display(), %error, "cannot remove the working directories of former jobs");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = token.cancelled() => return,
            () = limit.count_during(tokio::time::sleep(AGAIN)) => {}
        }
    }
}
