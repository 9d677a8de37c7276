//! What the registry is asked, by programs and by the instances themselves.

use std::sync::Arc;

use bellwether_api::problem::Code;
use bellwether_api::v1::service::definition::ServiceDefinition;
use bellwether_core::local::ttl::TtlUpdate;
use bellwether_core::words::name::{CheckName, InstanceName};
use tokio::sync::{mpsc, oneshot};

use crate::config::service::Service;

/// Why something was not done: fits after "could not ".
pub(crate) type RegistryRefusal = (Code, String);

/// What programs ask, and what instances have kept.
#[derive(Debug)]
pub(super) enum RegistryRequest {
    Register(Box<ServiceDefinition>, Option<i32>),
    Deregister(InstanceName),
    Pulse(InstanceName, Option<CheckName>, TtlUpdate, String),
    /// What this service needs is there.
    Met(Arc<Service>),
}

/// The way to the one task that changes what is offered.
pub(super) type RegistryRequests =
    mpsc::Sender<(RegistryRequest, oneshot::Sender<Result<(), RegistryRefusal>>)>;
