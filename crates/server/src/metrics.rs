//! What is counted and shown at /metrics.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use bellwether_core::records::hook_answers::HookPurpose;
use bellwether_core::words::map::Set;
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_store::{Condition, Health};

use crate::http::RefusedRequests;

/// Counters that other parts increment. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// HTTP requests answered.
    pub requests: Counter,
    /// HTTP requests answered with a server error.
    pub errors: Counter,
    /// Reports absorbed.
    pub reports: Counter,
    /// Times that everything was read anew.
    pub lists: Counter,
    /// Reconcile passes.
    pub passes: Counter,
    /// Requests that were told to come again, as too many were under way.
    pub refused: Family<RefusedRequests, Counter>,
    /// Answers of hooks, and failures to answer.
    pub hook_calls: Family<HookCall, Counter>,
}

/// Which hook was asked, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct HookCall {
    hook: &'static str,
    result: &'static str,
}

impl HookCall {
    /// A call of that hook which was `answered`, or came to `trouble`.
    #[must_use]
    pub const fn of(asked: HookPurpose, result: &'static str) -> Self {
        Self { hook: asked.as_str(), result }
    }
}

/// What is true of this server right now.
#[derive(Debug, Clone)]
pub struct ServerGauges {
    /// Agents connected to it.
    pub sessions: usize,
    /// Whether it leads.
    pub leading: bool,
    /// How its store is.
    pub store: Health,
}

/// The page that Prometheus reads.
#[must_use]
pub fn page(metrics: &Metrics, world: &World, now: &ServerGauges) -> String {
    let mut registry = Registry::with_prefix("bellwether");
    registry.register("http_requests", "HTTP requests answered", metrics.requests.clone());
    registry.register("http_errors", "HTTP requests answered with a server error", metrics.errors.clone());
    registry.register("reports", "Reports absorbed", metrics.reports.clone());
    let lists = metrics.lists.clone();
    registry.register("world_lists", "Times everything was read anew from the store, after the start", lists);
    registry.register("reconcile_passes", "Reconcile passes", metrics.passes.clone());
    let refused = metrics.refused.clone();
    registry.register("requests_refused", "Requests told to come again, by the lane that was full", refused);
    let calls = metrics.hook_calls.clone();
    registry.register("hook_calls", "Calls of rollouts' hooks, by hook and result", calls);
    let mut show = |name: &str, help: &str, value: usize| {
        let gauge: Gauge = Gauge::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    };
    let fleets = || world.fleets.values();
    let present = |fleet: &Fleet| fleet.held.values().map(Set::size).sum::<usize>();
    show("sessions", "Agents connected to this server", now.sessions);
    show("leading", "1 while this server leads", usize::from(now.leading));
    show("servers", "Servers that have their place", world.servers.size());
    let writable = matches!(now.store.condition, Condition::Writable);
    show("store_writable", "1 while the store takes writes", usize::from(writable));
    for (name, help, bytes) in [
        ("store_size_bytes", "Bytes of the store on disk, history included", now.store.size_bytes),
        ("store_quota_bytes", "Bytes that the store may grow to", now.store.quota_bytes),
    ] {
        if let Some(bytes) = bytes {
            show(name, help, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }
    show("nodes", "Nodes, decommissioned ones included", fleets().map(|fleet| fleet.nodes.size()).sum());
    show("nodes_present", "Nodes that are up or suspect", fleets().map(present).sum());
    show("entities", "Entities", fleets().map(|fleet| fleet.entities.size()).sum());
    let active =
        |fleet: &Fleet| fleet.progresses.values().filter(|kept| kept.value.active().is_some()).count();
    show("rollouts_active", "Rollouts under way", fleets().map(active).sum());
    show(
        "orders_stale",
        "Nodes whose order is about to change",
        fleets().map(|f| f.stale_orders.size()).sum(),
    );
    let revision = usize::try_from(world.revision.get()).unwrap_or(usize::MAX);
    show("store_revision", "Revision of the store this server has seen", revision);
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => text,
        Err(error) => format!("# could not write the metrics: {error}\n"),
    }
}
