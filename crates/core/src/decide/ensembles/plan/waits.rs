//! What is waited for in an ensemble with a primary, in words.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::step::are;
use crate::decide::ensembles::EnsembleSight;
use crate::decide::ensembles::foreign::{hindering, others};
use crate::decide::placement::CandidateNodes;
use crate::decide::placement::primary::{PrimaryWait, QUIET};
use crate::decide::placement::quorum::VoterState;
use crate::records::ensemble::MIN_FAILOVER_AFTER;
use crate::records::ensemble_adoption::named as named_foreign;
use crate::records::ensemble_members::{EnsembleMembers, Member};
use crate::records::ensemble_restore::RestoreSource;
use crate::words::counter::MemberNumber;
use crate::words::plural::plural;
use crate::words::time::{Span, Timestamp};

/// What a wait is told with.
pub(super) struct Circumstances {
    /// How many nodes match.
    pub(super) matching: usize,
    /// The members that have not worked for so long that others are to take their places.
    pub(super) dead: Vec<MemberNumber>,
    /// The members that do not answer because they are being defragmented.
    pub(super) at_work: Vec<MemberNumber>,
    /// When the time is over of one that did not work already when the server that leads was started.
    pub(super) until_anew: Timestamp,
    /// Whether the agent of the primary is heard of, whatever the primary does.
    pub(super) has_agent: bool,
    /// Since when so many members that vote do not work.
    pub(super) silent_since: Option<Timestamp>,
    /// What is the time.
    pub(super) now: Timestamp,
}

impl Circumstances {
    pub(super) fn new(sight: &EnsembleSight<'_>, places: &CandidateNodes, dead: Vec<MemberNumber>) -> Self {
        let until_anew = sight.listening_since.plus(sight.ensemble.failover_after);
        let matching = places.values().filter(|place| place.matches).count();
        let voters = sight.voters(sight.members);
        let silent = voters.values().filter_map(|voter| match voter.state {
            VoterState::Silent { since } => Some(since),
            VoterState::Joining { .. } | VoterState::Refused | VoterState::Working | VoterState::Leaving => {
                None
            }
        });
        let is_at_work = |(number, member): &(&MemberNumber, &Member)| sight.is_at_work(**number, member);
        let at_work = sight.members.members.iter().filter(is_at_work).map(|(number, _)| *number).collect();
        let primary = sight.members.lead.primary.and_then(|number| sight.members.members.get(&number));
        let has_agent = primary
            .and_then(|member| sight.nodes.get(&member.node))
            .is_some_and(|node| node.unreachable_since.is_none() && !node.is_suspect);
        Self { matching, dead, at_work, until_anew, has_agent, silent_since: silent.max(), now: sight.now }
    }

    /// The members that are dead, with their nodes.
    pub(super) fn dead(&self, members: &EnsembleMembers) -> Vec<String> {
        self.dead.iter().map(|number| named(members, *number)).collect()
    }
}

/// What is waited for, in one line, with what will be afterwards, if nothing changes until then.
pub(super) fn describe(
    (wait, then): (&PrimaryWait, Option<&PrimaryWait>),
    members: &EnsembleMembers,
    of: &Circumstances,
) -> String {
    let now = of.now;
    let named = |number: &MemberNumber| named(members, *number);
    match wait {
        PrimaryWait::Joining(number) => format!("member {} has not answered yet", named(number)),
        PrimaryWait::Silent { member, until } => silent((*member, *until), then, members, of),
        PrimaryWait::Blocked { member, until } => blocked(*member, *until, members, now),
        PrimaryWait::Alone { member, until } => alone(*member, *until, members, now),
        PrimaryWait::LeaverStreams(number) => leaver_streams(members, *number),
        PrimaryWait::StillStreams(numbers) => still_streams(members, numbers, of.has_agent),
        PrimaryWait::Quiet { until } => format!(
            "the primary does not work, and another member took over from one already less than an hour ago: none does again for {} unless \
             that failover is acknowledged: bellwether ensemble failover {} --acknowledge",
            until.since(now).brief(),
            members.ensemble
        ),
        PrimaryWait::TooFewReached { reached, needed, silent, anew, is_back } => {
            too_few((*reached, *needed), (silent, anew, *is_back), members)
        }
        PrimaryWait::NoCandidate => {
            "the primary does not work, and no other member has what it wrote: start it again".to_string()
        }
        PrimaryWait::OthersHaveMore(numbers) => format!(
            "the primary and others were started anew, and {} may have more keys than the primary: it may have lost data; look at them, and \
             name the one to go on with: bellwether ensemble failover {} --to MEMBER --accept-data-loss",
            all(members, numbers),
            members.ensemble
        ),
        PrimaryWait::NoSuccessor(number) => format!(
            "member {} is the primary, and no other one has its data and may take over, so that it could leave",
            named(number)
        ),
        PrimaryWait::Copies(number) => {
            format!("member {} leaves once enough other replicas have what it has", named(number))
        }
        PrimaryWait::Syncing { member, leaver } => {
            format!(
                "member {} leaves once member {} has copied the data of the primary",
                named(leaver),
                named(member)
            )
        }
        PrimaryWait::NoRoom { missing } => no_room(of.matching, *missing, &of.dead(members)),
    }
}

