//! Metrics of the agent in the Prometheus format: what its local status says, for machines.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use bellwether_core::records::member::MemberState;
use bellwether_core::records::registrations::CheckStatus;
use bellwether_core::records::report::TargetActivity;
use bellwether_core::records::status::StatusState;
use bellwether_core::words::time::{Span, Timestamp};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use crate::service::process_starts::ProcessStarts;
use crate::service::{InstanceKey, PublishedInstance};
use crate::status::{self, StatusSources};

/// What an agent may be doing about an entity.
const ACTIVITIES: [&str; 4] = ["nothing", "applying", "waiting", "failed"];

/// How the checks of an entity may stand.
const HEALTHS: [&str; 3] = ["no_checks", "healthy", "failing"];

/// How the checks of a service instance may stand.
const CHECKS: [&str; 3] = ["passing", "warning", "failing"];

/// What is shown. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct MetricSources {
    /// The sources of the local status.
    pub(crate) status: StatusSources,
    /// The service instances of this node.
    pub(crate) services: watch::Receiver<BTreeMap<InstanceKey, PublishedInstance>>,
    /// Starts of supervised processes.
    pub(crate) starts: ProcessStarts,
}

/// Labels of what is known of this program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

/// Labels of what is counted by state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

/// All metrics in the OpenMetrics text format.
pub(crate) fn page(sources: &MetricSources, now: Timestamp) -> String {
    let mut registry = Registry::with_prefix("bellwether");
    let build: Family<Build, Gauge> = Family::default();
    build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);
    registry.register("build_info", "1, with the version of this program", build);
    let own = registry.sub_registry_with_prefix("agent");
    show_contact(own, &sources.status, now);
    show_state(own, &sources.status);
    show_counts(own, sources);
    let help = "Starts of the supervised process of an entity since this agent started";
    own.register("process_starts", help, sources.starts.counters());
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => text,
        Err(error) => format!("# cannot encode the metrics: {error}\n"),
    }
}

/// Registers whether a server is reached, and how long ago one answered.
fn show_contact(registry: &mut Registry, status: &StatusSources, now: Timestamp) {
    let contact = status.contact.borrow().clone();
    let help = "1 while a server answers this agent";
    show(registry, "server_reached", help, usize::from(contact.connected_since.is_some()));
    if let Some(last) = contact.last_contact {
        let age: Gauge<f64, AtomicU64> = Gauge::default();
        age.set(seconds(now.since(last)));
        let help = "Seconds since a server answered this agent last: so old may its order be";
        registry.register("last_contact_seconds", help, age);
    }
    let help = "1 while the order that came last is refused; the one before it stays in force";
    show(registry, "order_refused", help, usize::from(contact.refused.is_some()));
}

/// Registers what is one state of the agent.
fn show_state(registry: &mut Registry, status: &StatusSources) {
    let (generation, is_paused) = status
        .orders
        .borrow()
        .as_ref()
        .map_or((0, false), |order| (order.generation.get(), order.content.paused.is_some()));
    let generation = usize::try_from(generation).unwrap_or(usize::MAX);
    show(registry, "order_generation", "Generation of the order in force; 0 without one", generation);
    show(registry, "paused", "1 while a person paused this node", usize::from(is_paused));
    let help = "0 while the start of a step cannot be recorded, so that none begins";
    let is_writable = status.board.borrow().unrecorded.is_empty();
    show(registry, "ledger_writable", help, usize::from(is_writable));
    let help = "1 while the configuration that was read last is refused";
    let is_refused = status.config.borrow().refused.is_some();
    show(registry, "configuration_refused", help, usize::from(is_refused));
}

/// Registers what is counted by state. Every state of an entity and of an instance has a value, so that an alert tells none from unknown.
fn show_counts(registry: &mut Registry, sources: &MetricSources) {
    let board = sources.status.board.borrow();
    let activities = board.entities.values().map(|account| activity(&account.activity));
    let help = "Entities of this node, runs of workflows too, by what the agent does about them";
    show_by_state(registry, "entities", help, counted(ACTIVITIES, activities));
    let healths = board.entities.values().map(status::health);
    let help = "Entities of this node, runs of workflows too, by the state of their checks";
    show_by_state(registry, "entity_health", help, counted(HEALTHS, healths));
    let files = board.files.values().map(|file| StatusState::as_str(file.state));
    show_by_state(registry, "files", "Files from the catalogue, by state", counted([], files));
    drop(board);
    let services = sources.services.borrow();
    let checks = services.values().map(|instance| check(&instance.serving));
    let help = "Service instances of this node, by the state of their checks";
    show_by_state(registry, "service_instances", help, counted(CHECKS, checks));
    drop(services);
    let members = sources.status.members.borrow();
    let states = members.values().map(|member| MemberState::as_str(member.state));
    show_by_state(registry, "members", "Members of ensembles of this node, by state", counted([], states));
}

fn counted<const N: usize>(
    known: [&'static str; N],
    found: impl Iterator<Item = &'static str>,
) -> BTreeMap<&'static str, usize> {
    let mut counts: BTreeMap<&'static str, usize> = known.into_iter().map(|state| (state, 0)).collect();
    for state in found {
        *counts.entry(state).or_default() += 1;
    }
    counts
}

fn show_by_state(registry: &mut Registry, name: &str, help: &str, counts: BTreeMap<&'static str, usize>) {
    let gauges: Family<InState, Gauge> = Family::default();
    for (state, count) in counts {
        gauges.get_or_create(&InState { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register(name, help, gauges);
}

fn show(registry: &mut Registry, name: &str, help: &str, value: usize) {
    let gauge: Gauge = Gauge::default();
    gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
    registry.register(name, help, gauge);
}

fn seconds(span: Span) -> f64 {
    u32::try_from(span.as_millis()).map_or(f64::from(u32::MAX), f64::from) / 1_000.0
}

const fn activity(activity: &TargetActivity) -> &'static str {
    match activity {
        TargetActivity::Nothing => "nothing",
        TargetActivity::Applying { .. } => "applying",
        TargetActivity::Waiting { .. } => "waiting",
        TargetActivity::Failed { .. } => "failed",
    }
}

const fn check(status: &CheckStatus) -> &'static str {
    match status {
        CheckStatus::Passing => "passing",
        CheckStatus::Warning { .. } => "warning",
        CheckStatus::Failing { .. } => "failing",
    }
}
