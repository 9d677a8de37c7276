//! Bellwether's control plane: keeps records, decides, and speaks to agents and people.
//!
//! Start reading at [`run`], which builds the parts; then [`desk`] (operations), [`reconcile`] (deciders), [`http`].

pub mod config;
pub mod desk;
pub mod hooks;
pub mod http;
pub mod init;
pub mod installation;
pub mod metrics;
pub mod names;
pub mod ops;
pub mod pki;
pub mod presences;
pub mod published;
pub mod reconcile;
pub mod records;
pub mod rules;
pub mod run;
pub mod seat;
pub mod seats;
pub mod secret;
pub mod sessions;
pub mod timing;
pub mod transfer;
pub mod world;