/// Whether nobody takes over from a primary as long as this is so, whatever the time.
const fn is_lasting(wait: &PrimaryWait) -> bool {
    match wait {
        PrimaryWait::StillStreams(_)
        | PrimaryWait::TooFewReached { .. }
        | PrimaryWait::NoCandidate
        | PrimaryWait::OthersHaveMore(_) => true,
        PrimaryWait::Joining(_)
        | PrimaryWait::Silent { .. }
        | PrimaryWait::Blocked { .. }
        | PrimaryWait::Alone { .. }
        | PrimaryWait::LeaverStreams(_)
        | PrimaryWait::Quiet { .. }
        | PrimaryWait::NoSuccessor(_)
        | PrimaryWait::Copies(_)
        | PrimaryWait::Syncing { .. }
        | PrimaryWait::NoRoom { .. } => false,
    }
}

/// That members are missing, and no node may have one; if all of these are in the place of ones that do not work, which.
pub(super) fn no_room(matching: usize, missing: usize, silent: &[String]) -> String {
    let none = none_may(matching);
    match silent {
        [one] if missing == 1 => unreplaced(one, matching),
        several if several.len() == missing => {
            format!("members {} do not work, and are not replaced: {none}", several.join(" and "))
        }
        _ => format!("{} {} needed, and {none}", plural(missing, "more member"), are(missing)),
    }
}

/// That a member does not work, and no node may have another one in its place.
pub(super) fn unreplaced(named: &str, matching: usize) -> String {
    format!("member {named} does not work, and is not replaced: {}", none_may(matching))
}

const fn none_may(matching: usize) -> &'static str {
    if matching == 0 { "no node matches its filter" } else { "no other node may have one" }
}

/// Why the node with the snapshot that an ensemble is founded from cannot have its first member; `None` if it may, or has it.
pub(super) fn unfounded(source: &RestoreSource, places: &CandidateNodes, has_any: bool) -> Option<String> {
    let reason = match places.get(&source.node) {
        _ if has_any => return None,
        None => "there is no such node",
        Some(place) if !place.matches => "its filter does not match that node",
        Some(place) => place.refusal.as_deref()?,
    };
    Some(format!("it is to be founded from {}: {reason}", source.describe()))
}

/// The members that are not of the ensemble and do not answer.
fn silent_others(members: &EnsembleMembers) -> impl Iterator<Item = String> {
    let silent = hindering(members).into_iter().filter(|(_, member)| member.votes);
    silent.map(|(id, member)| format!("{id} at {}, which is not of the ensemble,", member.peer_url))
}

/// Time in which members that do not answer may be electing a leader.
const ELECTION: Span = Span::from_secs(10);

