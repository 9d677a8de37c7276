//! Several hosts on one machine: an etcd, servers and agents as real processes, each on a host with an address of its own.
//! Hosts are cut off from each other one way or both, parts are paused, killed and started again, disks are filled, clocks
//! set. Owns what is started and takes all of it down again; knows the product only as a program. Needs root and Linux.

pub mod bed;
mod clock;
pub mod network;
mod options;
pub mod orders;
pub mod part;
pub mod proxy;
mod shell;
mod texts;
mod wait;

pub use bed::{Options, Testbed};
pub use network::Network;
