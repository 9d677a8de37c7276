//! What follows from a list of a cluster's members that was read outside: who is new, who changed, who is gone, and whether that waits
//! for a person. Reads nothing itself.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::records::discovery::{
    ClusterDiscovery, DiscoveryFailure, DiscoverySource, HeldMembers, ListedMember, MAX_LIST_BYTES,
    MAX_LISTED, MAX_REASON_BYTES,
};
use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::verdict::{Changeset, Write};
use crate::words::name::ClusterName;
use crate::words::plural::plural;
use crate::words::time::Timestamp;

/// Fewest members that make a large drop: one alone leaves without a person.
const LARGE_DROP: usize = 2;

/// Most members of one change that have an event each; the others are told in one.
const MAX_TOLD: usize = 50;

/// Longest name of a host, as of DNS.
const MAX_HOST_BYTES: usize = 253;

/// Members by the host of their targets.
pub type MemberList = BTreeMap<String, ListedMember>;

/// Puts the targets of a list together by their hosts.
///
/// # Errors
/// Which target is none, or that the list is too large.
pub fn by_host<'a>(
    targets: impl IntoIterator<Item = (&'a str, &'a BTreeMap<String, String>)>,
) -> Result<MemberList, String> {
    let (mut list, mut bytes) = (MemberList::new(), 0_usize);
    for (target, labels) in targets {
        let host = host(target).ok_or_else(|| {
            let shown: String = target.chars().take(80).collect();
            format!("{shown:?} is no target: expected HOST:PORT or HOST")
        })?;
        let member = list.entry(host.to_string()).or_default();
        let labels_bytes: usize = labels.iter().map(|(key, value)| key.len() + value.len()).sum();
        bytes = bytes.saturating_add(2 * target.len() + labels_bytes);
        member.targets.insert(target.to_string());
        member.labels.extend(labels.iter().map(|(key, value)| (key.clone(), value.clone())));
        if list.len() > MAX_LISTED || bytes > MAX_LIST_BYTES {
            return Err(format!(
                "the list is too large: at most {MAX_LISTED} members and {} KiB with their labels",
                MAX_LIST_BYTES >> 10
            ));
        }
    }
    Ok(list)
}

/// The host of `HOST:PORT`, `HOST` or `[ADDRESS]:PORT`; `None` if it is none.
fn host(target: &str) -> Option<&str> {
    let (host, port) = match target.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some("1"))?)
        }
        None => target.rsplit_once(':').unwrap_or((target, "1")),
    };
    let is_port = port.parse::<u16>().is_ok();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:%".contains(&byte);
    let is_host = !host.is_empty() && host.len() <= MAX_HOST_BYTES && host.bytes().all(is_plain);
    (is_port && is_host).then_some(host)
}

/// What is written once the list of a cluster was read, or could not be read; `None` if that is nothing new.
#[must_use]
pub fn refreshed(
    (cluster, source): (&ClusterName, &DiscoverySource),
    before: Option<&ClusterDiscovery>,
    answer: Result<MemberList, String>,
    now: Timestamp,
) -> Option<Changeset> {
    let none = ClusterDiscovery::none(cluster.clone());
    let before_or_none = before.unwrap_or(&none);
    let answer = match answer {
        Ok(list) if list.is_empty() => Err("it lists no members".to_string()),
        answer => answer,
    };
    let mut change = DiscoveryChange { source, after: before_or_none.clone(), events: Vec::new() };
    match answer {
        Err(reason) => change.fail(shortened(reason), now),
        Ok(list) => change.read(list, now),
    }
    (before != Some(&change.after)).then(|| change.into_changeset())
}

/// What is written when a person accepts that held members are gone; `None` if none is held.
#[must_use]
pub fn accepted(
    before: &ClusterDiscovery,
    source: &DiscoverySource,
    (reason, now): (String, Timestamp),
) -> Option<Changeset> {
    let held = before.held.clone()?;
    let mut change = DiscoveryChange { source, after: before.clone(), events: Vec::new() };
    let count = plural(held.hosts.len(), "member").to_string();
    change.tell("cluster.members_accepted", (Some(count), None), reason);
    change.after.held = None;
    change.remove(held.hosts, now);
    Some(change.into_changeset())
}

/// What is known of a list, while it is being changed.
struct DiscoveryChange<'a> {
    source: &'a DiscoverySource,
    after: ClusterDiscovery,
    events: Vec<EventDraft>,
}

