//! A data store, by its node and its probe.

use bellwether_api::v1::probes::DataStore;

use crate::context::Context;
use crate::exit::{Exit, Failure};

/// The data store `NODE/PROBE`, as its node reported it last.
pub(super) async fn find(context: &Context, asked: &str) -> Result<DataStore, Failure> {
    let (node, probe) = asked
        .split_once('/')
        .ok_or_else(|| Failure::usage(format!("find store/{asked}")).hint("write store/NODE/PROBE"))?;
    let probes = context.client.node(&context.namespace, node).await?.probes;
    let mut stores = probes.map(|probes| probes.stores).unwrap_or_default();
    stores.remove(probe).ok_or_else(|| {
        let known: Vec<_> = stores.into_keys().collect();
        let known = match known.is_empty() {
            true => "it has none".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        Failure::new(Exit::No, format!("find data store {probe} on node {node}: {known}"))
            .hint(format!("bellwether node get {node}"))
    })
}
