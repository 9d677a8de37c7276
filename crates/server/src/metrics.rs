//! Metrics in the Prometheus format, as served at `/metrics`.

pub(crate) mod durations;
mod ensembles;
mod fleet;
mod orchestration;

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use bellwether_core::decide::table::DECIDERS;
use bellwether_core::records::hook_answers::HookPurpose;
use bellwether_core::words::map::Set;
use bellwether_core::words::time::{Span, Timestamp};
use bellwether_core::world::World;
use bellwether_core::world::fleet::Fleet;
use bellwether_store::{Condition, Health};

use self::durations::{Durations, RequestDurations};
use crate::timing::judge::Standing;
use crate::timing::keeper::ClockTable;

/// What a caller may show who is not known.
pub(crate) const CREDENTIALS: [&str; 3] = ["token", "certificate", "join_token"];

/// Why a connection may be closed.
pub(crate) const CLOSED_FOR: [&str; 5] = ["refused", "evicted", "idle", "not-taken", "silent"];

/// Counters, shared by the tasks that increment them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// HTTP responses.
    pub requests: Counter,
    /// HTTP responses with a status of 500 or above.
    pub errors: Counter,
    /// Durations of requests that are answered at once, by class.
    pub request_seconds: RequestDurations,
    /// Reports that were processed.
    pub reports: Counter,
    /// Times that the whole world was read again from the store.
    pub lists: Counter,
    /// Durations of transactions of the store.
    pub commit_seconds: Durations,
    /// Records that were written or deleted, as the watch of the store told.
    pub changes: Counter,
    /// Reconcile passes.
    pub passes: Counter,
    /// Durations of reconcile passes, in seconds.
    pub pass_seconds: Durations,
    /// Passes of deciders whose verdict could not be committed.
    pub decider_failures: Family<DeciderPass, Counter>,
    /// Requests refused because too many of their class were in flight.
    pub refused: Family<RefusedRequests, Counter>,
    /// Connections that this server closed.
    pub closed: Family<ClosedConnections, Counter>,
    /// Authentications that failed.
    pub unauthenticated: Family<ShownCredential, Counter>,
    /// Changes and requests of nodes refused by their quotas.
    pub limited: Counter,
    /// Completed hook calls.
    pub hook_calls: Family<HookCall, Counter>,
}

/// Labels of what is known of this program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

/// Registers which program this is.
fn show_build(registry: &mut Registry) {
    let build: Family<Build, Gauge> = Family::default();
    build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);
    registry.register("build_info", "1, with the version of this server", build);
}

/// Labels of the counter of failed deciders.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DeciderPass {
    pub(crate) decider: &'static str,
    pub(crate) namespace: String,
}

/// Labels of the counter of refused requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RefusedRequests {
    pub(crate) class: &'static str,
}

/// Labels of the counter of failed authentications.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ShownCredential {
    /// One of [`CREDENTIALS`].
    pub(crate) credential: &'static str,
}

/// Labels of the counter of closed connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ClosedConnections {
    /// One of [`CLOSED_FOR`].
    pub(crate) reason: &'static str,
}

/// Labels of the counter of hook calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct HookCall {
    hook: &'static str,
    result: &'static str,
}

impl HookCall {
    pub(crate) const ANSWERED: &str = "answered";
    pub(crate) const FAILED: &str = "failed";

    /// The labels for this hook and result.
    #[must_use]
    pub const fn of(asked: HookPurpose, result: &'static str) -> Self {
        Self { hook: asked.as_str(), result }
    }
}

/// Values that are read when the page is requested.
#[derive(Debug, Clone)]
pub struct ServerGauges {
    /// Agents with a session on this server.
    pub sessions: usize,
    /// Whether this server leads.
    pub leading: bool,
    /// Health of the store.
    pub store: Health,
    /// Whether the audit log can be written.
    pub audits: bool,
    /// The clocks of all servers.
    pub clocks: ClockTable,
    /// The time since the world was last known to be current.
    pub age: Span,
    /// The time of the control plane.
    pub time: Timestamp,
}

/// Labels of the gauge of clocks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClockOf {
    server: String,
}

/// Registers by how much the system clock of each server is apart from the control plane's time.
fn show_clocks(registry: &mut Registry, clocks: &ClockTable) {
    let skews: Family<ClockOf, Gauge<f64, AtomicU64>> = Family::default();
    for (name, clock) in &clocks.servers {
        let seconds =
            i32::try_from(clock.skew_ms).map_or(f64::from(i32::MAX).copysign(-1.0), f64::from) / 1_000.0;
        skews.get_or_create(&ClockOf { server: name.to_string() }).set(seconds);
    }
    let help =
        "Seconds by which a server's system clock is ahead of most system clocks, as this one measured";
    registry.register("clock_skew_seconds", help, skews);
}

/// Gives every counter a value whose labels are known before there is anything to count: an alert on an increase does not see the first one
/// otherwise.
fn begin_at_zero(metrics: &Metrics, world: &World) {
    for credential in CREDENTIALS {
        drop(metrics.unauthenticated.get_or_create(&ShownCredential { credential }));
    }
    for reason in CLOSED_FOR {
        drop(metrics.closed.get_or_create(&ClosedConnections { reason }));
    }
    for asked in HookPurpose::ALL {
        for result in [HookCall::ANSWERED, HookCall::FAILED] {
            drop(metrics.hook_calls.get_or_create(&HookCall::of(asked, result)));
        }
    }
    for (namespace, _) in world.fleets.iter() {
        for decider in &DECIDERS {
            let at = DeciderPass { decider: decider.name, namespace: namespace.to_string() };
            drop(metrics.decider_failures.get_or_create(&at));
        }
    }
}