/// That fewer than a quorum of those that vote work, as far as is heard. One that works says by that that the store has a quorum, whatever became of
/// the agents of the others.
pub(super) fn quorum_lost(
    members: &EnsembleMembers,
    (working, voters): (usize, usize),
    silent: &[MemberNumber],
    of: &Circumstances,
) -> String {
    let own = silent.iter().map(|member| named(members, *member));
    let silent: Vec<String> = own.chain(silent_others(members)).collect();
    let (noun, verb) = if silent.len() == 1 { ("member", "does") } else { ("members", "do") };
    let silent = silent.join(" and ");
    if working > others(members).working {
        return format!(
            "{noun} {silent} {verb} not work, or contact is lost, so that {working} of {voters} members that vote are known to work: nothing is changed \
             until more are; the store has a quorum, as a member says that works: start the others, or their agents"
        );
    }
    let lasts = of.silent_since.map_or(ELECTION, |since| of.now.since(since));
    if lasts < ELECTION {
        return format!(
            "{working} of {voters} members that vote work, for {} now: they may be electing a leader, and nothing is changed meanwhile",
            lasts.brief()
        );
    }
    format!(
        "quorum is lost: {working} of {voters} members that vote work, and {noun} {silent} {verb} not; nothing is changed until more of them work: start \
         those that are down, and look at the network between those that run; only if their data are lost for good, found the store anew from one \
         that is whole"
    )
}

/// That members which are not of the ensemble keep others from joining or leaving.
pub(super) fn of_others(members: &EnsembleMembers, now: Timestamp) -> String {
    let told = hindering(members).into_iter().map(|(id, member)| {
        let since = now.since(member.since).brief();
        let state = if member.answers { "does not vote yet" } else { "does not answer" };
        let next = if member.answers { "promote it" } else { "start it" };
        format!(
            "{} {state} for {since}, and the store takes no other member meanwhile: {next}, or remove it: bellwether ensemble \
             remove-foreign-member {} {id}",
            named_foreign(id, member),
            members.ensemble
        )
    });
    told.collect::<Vec<_>>().join("; ")
}

/// That a member does not work, and when another one takes its place.
pub(super) fn replaced(named: &str, until: Timestamp, of: &Circumstances) -> String {
    let left = until.since(of.now).brief();
    format!("member {named} does not work; it is replaced if that is still so in {left}{}", anew(until, of))
}

/// Behind a time that is longer than one expects who saw it before.
fn anew(until: Timestamp, of: &Circumstances) -> &'static str {
    if until == of.until_anew {
        " (counted anew, once the nodes had time to connect to the server that leads)"
    } else {
        ""
    }
}

/// A member with its node.
pub(super) fn named(members: &EnsembleMembers, number: MemberNumber) -> String {
    let node = members.members.get(&number).map(|member| format!(" on {}", member.node));
    format!("{number}{}", node.unwrap_or_default())
}

/// That a replica without its agent still gets data.
fn leaver_streams(members: &EnsembleMembers, number: MemberNumber) -> String {
    let named = named(members, number);
    if members.lead.cut.contains(&number) {
        return format!(
            "member {named} leaves once the primary has disconnected it, which its agent was told"
        );
    }
    format!(
        "member {named} still gets data, although contact with it is lost: its Redis works, and its agent is not heard or cannot ask it; it is not \
         replaced while that is so, as it acknowledges writes: see to that agent, stop that Redis, or have it disconnected: bellwether ensemble \
         replace {} {number}",
        members.ensemble
    )
}

/// That replicas still get data from a primary that is silent, or seem to.
fn still_streams(members: &EnsembleMembers, numbers: &[MemberNumber], has_agent: bool) -> String {
    let verb = if numbers.len() == 1 { "gets" } else { "get" };
    let all = all(members, numbers);
    let primary = members.lead.primary.map(|primary| named(members, primary)).unwrap_or_default();
    if has_agent {
        return format!(
            "member {primary} does not answer its agent, and {all} still {verb} data from it, or their connections to it are not closed yet, as to a process that \
             is suspended or overloaded: another one takes over once they are; see to that process, or end it"
        );
    }
    format!(
        "{all} still {verb} data, although contact with the primary is lost: the Redis of member {primary} works, and its agent does \
         not; start that agent, or stop that Redis"
    )
}

