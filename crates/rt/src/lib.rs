//! The life of long-running things: named tasks that are joined, acceptors with a limit on connections, the only clock, limits of
//! observed time, stop signals, errors of configuration files, whose the files of a program are, the network of a
//! host that has shown nothing, and fail points for tests.
//!
//! This crate knows nothing of the domain. It is the only place that starts a task, reads the wall clock
//! or listens for signals; everything else is given what it needs.

pub mod acceptor;
pub mod clock;
pub mod config_error;
mod config_file;
pub mod fail;
#[cfg(any(test, feature = "testing"))]
pub mod free_ports;
#[cfg(any(test, feature = "testing"))]
pub mod gate;
pub mod host_network;
pub mod observed;
pub mod own_files;
pub mod signal;
pub mod tasks;
pub mod wait;
