//! Working directories of jobs whose agent was killed: params and secrets are in them, and nobody else removes them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bellwether_rt::tasks::Tasks;

use crate::disk;

/// Where they are until they are removed, beside the directory of those in use.
const FORMER: &str = "former-work";

/// Interval between two attempts: what the killed agent left running may write there until its guard has ended it.
const AGAIN: Duration = Duration::from_secs(1);

/// Moves all working directories away, before this agent begins a job, and has them removed.
pub(crate) fn remove(work: &Path, tasks: &Tasks) {
    let former = work.with_file_name(FORMER);
    if let Err(error) = move_away(work, &former) {
        tracing::warn!(path = %work.display(), %error, "cannot move away what former jobs left");
    }
    if former.exists() {
        tasks.spawn("former work", remove_all(former, tasks.clone()));
    }
}

fn move_away(work: &Path, former: &Path) -> io::Result<()> {
    if !work.exists() {
        return Ok(());
    }
    disk::private_dir(former)?;
    let free = (0_u32..).map(|number| former.join(number.to_string())).find(|path| !path.exists());
    free.map_or(Ok(()), |free| fs::rename(work, free))
}

async fn remove_all(former: PathBuf, tasks: Tasks) {
    let token = tasks.token();
    loop {
        let removed = former.clone();
        let removed = tasks.spawn_blocking(move || fs::remove_dir_all(removed)).await;
        match removed.map_err(io::Error::other).flatten() {
            Ok(()) => return,
            Err(error) => {
                tracing::debug!(path = %former.display(), %error, "cannot remove what former jobs left yet")
            }
        }
        tokio::select! {
            () = token.cancelled() => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}
