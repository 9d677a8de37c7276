//! Absorbs service registrations: compares them with the last ones and creates the events.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::records::event::EventDraft;
use crate::records::key::Record;
use crate::records::node::Node;
use crate::records::registrations::{KnownService, ServiceRegistration, ServiceRegistrations};
use crate::verdict::{Changeset, Write};
use crate::words::counter::Revision;
use crate::words::name::{InstanceName, NodeName, ServiceName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Most instances whose changes are absorbed at once: each may be a name that is new and an event, and a transaction has 128 operations.
const AT_ONCE: usize = 48;

/// What of a node's service registrations is to be absorbed next: all of them, or as many changes as fit into a transaction, those that end
/// first. Answers whether that is all.
#[must_use]
pub fn next_part(fleet: &Fleet, new: &ServiceRegistrations) -> (ServiceRegistrations, bool) {
    let Some(last) = fleet.registrations.get(&new.node).map(|kept| &*kept.value) else {
        let mut part = new.clone();
        let rest = part.instances.keys().nth(AT_ONCE).cloned();
        let rest = rest.map(|first| part.instances.split_off(&first));
        return (part, rest.is_none());
    };
    let mut part = ServiceRegistrations { addresses: new.addresses.clone(), ..last.clone() };
    let mut left = AT_ONCE;
    for key in last.instances.keys().filter(|key| !new.instances.contains_key(key)) {
        if left == 0 {
            return (part, false);
        }
        part.instances.remove(key);
        left -= 1;
    }
    for (key, registration) in &new.instances {
        if is_same(last, (key, registration)) {
            continue;
        }
        if left == 0 {
            return (part, false);
        }
        part.instances.insert(key.clone(), registration.clone());
        left -= 1;
    }
    (new.clone(), true)
}

/// Whether this instance is recorded as it is registered.
fn is_same(
    last: &ServiceRegistrations,
    (key, registration): (&(ServiceName, InstanceName), &ServiceRegistration),
) -> bool {
    let before = last.instances.get(key);
    before
        .is_some_and(|before| ServiceRegistration { since: before.since, ..registration.clone() } == *before)
}

/// The revision at which these service registrations are recorded; `None` if what is recorded differs.
#[must_use]
pub fn recorded(fleet: &Fleet, registrations: &ServiceRegistrations) -> Option<Revision> {
    let kept = fleet.registrations.get(&registrations.node)?;
    let is_all = kept.value.addresses == registrations.addresses
        && kept.value.instances.len() == registrations.instances.len()
        && registrations.instances.iter().all(|of| is_same(&kept.value, of));
    is_all.then_some(kept.revision)
}

/// The changes to write for a node's service registrations; `None` if they are the same as before.
#[must_use]
pub fn absorb(fleet: &Fleet, mut new: ServiceRegistrations, now: Timestamp) -> Option<Changeset> {
    let last = fleet.registrations.get(&new.node).map(|kept| &*kept.value);
    let none = BTreeMap::new();
    let before = last.map_or(&none, |last| &last.instances);
    for (key, registration) in &mut new.instances {
        let same = before.get(key).filter(|before| before.serving.as_str() == registration.serving.as_str());
        registration.since = same.map_or(now, |before| before.since);
    }
    if last == Some(&new) {
        return None;
    }
    let mut events = Vec::new();
    let node = fleet.nodes.get(&new.node).map(|kept| &*kept.value);
    let is_refused = |service: &ServiceName| node.is_some_and(|node| !node.may_register(service));
    for (key, registration) in &new.instances {
        if is_refused(&key.0) {
            events.extend((!before.contains_key(key)).then(|| refusal(&new.node, key)));
        } else {
            events.extend(event_draft(&new.node, key, before.get(key), registration));
        }
    }
    let gone = before.iter().filter(|(key, _)| !new.instances.contains_key(key) && !is_refused(&key.0));
    events.extend(gone.map(|(key, registration)| {
        let cause = "its node no longer registers it".to_string();
        let before = Some(registration.serving.as_str().to_string());
        EventDraft {
            kind: "service.deregistered",
            subject: subject(&new.node, key),
            before,
            after: None,
            cause,
        }
    }));
    let names: alloc::collections::BTreeSet<&ServiceName> =
        new.instances.keys().map(|(name, _)| name).filter(|name| !is_refused(name)).collect();
    let unheard = names.into_iter().filter(|name| !fleet.services.contains_key(name));
    let unheard = unheard.map(|name| KnownService { name: name.clone(), first_at: now, idle_since: None });
    let mut writes: Vec<Write> = unheard.map(|service| Write::put(Record::Service(service))).collect();
    writes.push(Write::put(Record::Registrations(new)));
    Some(Changeset { writes, events })
}

/// The events of what a node has registered, when the services that it may register change.
#[must_use]
pub fn allowed(fleet: &Fleet, before: &Node, now: &Node) -> Vec<EventDraft> {
    let known = fleet.registrations.get(&now.name).map(|kept| &kept.value.instances);
    let each = known.into_iter().flatten().filter_map(|(key, registration)| {
        match (before.may_register(&key.0), now.may_register(&key.0)) {
            (true, false) => Some(refusal(&now.name, key)),
            (false, true) => event_draft(&now.name, key, None, registration),
            (true, true) | (false, false) => None,
        }
    });
    each.collect()
}

/// The event of a registration that its node may not make.
fn refusal(node: &NodeName, key: &(ServiceName, InstanceName)) -> EventDraft {
    let cause = format!("node {node} may not register service {}", key.0);
    EventDraft { kind: "service.refused", subject: subject(node, key), before: None, after: None, cause }
}

fn event_draft(
    node: &NodeName,
    key: &(ServiceName, InstanceName),
    before: Option<&ServiceRegistration>,
    now: &ServiceRegistration,
) -> Option<EventDraft> {
    let was = before.map(|before| before.serving.as_str());
    let is = now.serving.as_str();
    if was == Some(is) {
        return None;
    }
    let kind = match (was, is) {
        (None, _) => "service.registered",
        (Some(_), "passing") => "service.passing",
        (Some(_), "warning") => "service.warning",
        (Some(_), _) => "service.failing",
    };
    let cause = match now.serving.reason() {
        "" => "checks pass",
        reason => reason,
    };
    let (before, after) = (was.map(ToString::to_string), Some(is.to_string()));
    Some(EventDraft { kind, subject: subject(node, key), before, after, cause: cause.to_string() })
}

fn subject(node: &NodeName, (service, instance): &(ServiceName, InstanceName)) -> String {
    format!("service/{service}/{node}/{instance}")
}

#[cfg(test)]
mod tests;
