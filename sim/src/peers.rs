//! How simulated servers ask each other for their time: over the simulated network.

use std::time::Duration;

use bellwether_api::paths;
use bellwether_api::v1::server::ServerTime;
use bellwether_core::words::time::Timestamp;
use bellwether_rt::tasks::BoxFuture;
use bellwether_server::timing::peers::{PeerAddress, PeerReading, PeerTimes};

use crate::network::{CallEnds, Network};
use crate::requests::bare;

/// Longest wait for an answer.
const WITHIN: Duration = Duration::from_secs(2);

/// What a server asks others by.
#[derive(Debug)]
pub(crate) struct SimulatedPeers {
    pub(crate) network: Network,
    /// The name of the asking server.
    pub(crate) name: String,
}

impl PeerTimes for SimulatedPeers {
    fn ask<'a>(&'a self, peer: &'a PeerAddress) -> BoxFuture<'a, Option<PeerReading>> {
        Box::pin(async move {
            let server = peer.name.as_str().rsplit('-').next()?.parse().ok()?;
            let ends = CallEnds { caller: &self.name, server };
            let answer = self.network.call(ends, bare("GET", paths::TIME), WITHIN).await;
            let (_, body) = answer.ok()?;
            let time: ServerTime = serde_json::from_slice(&body).ok()?;
            Some(PeerReading {
                now: Timestamp::from_millis(time.now_ms),
                wall: Timestamp::from_millis(time.wall_ms.unwrap_or(time.now_ms)),
                takes_part: time.takes_part,
            })
        })
    }
}
