//! The audit log of a server: every change that is asked of it, on disk before the change takes effect. What cannot be written there is
//! not done. Owns the writer, what prevents it from writing, the limit on refused requests, and reading; which requests are recorded is
//! decided by the guard of routes.

mod file;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether_api::v1::audit::{AuditAnswer, AuditEntry};
use bellwether_core::access::Identity;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_rt::tasks::Tasks;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use self::file::AuditFile;

/// Most requests that wait for the writer.
const WAITING: usize = 1_024;

/// Most lines of one write.
const BATCH: usize = 256;

/// Most refused requests that are recorded in a minute: a stranger must not be able to fill the disk.
const REFUSED_A_MINUTE: u64 = 60;

/// Interval at which a log that cannot be written is tried again, and at most for readiness checks while nothing else is written: who
/// takes a server out of a load balancer waits about as long.
const TRIED_EVERY: Duration = Duration::from_secs(5);

/// The audit log. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AuditLog(Option<Arc<AuditWriter>>);

#[derive(Debug)]
struct AuditWriter {
    dir: PathBuf,
    lines: mpsc::Sender<LogLine>,
    newest: watch::Receiver<u64>,
    trouble: watch::Receiver<Option<String>>,
    refused: Mutex<RefusedLimits>,
}

/// What is to be written.
#[derive(Debug)]
enum LogLine {
    /// An entry, whose number the writer sets; its sender learns it once it is on disk, or why it is not.
    Entry(Box<AuditEntry>, oneshot::Sender<Result<u64, String>>),
    /// The answer to an entry, for which nobody waits.
    Answer(AuditAnswer),
    /// A question whether the log can be written. Its sender learns by the end of the channel that it was answered.
    Probe(oneshot::Sender<()>),
}

/// The limits of those whose callers are known, and of those of strangers, who take none of the places of the others.
#[derive(Debug, Default)]
struct RefusedLimits {
    known: RefusedLimit,
    strangers: RefusedLimit,
}

impl RefusedLimits {
    fn of(&mut self, entry: &AuditEntry) -> &mut RefusedLimit {
        let is_stranger = entry.actor == Identity::Anonymous.actor().as_str();
        if is_stranger { &mut self.strangers } else { &mut self.known }
    }
}

/// How many refused requests were recorded in the present minute.
#[derive(Debug, Default)]
struct RefusedLimit {
    since: Timestamp,
    recorded: u64,
    omitted: u64,
}

impl RefusedLimit {
    /// Whether one more is recorded now, and how many were not before it.
    fn admit(&mut self, now: Timestamp) -> Option<u64> {
        if now.since(self.since) >= Span::from_secs(60) {
            (self.since, self.recorded) = (now, 0);
        }
        if self.recorded >= REFUSED_A_MINUTE {
            self.omitted += 1;
            return None;
        }
        self.recorded += 1;
        Some(std::mem::take(&mut self.omitted))
    }
}

impl AuditLog {
    /// A log that records nothing, for servers without a disk.
    #[must_use]
    pub const fn off() -> Self {
        Self(None)
    }

    /// Opens the log in this directory and starts its writer, which runs until the tasks stop.
    ///
    /// # Errors
    /// What the system says of the directory or its files.
    pub fn start(dir: &Path, tasks: &Tasks) -> io::Result<Self> {
        let mut file = AuditFile::open(dir)?;
        // A disk may be full already. Reads can be answered all the same.
        let tried = file.try_write().map_err(|error| error.to_string());
        let (lines, received) = mpsc::channel(WAITING);
        let (newest, followed) = watch::channel(file.last());
        let (troubled, trouble) = watch::channel(None);
        let stop = tasks.token();
        let writing = Writing { file, received, newest, troubled, proved: Instant::now() };
        writing.note(tried.as_ref().err());
        tasks.spawn("audit", async move {
            // Both arms only wait. Whoever waits for a line that is not written any more learns it.
            tokio::select! {
                () = writing.run() => {}
                () = stop.cancelled() => {}
            }
        });
        let refused = Mutex::default();
        Ok(Self(Some(Arc::new(AuditWriter {
            dir: dir.to_owned(),
            lines,
            newest: followed,
            trouble,
            refused,
        }))))
    }

