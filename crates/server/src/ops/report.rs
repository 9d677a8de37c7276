//! Absorbs the reports of nodes: converts ages to times, lets core find the changes, commits them.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_core::decide::ensembles::set_back;
use bellwether_core::decide::jobs;
use bellwether_core::decide::report::{EVENTS_AT_ONCE, absorb, absorb_unassigned, delete, part, set};
use bellwether_core::records::report::Report;
use bellwether_core::records::status::{MAX_CATEGORIES, Status, is_built_in};
use bellwether_core::words::name::{Actor, Category, Namespace, NodeName};
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::fleet::Fleet;

use super::node::{about_itself, overtaken};
use super::scope::NodeScope;
use super::{OpError, job};
use crate::transactor::Transactor;

/// Absorbs a node's report.
///
/// # Errors
/// [`OpError::Invalid`] when it is of another node or a field is not valid.
pub async fn absorb_report(
    transactor: &Transactor,
    namespace: &Namespace,
    node: &NodeName,
    shape: v1::report::Report,
) -> Result<(), OpError> {
    about_itself(&shape.node, node)?;
    let mut shape = shape;
    let told = job::told(&mut shape)?;
    let report = with_times(shape, transactor.now())?;
    let actor = actor(node);
    for number in 0.. {
        let absorbing = transactor.change(namespace, &actor, |_, fleet, now| {
            let last = fleet.reports.get(node).map(|kept| &*kept.value);
            if last.is_some_and(|last| report.is_overtaken(last)) {
                return Err(overtaken("report", node));
            }
            let of_ledger = Report { ledger_since: fleet.epoch, ..report.clone() };
            let absorbed = match is_unassigned(fleet, &report) {
                true => absorb_unassigned(last, of_ledger.clone(), now),
                false => absorb(last, of_ledger.clone(), now),
            };
            let is_large = absorbed.as_ref().is_some_and(|absorbed| absorbed.events.len() > EVENTS_AT_ONCE);
            if is_large && let Some(part) = part(last, &of_ledger, number) {
                return Ok((absorb(last, part, now).map(Into::into), false));
            }
            let jobs = jobs::absorb(fleet, &report, &told);
            let mut reported = absorbed;
            if !jobs.is_empty() {
                reported.get_or_insert_default().writes.extend(jobs);
            }
            Ok((set_back::noted(fleet, (node, report.generation), reported), true))
        });
        if absorbing.await? {
            break;
        }
    }
    Ok(())
}

/// Whether a report answers the present order, and that assigns nothing: only then it tells that nothing is left of earlier assignments.
fn is_unassigned(fleet: &Fleet, report: &Report) -> bool {
    let order = fleet.orders.get(&report.node).map(|kept| &*kept.value);
    order.is_some_and(|order| order.generation == report.generation && order.content.entities.is_empty())
}

/// Sets one status of a node; the rest of its last report is unchanged.
///
/// # Errors
/// [`OpError::NotFound`] for an unknown node, [`OpError::Refused`] for a category that only the agent sets,
/// [`OpError::Invalid`] for a value that is not valid.
pub async fn set_status(
    transactor: &Transactor,
    scope: NodeScope<'_>,
    category: &str,
    shape: v1::status::Status,
) -> Result<(), OpError> {
    let NodeScope { namespace, node, actor } = scope;
    let category = Category::parse(category).map_err(|error| ShapeError::at("category", error))?;
    if is_built_in(&category) {
        let reason = format!("set {category}: only the node's agent sets it");
        let hint = "use a category of your own; see: bellwether node get NODE".to_owned();
        return Err(OpError::Refused { reason, hint: Some(hint) });
    }
    let status = Status::try_from(said(shape, transactor.now()))?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            if fleet.active_node(node).is_none() {
                return Err(OpError::NotFound(format!("node {node}")));
            }
            let last = fleet.reports.get(node).map(|kept| &*kept.value);
            let mut report = last.cloned().unwrap_or_else(|| Report {
                node: node.clone(),
                received_at: now,
                agent_version: String::new(),
                generation: Default::default(),
                ledger: None,
                ledger_since: fleet.epoch,
                sequence: 0,
                entities: Default::default(),
                features: Default::default(),
                deleted: Default::default(),
                statuses: Default::default(),
            });
            let known = report.statuses.contains_key(&category);
            if !known && report.statuses.len() >= MAX_CATEGORIES {
                return Err(ShapeError::at(
                    "category",
                    "the node has 64 categories already; reuse one of them",
                )
                .into());
            }
            // The update counter is kept, so that the next report of the node does not count as a change.
            let update = report.statuses.get(&category).map_or(0, |before| before.update);
            report.statuses.insert(category.clone(), Status { update, ..status.clone() });
            Ok((set(last, report, &category, now), ()))
        })
        .await
}

/// Deletes one status of a node.
///
/// # Errors
/// [`OpError::NotFound`] for an unknown node, or one without a status in this category; [`OpError::Refused`] for a
/// category that only the agent sets.
pub async fn delete_status(
    transactor: &Transactor,
    scope: NodeScope<'_>,
    category: &str,
) -> Result<(), OpError> {
    let NodeScope { namespace, node, actor } = scope;
    let category = Category::parse(category).map_err(|error| ShapeError::at("category", error))?;
    if is_built_in(&category) {
        let reason = format!("delete {category}: only the node's agent sets it");
        return Err(OpError::Refused { reason, hint: None });
    }
    transactor
        .change(namespace, actor, |_, fleet, _| {
            if fleet.active_node(node).is_none() {
                return Err(OpError::NotFound(format!("node {node}")));
            }
            let last = fleet.reports.get(node).map(|kept| &*kept.value);
            match last.and_then(|last| delete(last, &category, "deleted by hand")) {
                Some(changeset) => Ok((Some(changeset), ())),
                None => Err(OpError::NotFound(format!("status {category} of node {node}"))),
            }
        })
        .await
}

/// The report with the server's times in place of the node's ages.
fn with_times(shape: v1::report::Report, now: Timestamp) -> Result<Report, ShapeError> {
    let mut shape = shape;
    let statuses = shape.statuses.into_iter();
    shape.statuses = statuses.map(|(category, status)| (category, said(status, now))).collect();
    for entity in shape.entities.values_mut() {
        let since = entity.healthy_for_ms.take().map(|age| now.minus(Span::from_millis(age)));
        entity.healthy_since_ms = since.map(Timestamp::as_millis);
        if let Some(step) = &mut entity.step {
            let age = Span::from_millis(step.for_ms.take().unwrap_or_default());
            step.since_ms = Some(now.minus(age).as_millis());
        }
    }
    shape.try_into()
}

/// The status with the server's time in place of its age. Fields that only the server sets are dropped.
fn said(shape: v1::status::Status, now: Timestamp) -> v1::status::Status {
    let age = Span::from_millis(shape.age_ms.unwrap_or_default());
    let refreshed = shape.lifetime_ms.map(|_| now.minus(age).as_millis());
    v1::status::Status { last_state: None, age_ms: None, refreshed_ms: refreshed, ..shape }
}

fn actor(node: &NodeName) -> Actor {
    bellwether_core::access::Identity::Node(node.clone()).actor()
}
