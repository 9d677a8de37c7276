//! Params of nodes, and the profiles that they read. Each change counts the revision; whoever names the one that it must
//! follow either gets the very next or changes nothing.

use bellwether_api::shape::reason;
use bellwether_api::v1::node_params::{NodeProfiles, profiles};
use bellwether_api::v1::profile::{canonical, params};
use bellwether_api::value::values;
use bellwether_core::records::annotation::Annotation;
use bellwether_core::records::event::EventDraft;
use bellwether_core::records::key::{AnyKey, Key, Record};
use bellwether_core::records::node_params::NodeParams;
use bellwether_core::records::secret::SecretValues;
use bellwether_core::verdict::{Changeset, Write};
use bellwether_core::words::counter::{Epoch, NodeParamsRevision};
use bellwether_core::words::name::{Actor, NodeName};
use bellwether_core::words::time::Timestamp;
use bellwether_core::world::fleet::Fleet;

use super::expectation::ChangeError;
use super::params::secrets::{ParamsOwner, Sealing};
use super::params::{ParamsRequest, schema};
use super::scope::NodeScope;
use super::{OpError, cause};
use crate::transactor::Transactor;

/// Changes the params of a node, or of one that is expected to join. Answers what it has then; nothing is written if that
/// changes nothing.
///
/// # Errors
/// [`OpError::NotFound`] for a node that does not exist, or a key to remove; [`OpError::Invalid`] naming the param;
/// [`OpError::Moved`] when the params are not at `only_at`; [`OpError::Differs`] when a param is not as expected;
/// [`OpError::Forbidden`] for a secret that is named newly, by who may not read of it.
pub async fn change(
    transactor: &Transactor,
    scope: NodeScope<'_>,
    only_at: Option<u64>,
    ParamsRequest { change, who, why }: ParamsRequest<'_>,
) -> Result<NodeParams, OpError> {
    change.validate()?;
    let (why, who) = (reason(why)?, Some(who));
    transactor
        .compare_together(scope.namespace, scope.actor, &record(scope.node), |world, fleet, now| {
            let before = get(fleet, scope.node)?;
            at_revision(&before, only_at)?;
            let whose = format!("node {}", scope.node);
            let params_before = params(&before.params)?;
            let mut changed = change.applied_to(&params_before, &whose).map_err(|error| match error {
                ChangeError::Other(error) => error,
                ChangeError::Differs(mismatch) => {
                    let what = format!("change the params of {whose}");
                    mismatch.refusing(&what, before.revision.get(), see(scope.node))
                }
            })?;
            schema::check(fleet, &params_before, &changed)?;
            let NodeScope { namespace, node, .. } = scope;
            let (keyring, owner) = (transactor.keyring(), ParamsOwner::Node(node));
            let secrets = Sealing { keyring, world, fleet, namespace, owner, who }
                .seal(&before.secrets, &mut changed)?;
            let (params, values) = (canonical(&changed)?, values(&changed));
            let after = NodeParams { params, values, secrets, ..before.clone() };
            Ok(written(
                fleet.epoch,
                &before,
                after,
                Annotation { by: scope.actor.clone(), reason: why.clone(), at: now },
            ))
        })
        .await
}

/// Replaces the profiles that a node reads.
///
/// # Errors
/// As [`change`].
pub async fn read_profiles(
    transactor: &Transactor,
    scope: NodeScope<'_>,
    only_at: Option<u64>,
    spec: &NodeProfiles,
) -> Result<NodeParams, OpError> {
    let (why, profiles) = (reason(&spec.reason)?, profiles(&spec.profiles)?);
    transactor
        .compare_together(scope.namespace, scope.actor, &record(scope.node), |_, fleet, now| {
            let before = get(fleet, scope.node)?;
            at_revision(&before, only_at)?;
            let after = NodeParams { profiles: profiles.clone(), ..before.clone() };
            Ok(written(
                fleet.epoch,
                &before,
                after,
                Annotation { by: scope.actor.clone(), reason: why.clone(), at: now },
            ))
        })
        .await
}

fn record(node: &NodeName) -> AnyKey {
    Key::NodeParams(node.clone()).into()
}

/// What a node has; nothing, at revision 0, if nobody gave it any.
///
/// # Errors
/// [`OpError::NotFound`] for a node that neither joined nor is expected.
pub fn get(fleet: &Fleet, node: &NodeName) -> Result<NodeParams, OpError> {
    let known = fleet.active_node(node).is_some() || fleet.expected.contains_key(node);
    if !known {
        return Err(OpError::NotFound(format!("node {node}")));
    }
    Ok(fleet.node_params.get(node).map_or_else(|| none(node), |kept| NodeParams::clone(&kept.value)))
}

fn none(node: &NodeName) -> NodeParams {
    let nobody = Actor::parse("bellwether").expect("plain letters are an actor");
    NodeParams {
        node: node.clone(),
        revision: NodeParamsRevision::ZERO,
        params: "{}".to_owned(),
        secrets: SecretValues::new(),
        values: Default::default(),
        profiles: Vec::new(),
        annotation: Annotation::of(nobody, Timestamp::EPOCH),
    }
}

fn at_revision(before: &NodeParams, only_at: Option<u64>) -> Result<(), OpError> {
    let NodeParams { node, revision, annotation, .. } = before;
    match only_at.filter(|wanted| *wanted != revision.get()) {
        None => Ok(()),
        Some(wanted) => {
            let by = if revision.get() == 0 { String::new() } else { format!(", by {}", annotation.by) };
            let reason = format!(
                "change the params of node {node} at revision {wanted}: they are at revision {revision}{by}; \
                 nothing was changed"
            );
            Err(OpError::Moved { reason, hint: see(node) })
        }
    }
}

/// The change and what the node has then.
fn written(
    epoch: Epoch,
    before: &NodeParams,
    after: NodeParams,
    annotation: Annotation,
) -> (Option<Changeset>, NodeParams) {
    if after == *before {
        return (None, after);
    }
    let same = after.params == before.params && after.secrets == before.secrets;
    let kind = if same { "node.profiles_changed" } else { "node.params_changed" };
    let after = NodeParams { revision: before.revision.next_in(epoch), annotation, ..after };
    let event = EventDraft {
        kind,
        subject: format!("node/{}", after.node),
        before: Some(before.revision.to_string()),
        after: Some(after.revision.to_string()),
        cause: cause(&after.annotation.reason),
    };
    let changeset =
        Changeset { writes: vec![Write::put(Record::NodeParams(after.clone()))], events: vec![event] };
    (Some(changeset), after)
}

fn see(node: &NodeName) -> String {
    format!("bellwether param explain {node}")
}
