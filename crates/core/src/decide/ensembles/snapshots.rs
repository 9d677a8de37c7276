//! Snapshots of the data of an ensemble: one at a time, by a member that works, when somebody asks or one is due.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::EnsembleSight;
use crate::records::ensemble_members::{EnsembleMembers, Member, MemberPhase};
use crate::records::ensemble_snapshots::{
    OrderedSnapshot, SnapshotContent, SnapshotFailure, SnapshotId, TakenSnapshot,
};
use crate::records::event::EventDraft;
use crate::records::member::MemberState;
use crate::words::counter::MemberNumber;
use crate::words::time::{Span, Timestamp};

/// Longest time that a snapshot may take: a database of 8 GB, the most that etcd is made for, at the speed of a slow disk.
const LONGEST: Span = Span::from_secs(30 * 60);

/// Time that a member which takes one may be away before another one is ordered: an agent is started again within less.
const AWAY: Span = Span::from_secs(60);

/// Longest time until a scheduled one that failed is tried again.
const RETRY: Span = Span::from_secs(10 * 60);

impl EnsembleSight<'_> {
    /// Records what became of the snapshot that was ordered, and orders the next one if it is due. Answers what is told of it.
    pub(super) fn snapshot(&self, members: &mut EnsembleMembers) -> Vec<EventDraft> {
        let mut events = Vec::new();
        if let Some(ordered) = members.snapshots.ordered.clone()
            && let Some((member, outcome)) = self.outcome(members, &ordered)
        {
            members.snapshots.ordered = None;
            events.push(told(members, (&ordered, &member), &outcome));
            let (id, node) = (ordered.id, member.node);
            match outcome {
                Ok(content) => {
                    members.snapshots.taken.push(TakenSnapshot { id, node, content });
                    members.snapshots.failure = None;
                }
                Err(reason) => {
                    members.snapshots.failure = Some(SnapshotFailure { id, node, reason, at: self.now });
                }
            }
        }
        let keep = usize::try_from(self.ensemble.snapshots.keep).unwrap_or(usize::MAX).max(1);
        let surplus = members.snapshots.taken.len().saturating_sub(keep);
        members.snapshots.taken.drain(..surplus);
        let is_due =
            members.snapshots.requested.is_some() || self.due(members).is_some_and(|due| due <= self.now);
        if is_due
            && members.snapshots.ordered.is_none()
            && let Some(by) = self.taker(members)
        {
            members.snapshots.last = members.snapshots.last.next();
            let id = SnapshotId { number: members.snapshots.last, at: self.now };
            members.snapshots.ordered = Some(OrderedSnapshot { id, by });
            members.snapshots.requested = None;
        }
        events
    }

    /// When the next scheduled one is due; `None` if none is scheduled, or nothing was ever served.
    fn due(&self, members: &EnsembleMembers) -> Option<Timestamp> {
        let every = self.ensemble.snapshots.every.filter(|_| members.is_bootstrapped)?;
        let snapshots = &members.snapshots;
        let wait = if snapshots.failure.is_some() { every.min(RETRY) } else { every };
        Some(snapshots.last_attempt().map_or(Timestamp::EPOCH, |last| last.plus(wait)))
    }

    /// When something about snapshots is to be decided, if nothing changes until then.
    pub(super) fn snapshot_wake(&self, members: &EnsembleMembers) -> impl Iterator<Item = Timestamp> {
        let ordered = members.snapshots.ordered.as_ref();
        let away = ordered.and_then(|ordered| {
            let member = members.members.get(&ordered.by)?;
            self.silent_since(ordered.by, member).map(|since| since.plus(AWAY))
        });
        let late = ordered.map(|ordered| ordered.id.at.plus(LONGEST));
        let due = self.due(members).filter(|_| ordered.is_none());
        due.into_iter().chain(away).chain(late)
    }

    /// What became of a snapshot; `None` while it is being taken.
    fn outcome(
        &self,
        members: &EnsembleMembers,
        ordered: &OrderedSnapshot,
    ) -> Option<(Member, Result<SnapshotContent, String>)> {
        let Some(member) = members.members.get(&ordered.by) else {
            // Nothing is known of it any more but its number.
            let gone = members.members.values().next()?;
            return Some((gone.clone(), Err(format!("member {} took it, and has left", ordered.by))));
        };
        let reported = self.known(ordered.by, member).and_then(|known| known.report.snapshot.as_ref());
        let silent = self.silent_since(ordered.by, member).filter(|since| since.plus(AWAY) <= self.now);
        let outcome = match reported.filter(|reported| reported.id == ordered.id) {
            Some(reported) => reported.outcome.clone(),
            None if member.phase != MemberPhase::Voting => Err("the member that took it leaves".to_string()),
            None if silent.is_some() => Err("the member that took it does not work any more".to_string()),
            None if self.now >= ordered.id.at.plus(LONGEST) => {
                Err(format!("it was not finished within {LONGEST}"))
            }
            None => return None,
        };
        Some((member.clone(), outcome))
    }

    /// The member that takes the next one: of those that work, the one on whose node the fewest are, and the leader last.
    fn taker(&self, members: &EnsembleMembers) -> Option<MemberNumber> {
        let able = members.members.iter().filter_map(|(number, member)| {
            let report =
                self.report(*number, member).filter(|report| report.state == MemberState::Working)?;
            let is_leader = report.membership.as_ref().is_some_and(|membership| membership.is_leader);
            let kept = members.snapshots.taken.iter().filter(|taken| taken.node == member.node).count();
            (member.phase == MemberPhase::Voting).then_some((is_leader, kept, *number))
        });
        able.min().map(|(_, _, number)| number)
    }
}

/// The event about a snapshot.
fn told(
    members: &EnsembleMembers,
    (ordered, member): (&OrderedSnapshot, &Member),
    outcome: &Result<SnapshotContent, String>,
) -> EventDraft {
    let number = ordered.id.number;
    let (kind, cause) = match outcome {
        Ok(content) => (
            "ensemble.snapshot_taken",
            format!("snapshot {number} on {}: {} bytes", member.node, content.bytes),
        ),
        Err(reason) => {
            ("ensemble.snapshot_failed", format!("snapshot {number} on {}: {reason}", member.node))
        }
    };
    EventDraft { kind, subject: format!("ensemble/{}", members.ensemble), before: None, after: None, cause }
}
