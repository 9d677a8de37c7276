//! The agent with a real control plane, real processes and real files, in one binary.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where it is wrong; clippy's own exception knows only functions marked as tests"
)]

mod actions;
mod apply;
mod away;
mod bench;
mod catalogue_files;
mod child;
mod discovery;
mod files;
mod former;
mod joining;
mod kill;
mod logs;
mod metrics;
mod needs;
mod prometheus;
mod provision;
mod refusals;
mod replaced;
mod restart;
mod runners;
mod service;
mod services;
mod soak;
mod statuses;
