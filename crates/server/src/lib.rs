//! Bellwether's control plane: keeps records, decides, and speaks to agents and people.
//!
//! Start reading at [`run`], which builds the parts; then [`transactor`] (operations), [`reconcile`] (deciders), [`http`].

pub mod config;
pub mod hook_rules;
pub mod hooks;
pub mod http;
pub mod init;
pub mod installation;
pub mod leadership;
pub mod membership;
pub mod metrics;
pub mod names;
pub mod ops;
pub mod pki;
pub mod presences;
pub mod reconcile;
pub mod records;
pub mod run;
pub mod secret;
pub mod sessions;
pub mod timing;
pub mod transactor;
pub mod transfer;
pub mod world;
pub mod world_view;
