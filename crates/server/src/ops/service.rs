//! Operations on services.

use bellwether_core::decide::services;
use bellwether_core::words::name::{Actor, Namespace, ServiceName};
use bellwether_core::words::plural::Plural;
use bellwether_core::world::fleet::Fleet;

use super::OpError;
use crate::transactor::Transactor;

/// Forgets a service that has no instances.
///
/// # Errors
/// [`OpError::NotFound`]; [`OpError::Refused`] while it has instances.
pub async fn forget(
    transactor: &Transactor,
    namespace: &Namespace,
    name: &ServiceName,
    actor: &Actor,
) -> Result<(), OpError> {
    let forget = |_: &_, fleet: &Fleet, _| {
        let service = fleet.catalogue.service(name);
        let service = service.ok_or_else(|| OpError::NotFound(format!("service {name}")))?;
        let instances = u64::try_from(service.addressable()).unwrap_or(u64::MAX);
        if instances > 0 {
            return Err(OpError::Refused {
                reason: format!("forget service {name}: it has {}", Plural(instances, "instance")),
                hint: Some(format!(
                    "deregister them, or decommission their nodes: bellwether service get {name}"
                )),
            });
        }
        Ok((Some(services::forget(name, "on request".to_owned())), ()))
    };
    transactor.change(namespace, actor, forget).await
}
