//! DNS over UDP and TCP, answered from a snapshot of the catalogue.
//!
//! Which names there are and what they have is decided in [`bellwether_core::dns`]; here are bytes, sockets and limits,
//! and nothing is ever decided about the fleet. Reading order: [`serve`], [`config`], [`counts`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use bellwether_core::answer::zone::{Origin, Settings, Zone};
//! use bellwether_core::catalogue::Catalogue;
//! use bellwether_rt::tasks::Tasks;
//! use tokio::sync::watch;
//!
//! # tokio_test().unwrap();
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn tokio_test() -> Result<(), Box<dyn std::error::Error>> {
//! let origin = Arc::new(Origin::new(Settings::new("dc1".parse()?, "web-1".parse()?))?);
//! let zone = Zone { origin, catalogue: Catalogue::default(), serial: 1, stale_since: None };
//! // Whoever holds the sender publishes each newer picture; queries see it at once.
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

pub mod config;
pub mod counts;
mod forward;
mod record_cache;
mod resolver;
pub mod serve;
pub mod settings;
mod tcp;
mod udp;
mod wire;
