//! The rollout engine's own values: what it sees of a target, the board it decides on, the reasons it gives.

pub mod sighting;
