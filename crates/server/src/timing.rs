//! One time for all servers: a starting server adopts the time of the others, and time never goes back behind the newest
//! event. Without this, a new leader with a different clock would end soaks early or extend deadlines.

use std::time::Duration;

use bellwether_api::client::{Access, Client, Identity};
use bellwether_core::records::key::GlobalRecord;
use bellwether_core::words::name::ServerName;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;
use bellwether_rt::clock::Clock;
use bellwether_store::{Range, Store, StoreError};
use futures_util::future::join_all;

use crate::records::encoding;
use crate::records::key_text::{self, KeyLocation};

/// Longest silence on an agent's connection. Agents ping every 6 s: one ping may be lost and the next one late. Together with
/// the time that a node may be silent it is below the 30 s within which a cut connection is to be found.
pub(crate) const SILENCE_LIMIT: Span = Span::from_secs(14);

/// Longest wait for the other servers: a failed server keeps its membership for a few seconds.
const WITHIN: Duration = Duration::from_secs(2);

/// Smallest difference that is logged.
const WORTH_TELLING: Span = Span::from_secs(2);

/// The clock, set to the median time of the other live servers; unchanged if none answers.
///
/// # Errors
/// [`StoreError`] when the servers cannot be listed.
pub async fn agreed(store: &Store, me: &ServerName, clock: Clock, ca_pem: &str) -> Result<Clock, StoreError> {
    let addresses = others(store, me).await?;
    let asked = join_all(addresses.iter().map(|address| difference(address, ca_pem, &clock))).await;
    let mut differences: Vec<i64> = asked.into_iter().flatten().collect();
    differences.sort_unstable();
    let Some(middle) = differences.get(differences.len() / 2).copied() else { return Ok(clock) };
    if middle.unsigned_abs() >= WORTH_TELLING.as_millis() {
        tracing::warn!(
            behind_ms = middle,
            "the system clock differs from the control plane's time, which is used instead; correct the system clock"
        );
    }
    Ok(clock.set_to(by(clock.now(), middle)))
}

/// The clock, set forward if the newest event is later.
#[must_use]
pub fn not_behind(world: &World, clock: Clock) -> Clock {
    let newest = world.fleets.values().filter_map(|fleet| fleet.events.last());
    let newest = newest.map(|(_, event)| event.time).max();
    match newest.filter(|time| *time > clock.now()) {
        Some(time) => {
            let ahead = time.since(clock.now());
            tracing::warn!(%ahead, "the system clock is behind the newest event; continuing from the time of that event");
            clock.set_to(time)
        }
        None => clock,
    }
}

/// Addresses of the other live servers.
async fn others(store: &Store, me: &ServerName) -> Result<Vec<String>, StoreError> {
    let page = store.list(Range::prefix(key_text::SERVERS), None, 64).await?;
    let server = |key: &[u8], value: &[u8]| {
        let Some(KeyLocation::Global(key)) = key_text::read(key) else { return None };
        match encoding::read_global(&key, value) {
            Ok(GlobalRecord::Server(server)) => Some(server),
            Ok(_) | Err(_) => None,
        }
    };
    let all = page.entries.iter().filter_map(|entry| server(&entry.key, &entry.value));
    Ok(all.filter(|server| server.name != *me).map(|server| server.address).collect())
}

/// Milliseconds by which another server's clock is ahead of this one; none if it does not answer.
async fn difference(address: &str, ca_pem: &str, clock: &Clock) -> Option<i64> {
    let access =
        Access { server: address.to_owned(), ca: Some(ca_pem.to_owned()), identity: Identity::Nobody };
    let client = Client::new(&access).ok()?;
    let asked = clock.now();
    let there = client.time(WITHIN).await.ok()?.now_ms;
    // The other clock was read about halfway through the call.
    let here = asked.as_millis().midpoint(clock.now().as_millis());
    Some(i64::try_from(there).ok()? - i64::try_from(here).ok()?)
}

fn by(at: Timestamp, millis: i64) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_add_signed(millis))
}
