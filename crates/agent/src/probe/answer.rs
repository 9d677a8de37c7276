//! What a probe found: a data store, or why it is not up.

use std::path::Path;

use bellwether_core::records::probes::{DataStore, MAX_REASON_BYTES, StoreFacts, StoreState};
use bellwether_core::words::time::Timestamp;

use crate::apply::output::one_line;
use crate::config::data_store::Login;

/// Most bytes of an answer that are read: the largest that fits the limits of a report is smaller.
pub(super) const MAX_ANSWER_BYTES: usize = 1_048_576;

/// Why a data store is not up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProbeError {
    /// It does not work, as is known from a refused connection or from what it says.
    #[error("{0}")]
    Down(String),
    /// It broke off: it ends at this moment, or something before it does that.
    #[error("{0}")]
    Broken(String),
    /// What it said, or did not say, tells nothing of its state.
    #[error("{0}")]
    Unknown(String),
}

/// A store that answered.
pub(super) fn up(facts: StoreFacts) -> DataStore {
    DataStore { state: StoreState::Up, since: Timestamp::from_millis(0), reason: String::new(), facts }
}

/// A store that is not up.
pub(super) fn failing(software: &str, error: &ProbeError) -> DataStore {
    let state = match error {
        ProbeError::Down(_) => StoreState::Down,
        ProbeError::Broken(_) | ProbeError::Unknown(_) => StoreState::Unknown,
    };
    let facts = StoreFacts { software: software.to_owned(), ..StoreFacts::default() };
    DataStore {
        state,
        since: Timestamp::from_millis(0),
        reason: one_line(&error.to_string(), MAX_REASON_BYTES),
        facts,
    }
}

/// The password of a login.
pub(super) async fn password(login: &Login) -> Result<Option<String>, ProbeError> {
    let Some(path) = &login.password_file else { return Ok(None) };
    read(path).await.map(|text| Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// The text of a file.
pub(super) async fn read(path: &Path) -> Result<String, ProbeError> {
    let failed = |error| ProbeError::Unknown(format!("cannot read {}: {error}", path.display()));
    tokio::fs::read_to_string(path).await.map_err(failed)
}
