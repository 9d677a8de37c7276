//! How long-running things live and die: named tasks that are joined, doorways with so much room, the one clock, stop
//! signals, and the moments at which a test may have a process die.
//!
//! This crate knows nothing of the domain. It is the only place that starts a task, reads the wall clock
//! or listens for signals; everything else is handed what it needs.

pub mod acceptor;
pub mod clock;
pub mod fail;
#[cfg(any(test, feature = "testing"))]
pub mod gate;
pub mod signal;
pub mod tasks;
