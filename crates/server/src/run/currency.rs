//! The tasks by which a server knows how current what it tells is.

use bellwether_rt::tasks::Tasks;

use crate::freshness::FreshnessSources;
use crate::http::AppState;

/// Starts to confirm the world, and to remember servers that lose their registration.
pub(super) fn start(app: &AppState, tasks: &Tasks) {
    let sources = FreshnessSources {
        store: app.records.store.clone(),
        transactor: app.records.transactor.clone(),
        relist: app.records.relist.clone(),
    };
    tasks.spawn("freshness", app.cluster.freshness.clone().follow(sources, tasks.token()));
    let (worlds, health) = (app.records.transactor.follow(), app.records.store.health());
    tasks.spawn("known servers", app.cluster.known.clone().follow(worlds, health, tasks.token()));
}
