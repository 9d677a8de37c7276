//! Faults that take minutes, on the same testbed and under the same laws as the stories of several servers, which are played
//! here too. `cargo xtask faults` runs them, one after the other; the usual test run does not.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it is wrong; clippy's own exception knows only functions marked as tests"
)]

#[path = "../it/bed.rs"]
mod bed;
mod clocks;
mod evidence;
mod full;
#[path = "../it/laws.rs"]
mod laws;
mod many;
mod moments;
mod paused;
mod points;
#[path = "../it/redis_client.rs"]
mod redis_client;
#[path = "../it/story_servers.rs"]
mod story_servers;
mod ways;
#[path = "../it/written.rs"]
mod written;
