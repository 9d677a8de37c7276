//! Several hosts on one machine: an etcd, servers and agents as real processes, each on a host with its own address.
//! Hosts can be partitioned, also in one direction; parts can be paused, killed and restarted, disks filled, clocks shifted.
//! Stops everything it started. Knows the product only as a program. Needs root and Linux.

pub mod bed;
mod clock;
pub mod network;
pub mod options;
pub mod orders;
pub mod part;
pub mod proxy;
mod shell;
mod texts;
mod wait;

pub use bed::Testbed;
pub use network::Network;
pub use options::Options;
