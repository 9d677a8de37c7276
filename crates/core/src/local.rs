//! The agent's decisions: the state of one entity on one node, its desired state, and the next step between
//! them.
//!
//! Pure: the agent passes in its memory and its observations, runs the step it gets, and records the outcome.
//! Every change of memory happens in [`memory`], so that a restart at any point continues from there.

pub mod accept;
pub mod account;
pub mod action;
pub mod delay;
pub mod handover;
pub mod health;
pub mod health_tracker;
pub mod member;
pub mod memory;
pub mod osd;
pub mod plan;
pub mod provision;
pub mod report_numbers;
pub mod runs_here;
pub mod servers;
pub mod soak;
pub mod statuses;
pub mod ttl;
pub mod work;
