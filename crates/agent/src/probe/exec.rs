//! A data store that a command asks: its answer is the JSON of a data store on its standard output.

use std::time::Duration;

use bellwether_api::v1;
use bellwether_core::records::probes::{DataStore, MAX_REASON_BYTES};

use super::answer::{MAX_ANSWER_BYTES, ProbeError, failing};
use crate::apply::CommandFacts;
use crate::apply::exec::{CommandExit, answer};
use crate::apply::output::one_line;
use crate::config::recipe::Command;

/// Runs the command, killing its group at its end or at the limit.
pub(super) async fn ask(command: &Command, facts: &CommandFacts, limit: Duration) -> DataStore {
    let (ended, written) = answer(command, facts, limit, MAX_ANSWER_BYTES).await;
    let wrong = |reason: String| failing("", &ProbeError::Unknown(reason));
    let last = ended.tail.lines().next_back().unwrap_or_default();
    match ended.exit {
        CommandExit::Success => {}
        exit @ (CommandExit::NotYet
        | CommandExit::Code(_)
        | CommandExit::Signal(_)
        | CommandExit::TimedOut(_)
        | CommandExit::NotStarted(_)) => {
            return wrong(if last.is_empty() { exit.to_string() } else { format!("{exit}: {last}") });
        }
    }
    let Some(written) = written else {
        return wrong(format!("its answer has more than {MAX_ANSWER_BYTES} bytes"));
    };
    match read(&written) {
        Ok(store) => store,
        Err(reason) => wrong(format!("its answer is not that of a probe: {reason}")),
    }
}

fn read(written: &[u8]) -> Result<DataStore, String> {
    let shape: v1::probes::DataStore = serde_json::from_slice(written).map_err(|error| error.to_string())?;
    let mut store = DataStore::from(shape);
    store.reason = one_line(&store.reason, MAX_REASON_BYTES);
    Ok(store)
}
