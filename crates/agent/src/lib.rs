//! Bellwether's node agent: the only process that changes the host.
//!
//! Start reading at [`run`], which builds the parts: `link` talks to the servers, `ledger` keeps the order, `entity` does
//! one entity's steps as `bellwether_core::local` plans them, `apply` and `check` act on the host, `report_board` holds what
//! the agent reports.

mod apply;
mod catalogue;
mod check;
mod check_store;
pub mod config;
mod descriptors;
mod discovery;
mod disk;
mod ensemble;
mod entity;
mod entity_tasks;
mod facts;
pub mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod guard;
pub mod http;
pub mod identity;
mod job_api;
pub mod join;
mod lease;
pub mod ledger;
pub mod limits;
mod link;
pub mod local;
pub mod lock;
mod logical;
mod metrics;
mod names;
mod own_health;
mod param_cache;
mod probe;
mod provision;
pub mod reload;
pub mod renderer;
mod report_board;
pub mod run;
mod secret_cache;
mod service;
pub mod status;
pub mod support;
pub mod users;
