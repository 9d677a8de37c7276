//! The tasks of a server that decide.

use bellwether_core::rollout::environment::Watch;
use bellwether_rt::tasks::Tasks;
use tokio::sync::watch;

use crate::config::Config;
use crate::discovery::context::DiscoveryContext;
use crate::hooks::HookCaller;
use crate::http::AppState;
use crate::leader_tasks::LeaderTasks;
use crate::presences::Presences;
use crate::reactor::Reactor;
use crate::reconcile::Reconciler;
use crate::scheduler::Scheduler;
use crate::secrets::reencrypt::Reencryption;
use crate::sinks::context::SinkContext;

/// Starts the tasks of the leader: presences, the reconcile loop, hooks, schedules, reactions, sinks, lists of members, secrets.
pub(super) fn start(config: &Config, app: &AppState, watches: watch::Sender<Watch>, tasks: &Tasks) {
    let presences = Presences {
        transactor: app.records.transactor.clone(),
        sessions: app.traffic.sessions.clone(),
        name: app.identity.name.clone(),
        membership: app.cluster.membership.clone(),
        leadership: app.cluster.leadership.clone(),
        limits: config.settings.limits,
    };
    tasks.spawn("presences", presences.run(tasks.token()));
    let reactor = Reactor {
        transactor: app.records.transactor.clone(),
        relist: app.records.relist.clone(),
        leadership: app.cluster.leadership.clone(),
        watches: watches.subscribe(),
    };
    tasks.spawn("reactions", reactor.run(tasks.token()));
    let reconciler = Reconciler {
        transactor: app.records.transactor.clone(),
        relist: app.records.relist.clone(),
        leadership: app.cluster.leadership.clone(),
        settings: config.settings,
        watches,
        metrics: app.traffic.metrics.clone(),
        failures: app.cluster.failures.clone(),
    };
    tasks.spawn("reconcile", reconciler.run(tasks.token()));
    let hooks = HookCaller {
        transactor: app.records.transactor.clone(),
        relist: app.records.relist.clone(),
        leadership: app.cluster.leadership.clone(),
        tasks: tasks.clone(),
        settings: app.hooks.clone(),
        metrics: app.traffic.metrics.clone(),
    };
    tasks.spawn("hooks", hooks.run(tasks.token()));
    let scheduler = Scheduler {
        transactor: app.records.transactor.clone(),
        relist: app.records.relist.clone(),
        leadership: app.cluster.leadership.clone(),
    };
    tasks.spawn("schedules", scheduler.run(tasks.token()));
    let context = SinkContext {
        transactor: app.records.transactor.clone(),
        store: app.records.store.clone(),
        leadership: app.cluster.leadership.clone(),
        settings: app.sinks.clone(),
        providers: app.providers.clone(),
        installation: app.identity.installation.id.clone(),
    };
    let sinks = LeaderTasks { context, relist: app.records.relist.clone(), tasks: tasks.clone() };
    tasks.spawn("sinks", sinks.run(tasks.token()));
    let discovery = discovery(app, tasks);
    tasks.spawn("discoveries", discovery.run(tasks.token()));
    let secrets = Reencryption {
        transactor: app.records.transactor.clone(),
        leadership: app.cluster.leadership.clone(),
    };
    tasks.spawn("secrets", secrets.run(tasks.token()));
}

fn discovery(app: &AppState, tasks: &Tasks) -> LeaderTasks<DiscoveryContext> {
    let context = DiscoveryContext {
        transactor: app.records.transactor.clone(),
        leadership: app.cluster.leadership.clone(),
        settings: app.discovery.clone(),
    };
    LeaderTasks { context, relist: app.records.relist.clone(), tasks: tasks.clone() }
}
