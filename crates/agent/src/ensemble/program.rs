//! The program of a member: started, adopted, watched and stopped.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use bellwether_core::local::delay;
use bellwether_core::local::member::{MemberKey, MemberProcess};
use tokio::time::Instant;

use crate::apply::process::SupervisedProcess;
use crate::apply::{PATH, output};

/// How long a program must have run for its next end to be the first in a row.
const LONG_RUN: Duration = Duration::from_secs(100);

/// How many ends in a row are too many for it to count as working soon.
const MANY_ENDS: u32 = 3;

/// Time that a program has to end after SIGTERM.
const STOP: Duration = Duration::from_secs(20);

/// The program of a member.
#[derive(Debug)]
pub(super) enum MemberProgram {
    /// It does not run, and was not seen to end.
    Stopped,
    /// It runs.
    Running {
        /// Of which member it is.
        key: MemberKey,
        /// Its process.
        process: SupervisedProcess,
        /// Since when it is known to run.
        since: Instant,
        /// How often it has ended in a row before.
        failed: u32,
    },
    /// Something else than the agent starts and stops it.
    Delegated {
        /// Of which member it is.
        key: MemberKey,
        /// How often it was started in a row without working for long.
        failed: u32,
        /// How often in a row it worked, and not for long.
        ended: u32,
        /// When it may be started again.
        due: Instant,
        /// Since when it works; `None` if it does not.
        works_since: Option<Instant>,
        /// Whether it is yet to be started at all.
        is_first: bool,
    },
    /// It ended by itself.
    Ended {
        /// Its exit code, if it is known.
        code: Option<i32>,
        /// How it ended.
        summary: String,
        /// When it may be started again.
        due: Instant,
        /// How often it has ended in a row.
        failed: u32,
    },
}

/// Bytes below which a disk counts as full: the smallest file of a store that is made anew needs more.
const LITTLE_ROOM: u64 = 1 << 20;

impl MemberProgram {
    pub(super) fn running(key: MemberKey, process: SupervisedProcess, failed: u32) -> Self {
        Self::Running { key, process, since: Instant::now(), failed }
    }

    /// One that something else starts, and has not started yet if it is the first time.
    pub(super) fn delegated(key: MemberKey, is_first: bool) -> Self {
        Self::Delegated { key, failed: 0, ended: 0, due: Instant::now(), works_since: None, is_first }
    }

    /// Whether something else is yet to start it at all: what answers until then is something else.
    pub(super) const fn is_first(&self) -> bool {
        matches!(self, Self::Delegated { is_first: true, .. })
    }

    /// Notes that it was started.
    pub(super) fn note_started(&mut self) {
        if let Self::Delegated { is_first, .. } = self {
            *is_first = false;
        }
    }

    /// How often it has ended in a row, if that is so often that it does not count as working before it has run for long.
    pub(super) fn keeps_ending(&self) -> Option<u32> {
        let (failed, since) = match self {
            Self::Running { failed, since, .. } => (*failed, Some(*since)),
            Self::Delegated { ended, works_since, .. } => (*ended, *works_since),
            Self::Stopped | Self::Ended { .. } => return None,
        };
        let is_short = since.is_none_or(|since| since.elapsed() < LONG_RUN);
        (is_short && failed >= MANY_ENDS).then_some(failed)
    }

    /// Notes that what something else runs works.
    pub(super) fn note_works(&mut self) {
        if let Self::Delegated { works_since, .. } = self {
            works_since.get_or_insert_with(Instant::now);
        }
    }

    /// Whether what something else runs may be started now that it is stopped; then it may be again after the time that is given for so many
    /// starts in a row.
    pub(super) fn may_start(&mut self, delay: impl FnOnce(u32) -> Duration) -> bool {
        let Self::Delegated { failed, ended, due, works_since, .. } = self else { return false };
        let now = Instant::now();
        match works_since.take() {
            Some(since) if now.duration_since(since) >= LONG_RUN => (*failed, *ended, *due) = (0, 0, now),
            Some(_) => *ended = ended.saturating_add(1),
            None => {}
        }
        if now < *due {
            return false;
        }
        *failed = failed.saturating_add(1);
        *due = now + delay(*failed);
        true
    }

