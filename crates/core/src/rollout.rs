//! The rollout engine's own values: what it sees of a target, the board it decides on, what people can do, the reasons
//! it gives. The decisions are in [`crate::decide::rollout`].

pub mod board;
pub mod environment;
pub mod external;
pub mod hook_answer;
pub mod hook_question;
pub mod observation;
pub mod operations;
pub mod thresholds;
pub mod why;
