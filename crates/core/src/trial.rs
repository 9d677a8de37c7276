//! Rollouts outside of a server: the engine as a library, simulations in virtual time, and plans made by simulating.

pub mod engine;
pub mod plan;
pub mod simulation;
