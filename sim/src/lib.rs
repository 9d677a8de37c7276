//! Histories of a whole installation under a simulated clock, network and store: several real servers with their real
//! deciders and HTTP handlers, agents with the real agent's thinking, people who roll out, write profiles and take locks.
//!
//! One history is one thread, one runtime whose time is paused, and one seed: the same seed gives the same history, byte for
//! byte. Servers are killed, stopped and cut off from the store or from agents, and their lines to the store lie as etcd 3.4
//! is known to. After every commit the laws are looked at, and at the end everything must have come to rest.

pub mod agent;
mod caller;
mod cast;
pub mod chaos;
pub mod history;
pub mod law;
pub mod locker;
pub mod machine;
pub mod network;
pub mod people;
mod requests;
pub mod site;
pub mod trace;
