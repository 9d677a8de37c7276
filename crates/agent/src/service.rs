//! The services of this node: one task per instance runs its checks and publishes its health; the registry has all of them.
//! Registrations combine both with the node's addresses and the progress of entities.

mod addresses;
mod instance;
pub(crate) mod process_phase;
pub(crate) mod process_starts;
pub(crate) mod published;
pub(crate) mod registered;
pub(crate) mod registry;
pub(crate) mod request;

pub(crate) use addresses::LocalAddresses;
pub(crate) use published::{InstanceKey, PublishedInstance};