    /// Records a request that is about to take effect; answers its number once it is on disk. `None` from a log that is off.
    ///
    /// # Errors
    /// Why it is not on disk: the request must not take effect.
    pub(crate) async fn record(&self, entry: AuditEntry) -> Result<Option<u64>, String> {
        let Some(writer) = &self.0 else { return Ok(None) };
        let (reply, replied) = oneshot::channel();
        let stopped = || "the server stops".to_owned();
        writer.lines.send(LogLine::Entry(Box::new(entry), reply)).await.map_err(|_| stopped())?;
        replied.await.map_err(|_| stopped())?.map(Some)
    }

    /// Records a refused request, unless there were too many in this minute.
    pub(crate) async fn record_refused(&self, entry: AuditEntry, now: Timestamp) {
        let Some(writer) = &self.0 else { return };
        let admitted = writer.refused.lock().unwrap_or_else(PoisonError::into_inner).of(&entry).admit(now);
        let Some(omitted) = admitted else { return };
        let omitted = (omitted > 0).then_some(omitted);
        if let Err(reason) = self.record(AuditEntry { omitted, ..entry }).await {
            tracing::warn!(%reason, "cannot record a refused request in the audit log");
        }
    }

    /// Records the answer to a request.
    pub(crate) async fn answered(&self, id: u64, status: u16) {
        let Some(writer) = &self.0 else { return };
        // The writer has stopped if this fails; the entry then has no answer.
        drop(writer.lines.send(LogLine::Answer(AuditAnswer { id, status })).await);
    }

    /// Asks the disk whether the log can be written, unless that was seen within the last seconds; [`Self::trouble`] has the answer.
    pub(crate) async fn probe(&self) {
        let Some(writer) = &self.0 else { return };
        let (reply, replied) = oneshot::channel();
        if writer.lines.send(LogLine::Probe(reply)).await.is_ok() {
            // It is dropped once it is answered.
            drop(replied.await);
        }
    }

    /// The number of the newest entry, as it changes; `None` from a log that is off.
    pub(crate) fn follow(&self) -> Option<watch::Receiver<u64>> {
        self.0.as_ref().map(|writer| writer.newest.clone())
    }

    /// Why the log cannot be written, so that no change is accepted; none while it can.
    pub(crate) fn trouble(&self) -> Option<String> {
        let reason = self.0.as_ref()?.trouble.borrow().clone()?;
        Some(format!("no change is accepted, because the audit log cannot be written: {reason}"))
    }

    /// The matching entries, oldest first: the first `limit` after the entry `after`, or else the newest.
    ///
    /// # Errors
    /// What the system says of the files.
    pub(crate) fn read(
        &self,
        range: (Option<u64>, usize),
        matches: impl Fn(&AuditEntry) -> bool,
    ) -> io::Result<Vec<AuditEntry>> {
        match &self.0 {
            Some(writer) => file::read(&writer.dir, range, matches),
            None => Ok(Vec::new()),
        }
    }
}

/// The task that writes.
struct Writing {
    file: AuditFile,
    received: mpsc::Receiver<LogLine>,
    newest: watch::Sender<u64>,
    troubled: watch::Sender<Option<String>>,
    /// When it was last seen whether the log can be written.
    proved: Instant,
}

