//! `statuses.json`: what programs on this machine said of it.

use std::collections::BTreeMap;

use bellwether_api::v1::status::lifetime;
use bellwether_core::local::statuses::{LocalStatuses, StatusUpdate};
use bellwether_core::records::status::StatusState;
use bellwether_core::words::name::Category;
use bellwether_core::words::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::envelope::{SCHEMA, known, parse, text};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusesFile {
    schema: u32,
    statuses: BTreeMap<String, StatusShape>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusShape {
    state: String,
    reason: String,
    lifetime_ms: Option<u64>,
    at_ms: u64,
    update: u64,
}

/// Reads `statuses.json`.
pub(in crate::ledger) fn statuses(from: &str) -> Result<LocalStatuses, String> {
    let file: StatusesFile = parse(from)?;
    known(file.schema)?;
    let said = file.statuses.into_iter().map(|(name, said)| {
        let state = StatusState::parse(&said.state).ok_or_else(|| format!("{:?} is no state", said.state))?;
        let lifetime = said.lifetime_ms.map(lifetime).transpose().map_err(|error| error.to_string())?;
        let category = Category::parse(&name).map_err(|error| error.to_string())?;
        let (at, reason, update) = (Timestamp::from_millis(said.at_ms), said.reason, said.update);
        Ok((category, StatusUpdate { state, reason, lifetime, at, update }))
    });
    said.collect::<Result<_, String>>().map(LocalStatuses::new)
}

/// Writes `statuses.json`.
pub(in crate::ledger) fn statuses_text(statuses: &LocalStatuses) -> Result<String, String> {
    let shapes = statuses.iter().map(|(category, said)| {
        let shape = StatusShape {
            state: said.state.as_str().to_owned(),
            reason: said.reason.clone(),
            lifetime_ms: said.lifetime.map(Span::as_millis),
            at_ms: said.at.as_millis(),
            update: said.update,
        };
        (category.to_string(), shape)
    });
    text(&StatusesFile { schema: SCHEMA, statuses: shapes.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_that_is_written_reads_for_ever() {
        let kept = r#"{"schema":1,"statuses":{"backup":{"state":"failed","reason":"disk full","lifetime_ms":600000,
            "at_ms":1800000000000,"update":1800000000001},"scrub":{"state":"success","reason":"","lifetime_ms":null,
            "at_ms":5,"update":6}}}"#;
        let read = statuses(kept).unwrap();
        assert_eq!(read.iter().count(), 2);
        assert_eq!(statuses(&statuses_text(&read).unwrap()).unwrap(), read);
        assert!(statuses(&kept.replace("failed", "splendid")).is_err());
    }
}
