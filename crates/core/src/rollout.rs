//! The rollout engine's own values: what it sees of a target, the board it decides on, what people can do, the reasons
//! it gives. The decisions are in [`crate::decide::rollout`].

pub mod answer;
pub mod around;
pub mod board;
pub mod engine;
pub mod external;
pub mod operate;
pub mod plan;
pub mod question;
pub mod rehearsal;
pub mod shelf;
pub mod sighting;
pub mod thresholds;
pub mod why;
