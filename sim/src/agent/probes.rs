//! What a simulated agent tells of the data store on its machine.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_api::paths::{self, fill};
use bellwether_api::v1::probes::NodeProbes;
use bellwether_core::local::delay;
use bellwether_core::local::report_numbers::ReportNumbers;
use bellwether_core::records::probes::DataStore;
use bellwether_rt::clock::Clock;
use tokio::sync::watch;
use tokio::time::Instant;

use super::link::{AgentConnection, DEADLINE};
use crate::requests::json;
use crate::stores::{PROBE, TrueStores};

/// Interval of probes.
const EVERY: Duration = Duration::from_secs(1);

/// Interval at which what did not change is told again, as a real agent does.
const REPEAT: Duration = Duration::from_secs(60);

/// Probes the store and tells what it sees, until dropped.
pub(super) async fn probes(
    line: AgentConnection,
    stores: TrueStores,
    asked: watch::Sender<u64>,
    clock: Clock,
    seed: u64,
) {
    let mut numbers = ReportNumbers::new(clock.now(), 0);
    let mut asks = asked.subscribe();
    let (mut seen, mut told, mut failed) = (None::<DataStore>, None::<(DataStore, Instant)>, 0_u32);
    loop {
        let Some(found) = stores.probe(&line.node.name, seen.as_ref()) else { return };
        seen = Some(found.clone());
        let wanted = asks.has_changed().unwrap_or(false);
        asks.mark_unchanged();
        let is_told = told.as_ref().is_some_and(|(told, at)| *told == found && at.elapsed() < REPEAT);
        if is_told && !wanted {
            tokio::time::sleep(EVERY).await;
            continue;
        }
        let probes = NodeProbes {
            node: line.node.name.to_string(),
            received_at_ms: 0,
            sequence: numbers.next(&found),
            stores: BTreeMap::from([(PROBE.to_owned(), (&found).into())]),
        };
        let path = fill(paths::NODE_PROBES, &["default", line.node.name.as_str()]);
        match line.ask(json("PUT", &path, &probes), DEADLINE).await {
            Ok((200..300, _)) => {
                numbers.delivered();
                (told, failed) = (Some((found, Instant::now())), 0);
            }
            answer => {
                if matches!(answer, Ok((409, _))) {
                    numbers.overtaken();
                }
                (told, failed) = (None, failed.saturating_add(1));
                tokio::time::sleep(delay::before_call(failed, seed).to_duration()).await;
            }
        }
    }
}
