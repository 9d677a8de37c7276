//! The time of a starting server: that of the others, and never before the newest event.

use bellwether_core::records::key::global::GlobalRecord;
use bellwether_core::words::name::ServerName;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_store::{Range, Store, StoreError};
use futures_util::future::join_all;

use super::judge::apart;
use super::peers::{Measured, PeerAddress, PeerTimes, measure};
use crate::records::encoding;
use crate::records::key_text::{self, KeyLocation};

/// How often another server is asked while its answers come too late.
const TRIES: u32 = 4;

/// Smallest difference that is logged.
const WORTH_TELLING: Span = Span::from_secs(2);

/// Sets the clock to the median time of the other live servers, if any answers.
///
/// # Errors
/// [`StoreError`] when the servers cannot be listed.
pub async fn agree(
    store: &Store,
    me: &ServerName,
    clock: &Clock,
    peers: &dyn PeerTimes,
) -> Result<(), StoreError> {
    let others = others(store, me).await?;
    let asked = join_all(others.iter().map(|peer| measure_well(clock, peers, peer))).await;
    let mut differences: Vec<i64> = asked.into_iter().flatten().map(|measured| measured.ahead_ms).collect();
    differences.sort_unstable();
    let Some(middle) = differences.get(differences.len() / 2).copied() else { return Ok(()) };
    if middle.unsigned_abs() >= WORTH_TELLING.as_millis() {
        tracing::warn!(
            "the system clock is {} the control plane's time, which is used instead; correct the system clock",
            apart(middle.saturating_neg())
        );
    }
    clock.set(Timestamp::from_millis(clock.now().as_millis().saturating_add_signed(middle)));
    Ok(())
}

/// Measures another server, again if the answer came so late that the time could be wrong by more than servers may differ.
async fn measure_well(clock: &Clock, peers: &dyn PeerTimes, peer: &PeerAddress) -> Option<Measured> {
    let mut best: Option<Measured> = None;
    for _ in 0..TRIES {
        let Some(measured) = measure(clock, peers, peer).await else { break };
        best = best.filter(|best| best.error_ms <= measured.error_ms).or(Some(measured));
        if measured.is_fine() {
            break;
        }
    }
    best
}

/// Sets the clock forward if the newest event is later.
pub fn not_behind(world: &World, clock: &Clock) {
    let newest = world.fleets.values().filter_map(|fleet| fleet.events.last());
    let newest = newest.map(|(_, event)| event.time).max();
    if let Some(time) = newest.filter(|time| *time > clock.now()) {
        let ahead = time.since(clock.now());
        tracing::warn!(%ahead, "the system clock is behind the newest event; continuing from the time of that event");
        clock.set(time);
    }
}

/// The other live servers.
pub(super) async fn others(store: &Store, me: &ServerName) -> Result<Vec<PeerAddress>, StoreError> {
    let page = store.list(Range::prefix(key_text::SERVERS), None, 64).await?;
    let server = |key: &[u8], value: &[u8]| {
        let Some(KeyLocation::Global(key)) = key_text::read(key) else { return None };
        match encoding::read_global(&key, value) {
            Ok(GlobalRecord::Server(server)) => Some(server),
            Ok(_) | Err(_) => None,
        }
    };
    let all = page.entries.iter().filter_map(|entry| server(&entry.key, &entry.value));
    let all = all.filter(|server| server.name != *me);
    Ok(all.map(|server| PeerAddress { name: server.name, address: server.address }).collect())
}
