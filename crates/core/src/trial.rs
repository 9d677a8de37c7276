//! Rollouts outside of a server: the engine as a library, simulations in virtual time, and plans.

pub mod engine;
pub mod plan;
pub mod simulation;
