//! Types of the rollout engine: observations of targets, the board that decisions read, operations, and the
//! reasons shown to people. The decisions are in [`crate::decide::rollout`].

pub mod board;
pub mod environment;
pub mod external;
pub mod hook_answer;
pub mod hook_question;
pub mod observation;
pub mod operations;
pub mod request_effect;
pub mod stores;
pub mod thresholds;
pub mod why;
