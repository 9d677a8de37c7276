//! Calls of the API by people and programs.

use std::time::Duration;

use axum::body::Body;
use bellwether_core::words::random::RandomStream;
use http::{Request, header};
use serde_json::Value;

use crate::network::{CallEnds, CallLoss, Network};

/// The secret of the users' token.
pub const TOKEN: &str = "bwt_people";

/// How long a user waits for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Calls the servers of one installation with one token. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    network: Network,
    servers: usize,
}

impl Caller {
    pub(crate) fn new(network: &Network, servers: usize) -> Self {
        Self { network: network.clone(), servers }
    }

    /// Calls one server.
    pub(crate) async fn call(&self, server: usize, request: Request<Body>) -> Result<(u16, Value), CallLoss> {
        let (mut parts, body) = request.into_parts();
        let bearer = format!("Bearer {TOKEN}").parse().expect("a token of ours is a header");
        parts.headers.insert(header::AUTHORIZATION, bearer);
        let request = Request::from_parts(parts, body);
        let ends = CallEnds { caller: "people", server };
        let (status, body) = self.network.call(ends, request, PATIENCE).await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    /// Calls servers in turn until one answers. One that lost against others too often says so, and is asked again, as people do.
    pub(crate) async fn insist(
        &self,
        chance: &mut RandomStream,
        make: impl Fn() -> Request<Body>,
    ) -> (u16, Value) {
        loop {
            let server = self.any(chance);
            match self.call(server, make()).await {
                Ok((status, body)) if status < 500 && status != 412 => return (status, body),
                Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
            }
        }
    }

    /// A server, drawn by chance.
    pub(crate) fn any(&self, chance: &mut RandomStream) -> usize {
        let servers = u64::try_from(self.servers).unwrap_or(1);
        usize::try_from(chance.below(servers)).unwrap_or_default()
    }
}
