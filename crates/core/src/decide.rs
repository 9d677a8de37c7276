//! Deciders: pure functions from the world and the present to a verdict.
//!
//! Every decider takes the whole world and `now`, never the event that woke it; deciding again after its
//! verdict was committed writes nothing.

pub mod agenda;
pub mod authorities;
pub mod causes;
pub mod clusters;
pub mod discovery;
pub mod drain;
pub mod ensembles;
pub mod external;
pub mod facts;
pub mod jobs;
pub mod liveness;
pub mod order;
pub mod placement;
pub mod probes;
pub mod reactions;
pub mod registrations;
pub mod report;
pub mod retention;
pub mod rollout;
#[cfg(test)]
mod run_play;
pub mod runs;
pub mod schedules;
pub mod services;
pub mod silence;
pub mod sinks;
pub mod slots;
pub mod table;
pub mod views;
pub mod wait_cycles;