    /// Notes that it has ended, if it has; answers whether it has just now.
    pub(super) fn look(&mut self, seed: u64) -> bool {
        let Self::Running { process, since, failed, .. } = self else { return false };
        let Some(evidence) = process.ended() else { return false };
        let failed = if since.elapsed() >= LONG_RUN { 1 } else { failed.saturating_add(1) };
        let due = Instant::now() + delay::after(failed, seed).to_duration();
        let last = output::telling_line(&evidence.tail);
        let separator = if last.is_empty() { "" } else { "; it wrote: " };
        let summary = format!("{}{separator}{last}", evidence.summary);
        *self = Self::Ended { code: evidence.exit_code, summary, due, failed };
        true
    }

    /// Notes that there is hardly any room where its data are, which is why it ended, whatever it wrote about that.
    pub(super) fn note_room(&mut self, free: u64) {
        if let Self::Ended { summary, code, .. } = self
            && free < LITTLE_ROOM
            && *code != Some(0)
        {
            *summary = format!("its disk is full, with {} KiB free: {summary}", free / 1_024);
        }
    }

    /// What the plan is made from.
    pub(super) fn state(&self) -> MemberProcess {
        match self {
            Self::Stopped => MemberProcess::Stopped,
            Self::Running { key, .. } | Self::Delegated { key, .. } => MemberProcess::Running(key.clone()),
            Self::Ended { code, summary, due, .. } => {
                MemberProcess::Ended { code: *code, summary: summary.clone(), is_due: *due <= Instant::now() }
            }
        }
    }

    /// How often it has ended in a row.
    pub(super) const fn failed(&self) -> u32 {
        match self {
            Self::Stopped | Self::Delegated { .. } => 0,
            Self::Running { failed, .. } | Self::Ended { failed, .. } => *failed,
        }
    }

    /// When it may be started again, if it ended.
    pub(super) const fn due(&self) -> Option<Instant> {
        match self {
            Self::Ended { due, .. } => Some(*due),
            Self::Stopped | Self::Running { .. } | Self::Delegated { .. } => None,
        }
    }

    /// Waits until it has ended; for ever if it does not run. Cancel safe.
    pub(super) async fn ends(&mut self) {
        match self {
            Self::Running { process, .. } => drop(process.wait().await),
            Self::Stopped | Self::Ended { .. } | Self::Delegated { .. } => std::future::pending().await,
        }
    }

    /// Ends it. What something else runs is stopped by that.
    pub(super) async fn stop(&mut self) {
        if let Self::Running { process, .. } = self {
            process.stop(STOP).await;
        }
        *self = Self::Stopped;
    }
}

/// What is missing for a start, in words that fit after "waits for "; `None` if nothing is. Not for the runtime's threads.
pub(super) fn lack(programs: &[(&str, &str)], listens: &[SocketAddr]) -> Option<String> {
    if let Some((setting, program)) = programs.iter().find(|(_, program)| !is_there(program)) {
        return Some(format!(
            "{program}, which is not installed: set {setting} in [ensembles], or install it"
        ));
    }
    let taken = |address: &&SocketAddr| TcpListener::bind(address).err();
    let (address, error) = listens.iter().find_map(|address| Some((address, taken(&address)?)))?;
    Some(match error.kind() == std::io::ErrorKind::AddrInUse {
        true => format!("{address}, where another program listens"),
        false => format!("{address}, where nobody can listen: {error}"),
    })
}

/// Whether a program is on this machine.
pub(super) fn is_there(program: &str) -> bool {
    match program.contains('/') {
        true => Path::new(program).is_file(),
        false => PATH.split(':').any(|dir| Path::new(dir).join(program).is_file()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> MemberKey {
        MemberKey {
            identity: "web-1".to_owned(),
            number: bellwether_core::words::counter::MemberNumber::new(1),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_again_and_again_does_not_work_before_it_has_run_for_long() {
        let mut program = MemberProgram::delegated(key(), true);
        assert!(program.is_first());
        for ended in 0..4 {
            assert!(program.may_start(|_| Duration::from_secs(1)), "start {ended}");
            assert!(!program.may_start(|_| Duration::from_secs(1)), "not twice at once");
            program.note_started();
            program.note_works();
            assert_eq!(program.keeps_ending(), (ended >= MANY_ENDS).then_some(ended));
            tokio::time::advance(Duration::from_secs(5)).await;
        }
        assert!(!program.is_first());
        program.note_works();
        tokio::time::advance(LONG_RUN).await;
        assert_eq!(program.keeps_ending(), None);
        assert!(program.may_start(|failed| Duration::from_secs(failed.into())));
        program.note_works();
        assert_eq!(program.keeps_ending(), None, "what it did before is forgotten");
    }
}