impl Writing {
    /// Writes lines as they come, those that wait together at once. While they cannot be written, tries at intervals whether they could.
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let is_troubled = self.troubled.borrow().is_some();
            // Both arms only wait: lines that were not received stay in the queue.
            let received = tokio::select! {
                received = self.received.recv_many(&mut batch, BATCH) => Some(received),
                () = tokio::time::sleep(TRIED_EVERY), if is_troubled => None,
            };
            let next = match received {
                Some(0) => return,
                Some(_) => self.take(&mut batch).await,
                None => self.try_now().await,
            };
            match next {
                Some(next) => self = next,
                None => return,
            }
        }
    }

    /// Tries whether lines could be written.
    async fn try_now(mut self) -> Option<Self> {
        let (file, tried) = on_disk(self.file, AuditFile::try_write).await?;
        (self.file, self.proved) = (file, Instant::now());
        self.note(tried.as_ref().err());
        Some(self)
    }

    /// Writes lines, and answers who waits for them.
    async fn take(mut self, batch: &mut Vec<LogLine>) -> Option<Self> {
        let mut last = self.file.last();
        let (mut lines, mut waiting, mut probes) = (Vec::new(), Vec::new(), Vec::new());
        for line in batch.drain(..) {
            let encoded = match line {
                LogLine::Entry(entry, reply) => {
                    last += 1;
                    waiting.push((last, reply));
                    serde_json::to_vec(&AuditEntry { id: last, ..*entry })
                }
                LogLine::Answer(answer) => serde_json::to_vec(&answer),
                LogLine::Probe(reply) => {
                    probes.push(reply);
                    continue;
                }
            };
            lines.extend(encoded.unwrap_or_default());
            lines.push(b'\n');
        }
        if !lines.is_empty() {
            let (file, written) = on_disk(self.file, move |file| file.append(&lines, last)).await?;
            self.file = file;
            // Answers alone were not synced, and prove nothing.
            if written.is_err() || !waiting.is_empty() {
                self.proved = Instant::now();
                self.note(written.as_ref().err());
            }
            if written.is_ok() {
                self.newest.send_replace(last);
            }
            for (id, reply) in waiting {
                // Whoever asked may have hung up.
                drop(reply.send(written.clone().map(|()| id)));
            }
        }
        if !probes.is_empty() && self.proved.elapsed() >= TRIED_EVERY {
            self = self.try_now().await?;
        }
        Some(self)
    }

    /// Takes note of what became of the last write, and logs a change of it.
    fn note(&self, reason: Option<&String>) {
        let before = self.troubled.borrow().clone();
        match (&before, reason) {
            (None, Some(reason)) => {
                tracing::error!(%reason, "cannot write the audit log; no change is accepted");
            }
            (Some(_), None) => tracing::info!("the audit log can be written again; changes are accepted"),
            (None, None) | (Some(_), Some(_)) => {}
        }
        if before.as_ref() != reason {
            self.troubled.send_replace(reason.cloned());
        }
    }
}

/// Works on the file where it may block. None if it panicked, which stops the server.
async fn on_disk(
    mut file: AuditFile,
    work: impl FnOnce(&mut AuditFile) -> io::Result<()> + Send + 'static,
) -> Option<(AuditFile, Result<(), String>)> {
    let done = tokio::task::spawn_blocking(move || {
        let done = work(&mut file).map_err(|error| error.to_string());
        (file, done)
    });
    done.await.ok()
}

#[cfg(test)]
mod tests {
    use bellwether_api::v1::audit::AuditOutcome;

    use super::*;

    #[test]
    fn refused_requests_are_recorded_up_to_a_limit_and_the_rest_is_counted() {
        let mut limit = RefusedLimit::default();
        let at = |secs: u64| Timestamp::from_millis(1_000_000 + secs * 1_000);
        for _ in 0..REFUSED_A_MINUTE {
            assert_eq!(limit.admit(at(0)), Some(0));
        }
        assert_eq!(limit.admit(at(1)), None);
        assert_eq!(limit.admit(at(59)), None);
        assert_eq!(limit.admit(at(60)), Some(2));
        assert_eq!(limit.admit(at(61)), Some(0));
    }

    #[test]
    fn strangers_take_no_place_of_those_who_are_known() {
        let entry = |actor: &str| AuditEntry {
            id: 0,
            time_ms: 0,
            server: String::new(),
            actor: actor.to_owned(),
            roles: Vec::new(),
            address: None,
            method: "POST".to_owned(),
            path: "/v1/join".to_owned(),
            right: None,
            outcome: AuditOutcome::Denied,
            reason: None,
            omitted: None,
            status: None,
        };
        let (mut limits, at) = (RefusedLimits::default(), Timestamp::from_millis(1_000_000));
        let stranger = entry(Identity::Anonymous.actor().as_str());
        while limits.of(&stranger).admit(at).is_some() {}
        assert_eq!(limits.of(&entry("web")).admit(at), Some(0));
    }
}
