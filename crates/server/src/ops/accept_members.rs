//! Accepting that members of a cluster are gone which its list does not have any more.

use bellwether_api::shape::reason;
use bellwether_api::v1::cluster::Cluster as Shape;
use bellwether_api::v1::cluster::discovery::AcceptMembers;
use bellwether_core::decide::discovery::accepted;

use super::cluster::ClusterScope;
use super::{OpError, cause, cluster};
use crate::transactor::Transactor;

/// Has the members leave that the list does not have any more; answers the cluster without them.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] when none waits for it, or another number than was named.
pub async fn accept(
    transactor: &Transactor,
    scope: ClusterScope<'_>,
    request: &AcceptMembers,
) -> Result<Shape, OpError> {
    let ClusterScope { namespace, name, actor, .. } = scope;
    let why = reason(&request.reason)?;
    transactor
        .change(namespace, actor, |_, fleet, now| {
            let found = fleet.clusters.get(name).map(|kept| &*kept.value);
            let found = found.ok_or_else(|| OpError::NotFound(format!("cluster {name}")))?;
            let refused = |reason: String| OpError::Refused {
                reason: format!("accept that members of cluster {name} are gone: {reason}"),
                hint: Some(format!("bellwether why cluster/{name}")),
            };
            let none = || refused("none waits for that".to_owned());
            let source = found.discovery.as_ref().map(|of| &of.source).ok_or_else(none)?;
            let known = fleet.cluster_discoveries.get(name).map(|kept| &*kept.value).ok_or_else(none)?;
            let held = known.held.as_ref().map_or(0, |held| held.hosts.len());
            let named = request.count.filter(|count| u64::try_from(held) != Ok(*count) && held > 0);
            if let Some(count) = named {
                return Err(refused(format!("{held} wait for that now, not {count}")));
            }
            let changeset = accepted(known, source, (cause(&why), now)).ok_or_else(none)?;
            Ok((Some(changeset), ()))
        })
        .await?;
    let world = transactor.world();
    let after = world.fleets.get(namespace).and_then(|fleet| cluster::get(fleet, name));
    after.ok_or_else(|| OpError::NotFound(format!("cluster {name}")))
}
