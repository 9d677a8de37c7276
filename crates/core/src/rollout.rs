//! The rollout engine's own values: what it sees of a target, the board it decides on, what people can do, the reasons
//! it gives. The decisions are in [`crate::decide::rollout`].

pub mod board;
pub mod engine;
pub mod environment;
pub mod external;
pub mod hook_answer;
pub mod hook_question;
pub mod observation;
pub mod operations;
pub mod plan;
pub mod simulation;
pub mod thresholds;
pub mod version_resolution;
pub mod why;
