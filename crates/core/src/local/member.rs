//! The next step of a node for the member that it has of an ensemble, from its order, what is on disk, and what runs. Decides; never acts.
//!
//! A member that was started once is never started without its data again: an empty one that takes part under the same id forgets what it
//! has acknowledged. That it was never started is known from a file that its store removes when it writes its first data.

pub mod change;
pub mod mgr;
pub mod replication;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use crate::records::member::{MemberOrder, MemberStart, MemberState, MemberTask, NAMESAKE};
use crate::words::counter::MemberNumber;
use crate::words::name::EnsembleName;

/// Identifies a member among all of all ensembles that ever had this name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberKey {
    /// Identity of its ensemble.
    pub identity: String,
    /// Its number.
    pub number: MemberNumber,
}

/// What a node knows of its member before it acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSight<'a> {
    /// Name of the ensemble.
    pub ensemble: &'a EnsembleName,
    /// The order.
    pub order: &'a MemberOrder,
    /// The member that the ledger has; `None` if it has none.
    pub noted: Option<&'a NotedMember>,
    /// Its directory.
    pub directory: MemberDirectory,
    /// Its program.
    pub process: MemberProcess,
    /// Whether it is ordered to restart, and has not.
    pub is_restart_due: bool,
    /// What the other members say of it.
    pub standing: Standing,
    /// What is missing for a start, such as a program or a port, in words that fit after "waits for "; `None` if nothing is.
    pub lack: Option<String>,
    /// Where its directory is to be.
    pub place: &'a str,
}

/// A member that the ledger has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedMember {
    /// Which one it is.
    pub key: MemberKey,
    /// Whether it has left this node for good.
    pub has_left: bool,
}

/// The directory of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberDirectory {
    /// There is none.
    Absent,
    /// Nothing in it says whose it is.
    Unclaimed,
    /// It is of this member.
    Claimed(MemberKey, MemberData),
}

/// The data in a member's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberData {
    /// None were ever there: the file that the store removes is.
    Unused,
    /// They are there.
    Present,
    /// Neither they nor that file are there.
    Lost,
}

/// The program of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberProcess {
    /// It runs, for this member.
    Running(MemberKey),
    /// It does not run, and was not seen to end since it was ordered to run.
    Stopped,
    /// It ended by itself.
    Ended {
        /// Its exit code; `None` for a signal, or if it is not known.
        code: Option<i32>,
        /// How it ended.
        summary: String,
        /// Whether it may be started again now.
        is_due: bool,
    },
}

/// What the other members of an ensemble say of one that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// They were not asked since it ran last.
    NotAsked,
    /// A quorum counts it.
    Listed,
    /// A quorum does not count it.
    NotListed,
    /// None of them that answers has a quorum.
    Unknown,
    /// There are no others.
    Alone,
}

/// The next step for a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberStep {
    /// Nothing is to be done before something changes.
    Rest(MemberState, String),
    /// Its directory is made where it is absent, and the member is noted in the ledger.
    Prepare,
    /// Its program is stopped.
    Stop,
    /// The directory, whosever it is, gets another name.
    SetAside,
    /// The ledger notes that the member has left.
    NoteLeft,
    /// The other members are asked whether it is one of them.
    Ask,
    /// Its data are made from the snapshot that is ordered.
    Restore,
    /// Its program is started.
    Start(StartWith),
    /// It is asked what it is, and makes the change that is ordered.
    Serve,
}

/// How the program of a member is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartWith {
    /// As the first member, without data.
    New,
    /// To join these members, by number their peer URLs, with its own, without data.
    Existing(BTreeMap<MemberNumber, String>),
    /// With its data.
    Data,
}

impl MemberKey {
    /// The member that an order is for.
    #[must_use]
    pub fn of(order: &MemberOrder) -> Self {
        Self { identity: order.identity.clone(), number: order.number }
    }
}

