//! Who waits for whom in a circle: found among those that wait, told once when it closes and once when it opens.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use crate::records::circle::{Circle, Circles, Member};
use crate::records::event::Draft;
use crate::records::key::Record;
use crate::verdict::{Atom, Verdict, Write};
use crate::words::name::{EntityName, NodeName, ServiceName};
use crate::words::time::Timestamp;
use crate::world::fleet::Fleet;

/// Longest circle that is looked for.
const LONGEST: usize = 16;

/// Most circles that are told of: more are the same trouble.
const MOST: usize = 64;

/// Finds circular waits and tells of those that came and went. Costs those that wait; nothing when nobody does.
///
/// Woken by: reports, what nodes offer.
#[must_use]
pub fn decide(fleet: &Fleet, now: Timestamp) -> Verdict {
    let none = Circles::default();
    let known = fleet.circles.as_ref().map_or(&none, |kept| &*kept.value);
    if fleet.lacking.is_empty() && known.0.is_empty() {
        return Verdict::default();
    }
    let found: Vec<Circle> = find(fleet, now)
        .into_iter()
        .map(|new| known.0.iter().find(|old| old.is_same(&new)).cloned().unwrap_or(new))
        .collect();
    let new = found.iter().filter(|circle| !known.0.iter().any(|old| old.is_same(circle)));
    let over = known.0.iter().filter(|circle| !found.iter().any(|one| one.is_same(circle)));
    let mut events: Vec<Draft> = new.map(|circle| told("wait.circular", circle, circle.hint())).collect();
    events.extend(
        over.map(|circle| told("wait.circle_ended", circle, "it waits no longer in a circle".into())),
    );
    if events.is_empty() {
        return Verdict::default();
    }
    let write = Write::put(Record::Circles(Circles(found)));
    Verdict { atoms: vec![Atom { writes: vec![write], events }], wake: None }
}

fn told(kind: &'static str, circle: &Circle, cause: alloc::string::String) -> Draft {
    let entity = circle.members.first().map_or_else(Default::default, |member| member.entity.to_string());
    Draft { kind, subject: format!("entity/{entity}"), before: None, after: Some(circle.to_string()), cause }
}

/// By entity that waits: a node where it does, and what for.
type Waits = BTreeMap<EntityName, (NodeName, BTreeSet<ServiceName>)>;

/// Every circle among those that wait, each once.
fn find(fleet: &Fleet, now: Timestamp) -> Vec<Circle> {
    let mut waits: Waits = BTreeMap::new();
    for (entity, node) in fleet.lacking.iter().filter(|(_, node)| fleet.active_node(node).is_some()) {
        let report = fleet.reports.get(node).and_then(|kept| kept.value.entities.get(entity));
        let lacks = report.into_iter().flat_map(|report| &report.lacks).cloned();
        waits.entry(entity.clone()).or_insert_with(|| (node.clone(), BTreeSet::new())).1.extend(lacks);
    }
    let mut circles = Vec::new();
    for start in waits.keys() {
        let mut path = Vec::new();
        walk(fleet, &waits, start, (start, &mut path), &mut circles);
        if circles.len() >= MOST {
            break;
        }
    }
    circles.into_iter().map(|members| Circle { members, since: now }).collect()
}

/// Goes on from `at`, never to an entity before `start`, so that each circle is found from its first member alone.
fn walk(
    fleet: &Fleet,
    waits: &Waits,
    start: &EntityName,
    (at, path): (&EntityName, &mut Vec<Member>),
    circles: &mut Vec<Vec<Member>>,
) {
    let Some((node, lacks)) = waits.get(at).filter(|_| path.len() < LONGEST && circles.len() < MOST) else {
        return;
    };
    for service in lacks {
        let member = Member { entity: at.clone(), node: node.clone(), waits_for: service.clone() };
        for next in offering(fleet, waits, service) {
            if next < *start || path.iter().any(|member| member.entity == next) && next != *start {
                continue;
            }
            path.push(member.clone());
            if next == *start {
                circles.push(path.clone());
            } else {
                walk(fleet, waits, start, (&next, path), circles);
            }
            path.pop();
        }
    }
}

/// The entities that offer a service and wait themselves; none while an instance that does not wait may yet come to serve.
fn offering(fleet: &Fleet, waits: &Waits, service: &ServiceName) -> BTreeSet<EntityName> {
    let mut entities = BTreeSet::new();
    let Some(known) = fleet.catalogue.service(service) else { return entities };
    for instance in known.instances().filter(|instance| !instance.level.serves()) {
        let offers = fleet.offers.get(&instance.node);
        let offer =
            offers.and_then(|kept| kept.value.instances.get(&(service.clone(), instance.name.clone())));
        let entity = offer.and_then(|offer| offer.entity.as_ref());
        let blocked = entity.filter(|entity| {
            waits.contains_key(*entity) && fleet.lacking.contains(&((*entity).clone(), instance.node.clone()))
        });
        match blocked {
            Some(entity) => drop(entities.insert(entity.clone())),
            None => return BTreeSet::new(),
        }
    }
    entities
}

#[cfg(test)]
mod tests;
