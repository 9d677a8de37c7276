//! Bellwether's control plane: stores records, decides, and serves the API for agents and people.
//!
//! Start reading at [`run`], which builds a server; then [`transactor`] (operations), [`reconcile`] (deciders), [`http`].

pub mod audit;
pub mod check;
pub mod config;
pub mod decider_failures;
pub mod discovery;
mod event_log;
pub mod freshness;
pub mod hooks;
pub mod http;
pub mod init;
pub mod installation;
pub mod job_rights;
pub mod join;
mod key_files;
pub mod known_servers;
mod leadership;
mod lease_key;
pub mod log_requests;
pub mod membership;
pub mod metrics;
pub mod names;
pub mod ops;
mod outside_call;
pub mod pki;
pub mod presences;
mod reactor;
pub mod reconcile;
pub mod records;
pub mod recover;
mod rights;
pub mod run;
mod scheduler;
pub mod secret;
pub mod secrets;
pub mod sessions;
pub mod set_back;
pub mod sinks;
mod sleep;
pub mod store_rules;
pub mod timing;
mod tls_client;
pub mod transactor;
pub mod transfer;
pub mod world;
pub mod world_view;
