//! Requests to the registry, by programs and by the instances themselves.

use std::sync::Arc;

use bellwether_api::problem::Code;
use bellwether_api::v1::service::definition::ServiceDefinition;
use bellwether_core::local::ttl::TtlUpdate;
use bellwether_core::words::name::{CheckName, InstanceName};
use tokio::sync::{mpsc, oneshot};

use crate::config::service::Service;

/// Why a request was refused; the text fits after "cannot ".
pub(crate) type RegistryRefusal = (Code, String);

/// A request.
#[derive(Debug)]
pub(super) enum RegistryRequest {
    Register(Box<ServiceDefinition>, Option<i32>),
    Deregister(InstanceName),
    /// The state of this TTL check; of the only one if none is named.
    UpdateCheck(InstanceName, Option<CheckName>, CheckUpdate),
    /// The needs of this service are met.
    Met(Arc<Service>),
}

/// The queue of the task that changes the services, with where to answer.
pub(super) type RegistryRequests =
    mpsc::Sender<(RegistryRequest, oneshot::Sender<Result<(), RegistryRefusal>>)>;

/// The state that a program reports for a TTL check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckUpdate {
    pub(crate) state: TtlUpdate,
    /// One line for people; may be empty.
    pub(crate) note: String,
}
