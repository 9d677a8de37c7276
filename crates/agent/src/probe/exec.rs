//! A data store that a command asks: its answer is the JSON of a data store on its standard output.

use std::time::Duration;

use bellwether_api::v1;
use bellwether_core::records::probes::{DataStore, MAX_REASON_BYTES};

use super::answer::{MAX_ANSWER_BYTES, ProbeError, failing};
use crate::apply::CommandFacts;
use crate::apply::answer::answer;
use crate::apply::output::one_line;
use crate::config::recipe::Command;

/// Runs the command; all that it started is killed at its end or at the limit.
pub(super) async fn ask(command: &Command, facts: &CommandFacts, limit: Duration) -> DataStore {
    let read = answer(command, facts, limit, MAX_ANSWER_BYTES).await.and_then(|written| {
        read(&written).map_err(|reason| format!("its answer is not that of a probe: {reason}"))
    });
    read.unwrap_or_else(|reason| failing("", &ProbeError::Unknown(reason)))
}

pub(super) fn read(written: &[u8]) -> Result<DataStore, String> {
    let shape: v1::probes::DataStore = serde_json::from_slice(written).map_err(|error| error.to_string())?;
    let mut store = DataStore::from(shape);
    store.reason = one_line(&store.reason, MAX_REASON_BYTES);
    Ok(store)
}