/// Registers what is counted as it happens.
fn show_counters(registry: &mut Registry, metrics: &Metrics) {
    registry.register("http_requests", "HTTP responses", metrics.requests.clone());
    registry.register("http_errors", "HTTP responses with a status of 500 or above", metrics.errors.clone());
    let durations = metrics.request_seconds.0.clone();
    let text = "Durations in seconds of requests that are answered at once, from their arrival, by class";
    registry.register("http_request_seconds", text, durations);
    let durations = metrics.commit_seconds.0.clone();
    registry.register(
        "store_commit_seconds",
        "Durations in seconds of transactions of this server",
        durations,
    );
    registry.register("reports", "Reports of agents processed", metrics.reports.clone());
    let lists = metrics.lists.clone();
    registry.register(
        "world_relists",
        "Times that all records were read again from the store after the start",
        lists,
    );
    let changes = metrics.changes.clone();
    registry.register(
        "store_changes",
        "Records written or deleted by any server, as this one was told",
        changes,
    );
    registry.register("reconcile_passes", "Reconcile passes", metrics.passes.clone());
    let durations = metrics.pass_seconds.0.clone();
    registry.register("reconcile_pass_seconds", "Durations of reconcile passes in seconds", durations);
    let (failures, refused) = (metrics.decider_failures.clone(), metrics.refused.clone());
    registry.register("decider_failures", "Verdicts that the leader could not commit", failures);
    let text = "Requests refused because too many of their class were in flight";
    registry.register("requests_refused", text, refused);
    let text = "Authentications that failed, by what was shown";
    registry.register("authentication_failures", text, metrics.unauthenticated.clone());
    let text = "Changes and requests of nodes refused because the node had used its quota";
    registry.register("node_quota_refused", text, metrics.limited.clone());
    let text = "Connections that the server closed, by reason";
    registry.register("connections_closed", text, metrics.closed.clone());
    let calls = metrics.hook_calls.clone();
    registry.register("hook_calls", "Hook calls of rollouts, by hook and result", calls);
}

/// All metrics in the OpenMetrics text format.
#[must_use]
pub fn page(metrics: &Metrics, world: &World, now: &ServerGauges) -> String {
    let mut registry = Registry::with_prefix("bellwether");
    begin_at_zero(metrics, world);
    show_counters(&mut registry, metrics);
    show_clocks(&mut registry, &now.clocks);
    orchestration::show(&mut registry, world);
    fleet::show(&mut registry, world, now.time);
    ensembles::show(&mut registry, world);
    show_build(&mut registry);
    let age: Gauge<f64, AtomicU64> = Gauge::default();
    age.set(u32::try_from(now.age.as_millis()).map_or(f64::from(u32::MAX), f64::from) / 1_000.0);
    let help = "Seconds since this server last knew that it has everything that was committed";
    registry.register("world_age_seconds", help, age);
    let mut show = |name: &str, help: &str, value: usize| {
        let gauge: Gauge = Gauge::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    };
    let fleets = || world.fleets.values();
    let present = |fleet: &Fleet| fleet.held.values().map(Set::size).sum::<usize>();
    show("sessions", "Agents with a session on this server", now.sessions);
    show("is_leader", "1 while this server leads", usize::from(now.leading));
    let takes_part = now.clocks.standing == Standing::TakesPart;
    show(
        "takes_part",
        "1 while this server's time is right, so that it may lead and give locks",
        usize::from(takes_part),
    );
    show("servers", "Live servers", world.servers.size());
    let writable = matches!(now.store.condition, Condition::Writable);
    show("store_writable", "1 while the store accepts writes", usize::from(writable));
    show("audit_writable", "1 while the audit log can be written", usize::from(now.audits));
    for (name, help, bytes) in [
        ("store_size_bytes", "Size of the store on disk, history included", now.store.size_bytes),
        ("store_quota_bytes", "Largest size of the store", now.store.quota_bytes),
    ] {
        if let Some(bytes) = bytes {
            show(name, help, usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }
    show("nodes", "Nodes, including decommissioned ones", fleets().map(|fleet| fleet.nodes.size()).sum());
    show("nodes_present", "Nodes that are up or suspect", fleets().map(present).sum());
    show("entities", "Entities", fleets().map(|fleet| fleet.entities.size()).sum());
    let active =
        |fleet: &Fleet| fleet.progresses.values().filter(|kept| kept.value.active().is_some()).count();
    show("rollouts_active", "Active rollouts", fleets().map(active).sum());
    show("orders_stale", "Nodes whose order is out of date", fleets().map(|f| f.stale_orders.size()).sum());
    let revision = usize::try_from(world.revision.get()).unwrap_or(usize::MAX);
    show("store_revision", "Revision of the world on this server", revision);
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => text,
        Err(error) => format!("# cannot encode the metrics: {error}\n"),
    }
}
