//! The files of the states of checks: read at start, and written by one task.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::words::digest::Digest;
use bellwether_core::words::time::Span;
use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use super::shape::{self, Moment};
use super::state::{CheckOwner, States};
use crate::apply::process::boot_id;
use crate::disk;

/// Records when an agent ended in order: the boot, and milliseconds since it.
const ENDED: &str = "ended";

/// Changes that come within this are written together.
const GATHER: Duration = Duration::from_millis(20);

/// How long to wait before writing again after a failure.
const HOLD: Duration = Duration::from_secs(2);

/// The longest restart over which a healthy time goes on: no longer than a control plane waits for an agent.
const HEALTHY_OVER: Span = Span::from_secs(15);

/// Writes states that changed.
pub(super) struct CheckWriter {
    /// What is on disk.
    pub(super) written: States,
    pub(super) dir: PathBuf,
    pub(super) clock: Clock,
}

impl CheckWriter {
    /// Runs until the agent stops; what changed until then is written.
    pub(super) async fn run(mut self, mut states: watch::Receiver<States>, tasks: Tasks) {
        let token = tasks.token();
        let mut failed = false;
        loop {
            let wait = if failed { HOLD } else { GATHER };
            // All arms only wait; the states are read below.
            tokio::select! {
                () = token.cancelled() => {}
                () = tokio::time::sleep(HOLD), if failed => {}
                changed = states.changed() => if changed.is_err() { return },
            }
            let ending = token.is_cancelled();
            if !ending {
                tokio::select! {
                    () = token.cancelled() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
            let (now, before) = (states.borrow_and_update().clone(), self.written.clone());
            let (dir, clock) = (self.dir.clone(), self.clock.clone());
            let target = now.clone();
            let done = tasks.spawn_blocking(move || write(&dir, &before, &target, &clock)).await;
            match done.map_err(io::Error::other).flatten() {
                Ok(()) => (self.written, failed) = (now, false),
                Err(error) => {
                    if !failed {
                        tracing::warn!(dir = %self.dir.display(), %error, "cannot store the states of checks; retrying");
                    }
                    failed = true;
                }
            }
            if ending {
                return;
            }
        }
    }
}

/// Writes what differs from `before`.
fn write(dir: &Path, before: &States, now: &States, clock: &Clock) -> io::Result<()> {
    let (boot_id, moment) = moment(clock)?;
    for (owner, stored) in now {
        if before.get(owner).is_some_and(|before| Arc::ptr_eq(before, stored) || before == stored) {
            continue;
        }
        let text = shape::text(owner, stored, &boot_id, moment).map_err(io::Error::other)?;
        disk::replace_unsynced(&path(dir, owner), &text)?;
    }
    for owner in before.keys().filter(|owner| !now.contains_key(owner)) {
        disk::remove(&path(dir, owner))?;
    }
    Ok(())
}

/// Everything that was stored on this boot, and failures in the soak of any. Other files of another boot are removed.
pub(super) fn read(dir: &Path, clock: &Clock) -> States {
    let mut states = States::new();
    let gap = match gap(dir, clock) {
        Ok(gap) => gap,
        Err(error) => {
            tracing::debug!(%error, "cannot read when the agent before ended");
            None
        }
    };
    let goes_on = gap.is_some_and(|gap| gap <= HEALTHY_OVER);
    let (Ok((boot_id, moment)), Ok(entries)) = (moment(clock), std::fs::read_dir(dir)) else { return states };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        match text.and_then(|text| shape::read(&text, &boot_id, moment)) {
            Ok(Some((owner, mut stored))) => {
                stored.healthy_since = stored.healthy_since.filter(|_| goes_on);
                // The soak goes on in any case: it is time that was observed, and every check is asked again at its end.
                states.insert(owner, Arc::new(stored));
            }
            Ok(None) => drop(disk::remove(&path)),
            Err(reason) => {
                tracing::info!(path = %path.display(), reason, "a stored check state is void");
                drop(disk::remove(&path));
            }
        }
    }
    states
}

/// Records the end of an agent.
pub(super) fn close(dir: &Path, clock: &Clock) -> io::Result<()> {
    let (boot_id, moment) = moment(clock)?;
    disk::replace_unsynced(&dir.join(ENDED), &format!("{boot_id} {}", moment.since_boot.as_millis()))
}

/// How long ago the agent before ended in order on this boot. The record counts once.
fn gap(dir: &Path, clock: &Clock) -> io::Result<Option<Span>> {
    let path = dir.join(ENDED);
    let Some(text) = disk::read(&path)? else { return Ok(None) };
    disk::remove(&path)?;
    let (boot_id, moment) = moment(clock)?;
    let ended = text.split_once(' ').filter(|(boot, _)| *boot == boot_id);
    let ended = ended.and_then(|(_, at)| at.parse().ok()).map(Span::from_millis);
    Ok(ended.map(|ended| moment.since_boot.minus(ended)))
}

fn moment(clock: &Clock) -> io::Result<(String, Moment)> {
    let since_boot =
        clock.since_boot().ok_or_else(|| io::Error::other("no time since boot in /proc/uptime"))?;
    Ok((boot_id()?, Moment { now: clock.now(), since_boot }))
}

/// The path of an owner's file, named by a digest of the owner, whose name may be longer than a file's.
fn path(dir: &Path, owner: &CheckOwner) -> PathBuf {
    let mut digest = Digest::default();
    match owner {
        CheckOwner::Service((service, instance)) => {
            digest.add(b"service");
            digest.add(service.as_str().as_bytes());
            digest.add(instance.as_str().as_bytes());
        }
        CheckOwner::Entity(entity) => {
            digest.add(b"entity");
            digest.add(entity.as_str().as_bytes());
        }
    }
    dir.join(format!("{:016x}.json", digest.finish()))
}
