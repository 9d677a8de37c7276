//! The services of this machine: one task per instance asks and listens, and says whether it serves; the registry knows
//! which there are. What is offered to others is made of both, of the machine's addresses, and of how far entities are.

mod addresses;
mod instance;
mod published;
pub(crate) mod registered;
pub(crate) mod registry;
pub(crate) mod request;

pub(crate) use addresses::LocalAddresses;
pub(crate) use published::{InstanceKey, PublishedInstance};