impl MemberSight<'_> {
    /// The next step.
    #[must_use]
    pub fn plan(&self) -> MemberStep {
        let own = MemberKey::of(self.order);
        let is_over =
            |noted: &NotedMember| noted.key.identity == own.identity && noted.key.number > own.number;
        if self.order.task == MemberTask::Leave && self.noted.is_some_and(is_over) {
            // A later one has its place, which is not this one's to leave.
            return self.rest(MemberState::Left, "");
        }
        if let Some(reason) = self.outdated(&own) {
            return self.rest(MemberState::Refused, &reason);
        }
        if let Some(step) = self.leaves_alone(&own) {
            return step;
        }
        let is_own = matches!(&self.directory, MemberDirectory::Claimed(key, _) if *key == own);
        let is_absent = self.directory == MemberDirectory::Absent;
        let leaves = self.order.task == MemberTask::Leave;
        if let MemberProcess::Running(key) = &self.process
            && (*key != own || leaves || !(is_own || is_absent) || self.restarts())
        {
            return MemberStep::Stop;
        }
        if !is_absent && (leaves || !is_own) {
            return MemberStep::SetAside;
        }
        let is_noted = self.noted.is_some_and(|noted| noted.key == own);
        match &self.order.task {
            MemberTask::Leave if self.noted.is_some_and(|noted| noted.key == own && noted.has_left) => {
                self.rest(MemberState::Left, "")
            }
            MemberTask::Leave => MemberStep::NoteLeft,
            MemberTask::Prepare => self.prepare(is_noted),
            MemberTask::Run(start) => self.run(start, is_noted),
        }
    }

    /// What is done where a member of another ensemble of this name is here: it stays as it is if it runs, or if nothing of the ordered one can be
    /// made in its place. A control plane that was restored from an older backup knows nothing of it.
    fn leaves_alone(&self, own: &MemberKey) -> Option<MemberStep> {
        let is_other = |key: &&MemberKey| key.identity != own.identity;
        let running = match &self.process {
            MemberProcess::Running(key) => Some(key).filter(is_other),
            MemberProcess::Stopped | MemberProcess::Ended { .. } => None,
        };
        let kept = match &self.directory {
            MemberDirectory::Claimed(key, MemberData::Present) => Some(key).filter(is_other),
            MemberDirectory::Claimed(_, MemberData::Unused | MemberData::Lost)
            | MemberDirectory::Absent
            | MemberDirectory::Unclaimed => None,
        };
        let state = match (&self.order.task, running) {
            (MemberTask::Leave, _) => MemberState::Left,
            (MemberTask::Prepare, Some(_)) => MemberState::Refused,
            (MemberTask::Run(MemberStart::Again), _) | (MemberTask::Run(_), Some(_)) => MemberState::Failed,
            (MemberTask::Prepare | MemberTask::Run(_), None) => return None,
        };
        let other = running.or(kept)?;
        if state == MemberState::Left {
            return Some(self.rest(state, ""));
        }
        let has = if running.is_some() { "which runs" } else { "with its data" };
        let reason = format!(
            "is not started: its node has member {} {NAMESAKE} in {}, {has}, as after a restore of a backup from before that one was \
             created; to keep that one, restore a newer backup, or delete this ensemble, which leaves it as it is",
            other.number, self.place
        );
        Some(self.rest(state, &reason))
    }

    /// Why one that runs and had data keeps nothing of what it acknowledges: they were removed while it runs. It goes on, since it may be needed.
    #[must_use]
    pub fn runs_without_data(&self) -> Option<String> {
        let own = MemberKey::of(self.order);
        let runs = matches!(&self.process, MemberProcess::Running(key) if *key == own);
        let has_none = match &self.directory {
            MemberDirectory::Absent => true,
            MemberDirectory::Claimed(key, data) => *key == own && *data == MemberData::Lost,
            MemberDirectory::Unclaimed => false,
        };
        (runs && has_none && self.noted.is_some_and(|noted| noted.key == own)).then(|| {
            format!(
                "runs without its data, which are gone from {}: once it ends, it has nothing of what it acknowledged; replace it while it runs: \
                 bellwether ensemble replace {} {}",
                self.place, self.ensemble, own.number
            )
        })
    }

    /// Why the order is not carried out: this node has had a later member of the ensemble, or this one has left.
    fn outdated(&self, own: &MemberKey) -> Option<String> {
        let noted = self.noted.filter(|noted| noted.key.identity == own.identity)?;
        if noted.key.number > own.number {
            return Some(format!(
                "is not taken up again: this node has had member {} since",
                noted.key.number
            ));
        }
        let has_left = noted.key == *own && noted.has_left;
        let is_over = has_left && self.order.task != MemberTask::Leave;
        is_over.then(|| "is not taken up again: it has left this node".to_string())
    }

    /// Whether its program is stopped to be started again: not before it can be.
    fn restarts(&self) -> bool {
        self.is_restart_due && self.lack.is_none() && self.runs_without_data().is_none()
    }

    /// The data in its own directory; `None` without one.
    const fn data(&self) -> Option<MemberData> {
        match &self.directory {
            MemberDirectory::Claimed(_, data) => Some(*data),
            MemberDirectory::Absent | MemberDirectory::Unclaimed => None,
        }
    }

    fn prepare(&self, is_noted: bool) -> MemberStep {
        match (&self.process, self.data(), is_noted) {
            (MemberProcess::Running(_), _, _) => MemberStep::Serve,
            (_, _, false) => MemberStep::Prepare,
            (_, None | Some(MemberData::Lost), true) => self.rest(MemberState::Refused, &self.lost()),
            (_, Some(MemberData::Unused | MemberData::Present), true) => match &self.lack {
                Some(lack) => self.waits(MemberState::Refused, lack),
                None => self.rest(MemberState::Prepared, ""),
            },
        }
    }

    fn run(&self, start: &MemberStart, is_noted: bool) -> MemberStep {
        let is_running = matches!(self.process, MemberProcess::Running(_));
        match (self.data(), start) {
            _ if is_running => MemberStep::Serve,
            (None | Some(MemberData::Lost), _) if is_noted => self.rest(MemberState::Failed, &self.lost()),
            (None | Some(MemberData::Unused), MemberStart::Again) => {
                let reason = format!(
                    "is to start only with its data, which are not in {}: it was never started here, or they were set aside since, beside that",
                    self.place
                );
                self.rest(MemberState::Failed, &reason)
            }
            _ if !is_noted => MemberStep::Prepare,
            (Some(MemberData::Present), _) => self.start_with_data(),
            // Only while it never ran: what is left of a restore that was broken off is no data.
            (Some(MemberData::Unused), MemberStart::First) if self.order.restore.is_some() => {
                self.waits_to_start().unwrap_or(MemberStep::Restore)
            }
            (Some(MemberData::Unused), MemberStart::First) => self.start(StartWith::New),
            (Some(MemberData::Unused), MemberStart::Join(initial))
                if !initial.contains_key(&self.order.number) =>
            {
                self.rest(MemberState::Refused, "is not among the members that it was ordered to join")
            }
            (Some(MemberData::Unused), MemberStart::Join(initial)) => {
                self.start(StartWith::Existing(initial.clone()))
            }
            // Noted ones were answered above.
            (None | Some(MemberData::Lost), _) => self.rest(MemberState::Failed, &self.lost()),
        }
    }

    /// Whether the store may not count it yet: it is let in only once it runs.
    const fn is_yet_to_join(&self) -> bool {
        let is_new = matches!(self.order.task, MemberTask::Run(MemberStart::First | MemberStart::Join(_)));
        is_new && self.order.service.admits_by_itself()
    }

    /// An end says nothing of whether it is to run: one that was removed ends, too. So the others are asked before.
    fn start_with_data(&self) -> MemberStep {
        if let Some(step) = self.waits_to_start() {
            return step;
        }
        // A monitor that was removed ends otherwise, and so it does if it is started again.
        let ended_as_removed = matches!(self.process, MemberProcess::Ended { code: Some(0), .. })
            && !self.order.service.admits_by_itself();
        match self.standing {
            _ if self.is_yet_to_join() => MemberStep::Start(StartWith::Data),
            Standing::NotAsked => MemberStep::Ask,
            Standing::NotListed => {
                self.rest(MemberState::Failed, "is not started: the store does not count it any more")
            }
            Standing::Unknown if ended_as_removed => self.rest(
                MemberState::Failed,
                "ended as one that was removed does, and waits for another member that says whether it was",
            ),
            Standing::Listed | Standing::Unknown | Standing::Alone => MemberStep::Start(StartWith::Data),
        }
    }

    fn start(&self, with: StartWith) -> MemberStep {
        self.waits_to_start().unwrap_or(MemberStep::Start(with))
    }

    /// What keeps it from being started now, whatever it is started with.
    fn waits_to_start(&self) -> Option<MemberStep> {
        if let MemberProcess::Ended { summary, is_due: false, .. } = &self.process {
            return Some(self.rest(MemberState::Failed, &format!("waits to be started again: {summary}")));
        }
        self.lack.as_ref().map(|lack| self.waits(MemberState::Failed, lack))
    }

    /// Why a member is not started that was started before, and has no data. One that was to vote already had some.
    fn lost(&self) -> String {
        let place = self.place;
        let never = "and without them it would forget what it has acknowledged";
        match self.order.task {
            MemberTask::Run(MemberStart::Again) => {
                format!("is not started: its data are gone from {place}, {never}")
            }
            MemberTask::Run(MemberStart::First | MemberStart::Join(_))
            | MemberTask::Prepare
            | MemberTask::Leave => {
                format!(
                    "is not started again: its first start left no data in {place}, as on a full disk, which its output says; or its data are \
                     gone since, {never}"
                )
            }
        }
    }

    fn waits(&self, state: MemberState, lack: &str) -> MemberStep {
        self.rest(state, &format!("waits for {lack}"))
    }

    fn rest(&self, state: MemberState, reason: &str) -> MemberStep {
        MemberStep::Rest(state, self.reason(reason))
    }

    /// A reason with the ensemble and the member before it; empty if it is.
    #[must_use]
    pub fn reason(&self, reason: &str) -> String {
        told(self.ensemble, self.order.number, reason)
    }
}

/// A reason with the ensemble and the member before it; empty if it is.
#[must_use]
pub fn told(ensemble: &EnsembleName, number: MemberNumber, reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!("ensemble {ensemble}: member {number} {reason}") }
}

#[cfg(test)]
mod tests;
