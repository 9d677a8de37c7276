//! A clock that is believed, before anything is made or served by it.

use bellwether_rt::clock::Clock;
use bellwether_rt::tasks::Tasks;

use super::error::RunError;
use super::store::open_store;
use crate::authorities::trusted_file;
use crate::config::Config;
use crate::timing::last_time::LastTime;
use crate::timing::peers::HttpPeers;
use crate::world::WorldError;

/// Waits while the system clock is doubtful. Nothing listens meanwhile: whoever asks is refused at once, and can ask another server.
pub(super) async fn of(config: &Config, clock: &Clock) -> Result<LastTime, RunError> {
    let last = LastTime::of(config);
    if last.doubt(config, clock.wall(), None).is_none() {
        return Ok(last);
    }
    let trusted = trusted_file(&config.data_dir);
    let ca = std::fs::read_to_string(&trusted).map_err(|source| RunError::File { path: trusted, source })?;
    let tasks = Tasks::new();
    let store = open_store(config, &tasks).await?;
    let waited = last.believed(config, &store, (clock, &HttpPeers::trusting(ca))).await;
    store.close().await;
    tasks.cancel();
    waited.map_err(WorldError::Store)?;
    Ok(last)
}