/// That too few of the others have what the primary wrote: they do not answer, or were started anew, so that it is not known what they have.
fn too_few(
    (reached, needed): (usize, usize),
    (silent, anew, is_back): (&[MemberNumber], &[MemberNumber], bool),
    members: &EnsembleMembers,
) -> String {
    if silent.is_empty() && anew.is_empty() {
        return "the primary does not work, and no other member has its data: start it again".to_string();
    }
    let why = match anew {
        [] => {
            format!(
                "{reached} of {needed} that are needed of the others have its data: a write that was acknowledged may be on none of them"
            )
        }
        _ => {
            let verb = if anew.len() == 1 { "was" } else { "were" };
            format!(
                "{} {verb} started anew while it was away, so that it is not known whether the last writes that were acknowledged are there",
                all(members, anew)
            )
        }
    };
    let start = match silent {
        [] => "start the primary with its data".to_string(),
        _ if is_back => {
            format!("start {} with their data, and the one that has most goes on", all(members, silent))
        }
        _ => format!("start {}, or the primary, with their data", all(members, silent)),
    };
    let primary = if is_back { "was started anew, and takes no writes" } else { "does not work" };
    format!(
        "the primary {primary}, and {why}; {start}; if these are lost for good, name the one to go on with: bellwether ensemble failover {} \
         --to MEMBER --accept-data-loss",
        members.ensemble
    )
}

/// Members with their nodes.
fn all(members: &EnsembleMembers, numbers: &[MemberNumber]) -> String {
    let noun = if numbers.len() == 1 { "member" } else { "members" };
    let named = numbers.iter().map(|number| named(members, *number));
    format!("{noun} {}", named.collect::<Vec<_>>().join(" and "))
}

/// That the primary takes no writes, and what becomes of that.
fn blocked(
    member: MemberNumber,
    until: Option<Timestamp>,
    members: &EnsembleMembers,
    now: Timestamp,
) -> String {
    let becomes = match until {
        Some(until) => format!("another one takes over if that is still so in {}", until.since(now).brief()),
        None => "no other member has its data and may take over".to_string(),
    };
    let named = named(members, member);
    format!(
        "member {named} is the primary, and takes no writes, as it cannot write to its disk: {becomes}; make room on that disk"
    )
}

/// That the primary takes no writes, as too few replicas are connected to it, and what becomes of that.
fn alone(
    member: MemberNumber,
    until: Option<Timestamp>,
    members: &EnsembleMembers,
    now: Timestamp,
) -> String {
    let is_new = members.lead.cut_off.get(&member).is_some_and(|since| now < since.plus(MIN_FAILOVER_AFTER));
    let becomes = match until {
        Some(until) => format!("another one takes over if that is still so in {}", until.since(now).brief()),
        None if is_new => {
            "whether another one takes over is decided once the replicas say whether they are connected".to_string()
        }
        None => {
            "no other member may take over: that takes replicas that have its data, and say that they are not connected"
                .to_string()
        }
    };
    let named = named(members, member);
    format!(
        "member {named} is the primary, and takes no writes, as too few replicas are connected to it: {becomes}; look at the members that \
         do not work, or at the network between their nodes"
    )
}

/// That a member does not work, and what becomes of that.
fn silent(
    (member, until): (MemberNumber, Timestamp),
    then: Option<&PrimaryWait>,
    members: &EnsembleMembers,
    of: &Circumstances,
) -> String {
    let (now, named) = (of.now, named(members, member));
    if members.lead.primary != Some(member) {
        return match then {
            Some(PrimaryWait::NoRoom { .. }) => unreplaced(&named, of.matching),
            Some(_) | None => replaced(&named, until, of),
        };
    }
    let left = until.since(now).brief();
    if let Some(held) = then.filter(|held| is_lasting(held) && members.remaining() > 1) {
        let held = describe((held, None), members, of);
        return format!(
            "member {named}, the primary, does not work, or contact with it is lost; its time is over in {left}, and as things stand no other one \
             takes over then: {held}"
        );
    }
    let quiet = members.lead.failed_over.map(|at| at.plus(QUIET)).filter(|quiet| *quiet > until);
    let becomes = match quiet {
        _ if members.remaining() == 1 => "there is no other member: start it again".to_string(),
        Some(quiet) => format!(
            "what is done about it is decided if that is still so in {left}; another member took over less than an hour ago, so that none does \
             again by itself for {}",
            quiet.since(now).brief()
        ),
        None => format!("another one takes over if that is still so in {left}{}", anew(until, of)),
    };
    format!("member {named}, the primary, does not work; {becomes}")
}
