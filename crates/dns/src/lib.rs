//! DNS over UDP and TCP, answered from a snapshot of the catalogue.
//!
//! Names and their records are decided in [`bellwether_core::dns`]; this crate has bytes, sockets and limits, and decides
//! nothing about the fleet. Reading order: [`serve`], [`config`], [`counts`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use bellwether_core::dns::zone::{Zone, ZoneOrigin, ZoneSettings};
//! use bellwether_core::catalogue::Catalogue;
//! use bellwether_rt::tasks::Tasks;
//! use tokio::sync::watch;
//!
//! # tokio_test().unwrap();
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn tokio_test() -> Result<(), Box<dyn std::error::Error>> {
//! let origin = Arc::new(ZoneOrigin::new(ZoneSettings::new("dc1".parse()?, "web-1".parse()?))?);
//! let zone = Zone { origin, catalogue: Catalogue::default(), serial: 1, stale_since: None };
//! // The holder of the sender publishes newer snapshots; queries use them at once.
//! let (_publish, zone) = watch::channel(Arc::new(zone));
//!
//! let tasks = Tasks::new();
//! let config = bellwether_dns::config::Config::on(["127.0.0.1:0".parse()?]);
//! let serving = bellwether_dns::serve::serve(config, zone, &tasks).await?;
//! assert_ne!(serving.addresses()[0].port(), 0);
//! assert_eq!(serving.counts().queries(), 0);
//! tasks.stop(std::time::Duration::from_secs(5)).await?;
//! # Ok(())
//! # }
//! ```

mod clients;
pub mod config;
mod connections;
pub mod counts;
mod forward;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod record_cache;
mod resolver;
pub mod serve;
pub mod settings;
mod tcp;
mod udp;
mod wire;
