//! Bellwether's thinking: what is remembered, what follows from it, and why.
//!
//! Reading order: [`words`], [`records`], [`rollout`], [`decide`], [`catalogue`], [`world`], [`local`],
//! [`dns`], [`access`]. Nothing here reads a clock, a file, a socket or a random source; `now` and seeds come as
//! arguments, and the crate is `no_std`, so the compiler holds that wall.
//!
//! # The rollout engine as a library
//!
//! No server is needed to roll something out: [`trial::engine::Engine`] keeps a fleet in memory.
//!
//! ```
//! use bellwether_core::records::policy::{Draft, Policy};
//! use bellwether_core::trial::engine::{Engine, Report};
//! use bellwether_core::rollout::operate::Intent;
//! use bellwether_core::words::time::{Span, Timestamp};
//!
//! let (mut engine, namespace, entity) = (Engine::new(), "production".parse()?, "app-service".parse()?);
//! let minute = |n| Timestamp::EPOCH.plus(Span::from_secs(60 * n));
//! let alice = |n| Intent::of("alice".parse().unwrap(), minute(n));
//!
//! // Two at a time; healthy for a minute counts as success.
//! let policy = Draft { batch: "2".parse().ok(), soak: "60s".parse().ok(), ..Draft::default() };
//! engine.set_policy(&namespace, &entity, Policy::new(policy)?, minute(0));
//!
//! // A controller reports what its targets run, is told what each is to run, and sees to it. v3 is broken.
//! let mut fleet: Vec<Report> = (1..=4)
//!     .map(|n| Report { target: format!("host-{n}").parse().unwrap(), running: "v1".parse().ok(), error: None })
//!     .collect();
//! let mut orchestrate = |engine: &mut Engine, minutes: core::ops::Range<u64>| {
//!     for n in minutes {
//!         let expected = engine.orchestrate(&namespace, &entity, &fleet, minute(n));
//!         for (report, (_, version)) in fleet.iter_mut().zip(expected) {
//!             report.running = version.or(report.running.take());
//!             let broken = report.running == "v3".parse().ok();
//!             report.error = broken.then(|| "exit code 1".into());
//!         }
//!     }
//!     let runs: Vec<String> = fleet.iter().flat_map(|r| &r.running).map(|v| v.to_string()).collect();
//!     (engine.progress(&namespace, &entity).cloned().unwrap(), runs.join(" "))
//! };
//!
//! // All run v1 already: it is good after the soak. A good version goes out in two batches.
//! engine.set_target_version(&namespace, &entity, "v1".parse()?, alice(0))?;
//! assert_eq!(orchestrate(&mut engine, 0..2).0.last_known_good, "v1".parse().ok());
//! engine.set_target_version(&namespace, &entity, "v2".parse()?, alice(2))?;
//! assert_eq!(orchestrate(&mut engine, 2..3).1, "v2 v2 v1 v1");
//! assert_eq!(orchestrate(&mut engine, 3..8).0.last_known_good, "v2".parse().ok());
//!
//! // A bad one stops after the first batch and is taken back.
//! engine.set_target_version(&namespace, &entity, "v3".parse()?, alice(8))?;
//! assert_eq!(orchestrate(&mut engine, 8..9).1, "v3 v3 v2 v2");
//! let (progress, runs) = orchestrate(&mut engine, 9..12);
//! assert_eq!((progress.last_known_good, runs), ("v2".parse().ok(), "v2 v2 v2 v2".into()));
//! assert_eq!(progress.bad[0].reason, "2 of 4 failed, 0 tolerated; host-1: exit code 1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod access;
pub mod catalogue;
pub mod decide;
pub mod dns;
pub mod local;
pub mod records;
pub mod rollout;
pub mod trial;
pub mod verdict;
pub mod words;
pub mod world;
