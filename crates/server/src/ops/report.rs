//! A report arrives: turn ages into times, let core say what changed, commit it.

use bellwether_api::shape::ShapeError;
use bellwether_api::v1;
use bellwether_core::decide::report::{absorb, set};
use bellwether_core::records::report::Report;
use bellwether_core::records::status::{MAX_CATEGORIES, Status, is_built_in};
use bellwether_core::words::name::{Actor, Category, Namespace, NodeName};
use bellwether_core::words::time::{Span, Timestamp};

use super::OpError;
use crate::transactor::Transactor;

/// Takes in a node's report.
///
/// # Errors
/// [`OpError::Invalid`] when it is for another node or has a field that is not allowed.
pub async fn absorb_report(
    transactor: &Transactor,
    namespace: &Namespace,
    node: &NodeName,
    shape: v1::report::Report,
) -> Result<(), OpError> {
    if shape.node != node.as_str() {
        let reason = format!("{:?} is not {node}: a node reports for itself alone", shape.node);
        return Err(ShapeError::at("node", reason).into());
    }
    let report = dated(shape, transactor.now())?;
    let actor = actor(node);
    transactor
        .change(namespace, &actor, |_, fleet, now| {
            let last = fleet.reports.get(node).map(|kept| &*kept.value);
            Ok((absorb(last, report.clone(), now), ()))
        })
        .await
}

/// Sets one status of a node, as `update-status` does: the rest of its last report stays.
///
/// # Errors
/// [`OpError::NotFound`] for an unknown node, [`OpError::Refused`] for a category that only its agent sets,
/// [`OpError::Invalid`] for a value that is not allowed.
pub async fn set_status(
    transactor: &Transactor,
    namespace: &Namespace,
    actor: &Actor,
    (node, category): (&NodeName, &str),
    shape: v1::status::Status,
) -> Result<(), OpError> {
    let category = Category::parse(category).map_err(|error| ShapeError::at("category", error))?;
    if is_built_in(&category) {
        let reason =
            format!("set {category}: the node's own agent says how it stands, of what it does itself");
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
                entities: Default::default(),
                statuses: Default::default(),
            });
            let known = report.statuses.contains_key(&category);
            if !known && report.statuses.len() >= MAX_CATEGORIES {
                return Err(ShapeError::at("category", "the node has 64 already; use one of them").into());
            }
            // The node repeating what it said before is no news after this.
            let update = report.statuses.get(&category).map_or(0, |before| before.update);
            report.statuses.insert(category.clone(), Status { update, ..status.clone() });
            Ok((set(last, report, &category, now), ()))
        })
        .await
}

/// The report with the server's times in place of the node's ages.
fn dated(shape: v1::report::Report, now: Timestamp) -> Result<Report, ShapeError> {
    let mut shape = shape;
    let statuses = shape.statuses.into_iter();
    shape.statuses = statuses.map(|(category, status)| (category, said(status, now))).collect();
    for entity in shape.entities.values_mut() {
        let since = entity.healthy_for_ms.take().map(|age| now.minus(Span::from_millis(age)));
        entity.healthy_since_ms = since.map(Timestamp::as_millis);
    }
    shape.try_into()
}

/// The status with the server's time in place of its age; what only the server knows is not taken from anybody.
fn said(shape: v1::status::Status, now: Timestamp) -> v1::status::Status {
    let age = Span::from_millis(shape.age_ms.unwrap_or_default());
    let refreshed = shape.lifetime_ms.map(|_| now.minus(age).as_millis());
    v1::status::Status { last_state: None, age_ms: None, refreshed_ms: refreshed, ..shape }
}

fn actor(node: &NodeName) -> Actor {
    bellwether_core::access::Identity::Node(node.clone()).actor()
}
