//! The task that tells in an event what the store left out at the end of its journal when it was opened.

use bellwether_rt::tasks::Tasks;

use crate::http::AppState;
use crate::ops;

/// Records it, if there is anything to record. If that fails, the log and the health of the store still have it.
pub(super) fn start(app: &AppState, tasks: &Tasks) {
    let cut = app.records.store.health().borrow().cut.as_ref().and_then(|cut| cut.now);
    let Some(cut) = cut else { return };
    let app = app.clone();
    tasks.spawn("dropped tail", async move {
        let recorded = ops::server::tail_dropped(&app.records.transactor, &app.identity.name, cut);
        if let Err(error) = recorded.await {
            tracing::warn!(%error, "cannot record what was left out at the end of the journal");
        }
    });
}
