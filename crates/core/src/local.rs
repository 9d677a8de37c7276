//! The agent's thinking: what one entity on one node is, what it is to be, and the next step between them.
//!
//! Pure: the agent hands in what it remembers and what it sees, does the step it is told, and remembers the outcome.
//! Every change of memory happens here, in [`memory`], so that a restart at any point continues where it was.

pub mod accept;
pub mod account;
pub mod action;
pub mod delay;
pub mod health;
pub mod health_tracker;
pub mod memory;
pub mod plan;
pub mod provision;
pub mod servers;
pub mod statuses;
pub mod ttl;