impl DiscoveryChange<'_> {
    fn fail(&mut self, reason: String, now: Timestamp) {
        let since = self.after.failure.as_ref().map(|failure| failure.since);
        if since.is_none() {
            self.tell("cluster.discovery_failed", (None, None), format!("{}: {reason}", self.source));
        }
        self.after.failure = Some(DiscoveryFailure { reason, since: since.unwrap_or(now) });
    }

    fn read(&mut self, list: MemberList, now: Timestamp) {
        if self.after.failure.take().is_some() {
            self.tell("cluster.discovery_recovered", (None, None), self.source.to_string());
        }
        let gone: BTreeSet<String> =
            self.after.members.keys().filter(|host| !list.contains_key(*host)).cloned().collect();
        let before = self.after.members.len();
        self.add(list, now);
        let held = self.after.held.take();
        let waits = held.as_ref().map(|held| &held.hosts);
        // What waited for a person goes on waiting, unless it is listed again, whatever else the list has now.
        let waiting = gone.iter().filter(|host| waits.is_some_and(|waits| waits.contains(*host)));
        let mut holding: BTreeSet<String> = waiting.cloned().collect();
        let is_large = gone.len() >= LARGE_DROP && gone.len() * 2 > before;
        if is_large {
            holding = gone.clone();
        }
        self.remove(gone.difference(&holding).cloned().collect(), now);
        if holding.is_empty() {
            return;
        }
        let since = held.as_ref().map_or(now, |held| held.since);
        if held.is_none() {
            let (before, after) = (before, before - gone.len());
            let states =
                (Some(plural(before, "member").to_string()), Some(plural(after, "member").to_string()));
            let cause =
                format!("{} lists {after} of {before}; they stay until a person accepts it", self.source);
            self.tell("cluster.members_held", states, cause);
        }
        self.after.held = Some(HeldMembers { hosts: holding, since });
    }

    /// Adds those of the list that are new, and replaces those that changed.
    fn add(&mut self, list: MemberList, now: Timestamp) {
        let source = self.source.to_string();
        let mut changes = Vec::new();
        for (host, member) in list {
            let before = self.after.members.get(&host);
            if before == Some(&member) {
                continue;
            }
            let kind = if before.is_some() { "cluster.member_changed" } else { "cluster.member_added" };
            let subject = host.clone();
            let states = (before.map(|before| describe(&host, before)), Some(describe(&subject, &member)));
            changes.push((kind, states));
            self.after.members.insert(host, member);
            self.after.changed_at = now;
        }
        self.tell_each(changes, &source);
    }

    fn remove(&mut self, hosts: BTreeSet<String>, now: Timestamp) {
        let source = self.source.to_string();
        let mut changes = Vec::new();
        for host in hosts {
            if self.after.members.remove(&host).is_some() {
                self.after.changed_at = now;
                changes.push(("cluster.member_gone", (Some(host), None)));
            }
        }
        self.tell_each(changes, &source);
    }

    fn tell_each(&mut self, mut changes: Vec<(&'static str, States)>, source: &str) {
        let rest = changes.split_off(changes.len().min(MAX_TOLD));
        for (kind, states) in changes {
            self.tell(kind, states, source.to_string());
        }
        if !rest.is_empty() {
            let more = format!("{source}: {} more", plural(rest.len(), "member"));
            self.tell("cluster.members_changed", (None, None), more);
        }
    }

    fn tell(&mut self, kind: &'static str, (before, after): States, cause: String) {
        let subject = format!("cluster/{}", self.after.cluster);
        self.events.push(EventDraft { kind, subject, before, after, cause });
    }

    fn into_changeset(self) -> Changeset {
        let writes = vec![Write::put(Record::ClusterDiscovery(self.after))];
        Changeset { writes, events: self.events }
    }
}

/// The values before and after.
type States = (Option<String>, Option<String>);

/// A member in one line: its host, with its targets and labels if they say more.
fn describe(host: &str, member: &ListedMember) -> String {
    let labels = member.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let targets = member.targets.iter().filter(|target| *target != host).cloned();
    let more: Vec<String> = targets.chain(labels).collect();
    let more: String = more.join(" ").chars().take(MAX_REASON_BYTES / 4).collect();
    if more.is_empty() { host.to_string() } else { format!("{host} ({more})") }
}

fn shortened(text: String) -> String {
    match text.len() > MAX_REASON_BYTES {
        true => text.chars().take(MAX_REASON_BYTES / 4).chain(['…']).collect(),
        false => text,
    }
}

#[cfg(test)]
mod tests;
