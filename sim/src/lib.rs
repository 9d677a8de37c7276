//! Histories of a whole installation under a simulated clock, network and store: several real servers with their deciders
//! and HTTP handlers, agents with the real agent's decisions, people who roll out, write profiles, take locks and run workflows
//! on nodes and clusters, and data stores with what is known of them and done about them.
//!
//! One history is one thread, one runtime with paused time, and one seed: the same seed gives the same history, byte for
//! byte. Servers are killed, paused and partitioned from the store or from agents, and their connections to the store
//! misbehave like etcd 3.4. Laws are checked after every commit, and at the end everything must have converged.

pub mod agent;
mod caller;
mod cast;
pub mod chaos;
mod clocks;
pub mod executions;
pub mod history;
pub mod law;
pub mod locker;
pub mod machine;
pub mod network;
mod peers;
pub mod people;
mod requests;
pub mod rules;
pub mod run_law;
pub mod site;
mod staff;
pub mod stores;
pub mod suspended;
pub mod trace;
mod view_law;
mod works;
