//! The rules of Bellwether: the stored records, the decisions that follow from them, and the reasons for
//! each.
//!
//! Reading order, lowest layer first: [`words`], [`records`] with [`access`], [`catalogue`] and [`dns`],
//! [`rollout`], [`world`], [`decide`] with [`verdict`], [`trial`]; [`local`] is the agent's side. A module imports
//! only from its own layer and lower ones. The crate is `no_std` and reads no clock, file, socket or random
//! source: the time and seeds are arguments.
//!
//! # The rollout engine as a library
//!
//! [`trial::engine::RolloutEngine`] rolls versions out to a fleet kept in memory, without a server.
//!
//! ```
//! use bellwether_core::records::policy::{Policy, PolicyDraft};
//! use bellwether_core::trial::engine::{RolloutEngine, TargetReport};
//! use bellwether_core::records::annotation::Annotation;
//! use bellwether_core::words::time::{Span, Timestamp};
//!
//! let (mut engine, namespace, entity) = (RolloutEngine::new(), "production".parse()?, "app-service".parse()?);
//! let minute = |n| Timestamp::EPOCH.plus(Span::from_secs(60 * n));
//! let alice = |n| Annotation::of("alice".parse().unwrap(), minute(n));
//!
//! // Two at a time; healthy for a minute counts as success.
//! let policy = PolicyDraft { batch: "2".parse().ok(), soak: "60s".parse().ok(), ..PolicyDraft::default() };
//! engine.set_policy(&namespace, &entity, &Policy::new(policy)?, minute(0))?;
//!
//! // A controller reports the version of each target, is given the version to run, and applies it. v3 is broken.
//! let mut fleet: Vec<TargetReport> = (1..=4)
//!     .map(|n| TargetReport {
//!         target: format!("host-{n}").parse().unwrap(),
//!         running: "v1".parse().ok(),
//!         error: None,
//!         assignment: None,
//!     })
//!     .collect();
//! let mut orchestrate = |engine: &mut RolloutEngine, minutes: core::ops::Range<u64>| {
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
//! // All run v1 already: it is good after the soak. A good version is rolled out in two batches.
//! engine.set_target_version(&namespace, &entity, "v1".parse()?, alice(0))?;
//! assert_eq!(orchestrate(&mut engine, 0..2).0.last_known_good, "v1".parse().ok());
//! engine.set_target_version(&namespace, &entity, "v2".parse()?, alice(2))?;
//! assert_eq!(orchestrate(&mut engine, 2..3).1, "v2 v2 v1 v1");
//! assert_eq!(orchestrate(&mut engine, 3..8).0.last_known_good, "v2".parse().ok());
//!
//! // A bad one stops after the first batch and is rolled back.
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
