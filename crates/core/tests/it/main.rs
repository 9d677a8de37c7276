//! The rollout engine from outside: plays (given, when, expect) and laws over random histories, in one binary.
#![expect(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops where it is wrong; clippy's own exception knows only functions marked as tests"
)]

mod acts;
mod fold;
mod found;
mod laws;
mod library;
mod outage_history;
mod outages;
mod play;
mod plays;
mod simulation;
mod stores;
mod world;
