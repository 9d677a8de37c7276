//! `handovers/PROBE.json`: a handover that has begun.

use bellwether_core::words::name::ProbeName;
use serde::{Deserialize, Serialize};

use super::envelope::{SCHEMA, known, parse, text};
use crate::ledger::entry::{FormerReplicas, HandoverEntry};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HandoverFile {
    schema: u32,
    probe: String,
    /// Older agents did not store it.
    #[serde(default)]
    next: String,
    replicas: FormerReplicas,
}

/// Reads a handover.
pub(in crate::ledger) fn handover(from: &str) -> Result<(ProbeName, HandoverEntry), String> {
    let file: HandoverFile = parse(from)?;
    known(file.schema)?;
    let probe = ProbeName::parse(&file.probe).map_err(|error| error.to_string())?;
    Ok((probe, HandoverEntry { next: file.next, replicas: file.replicas }))
}

/// Writes a handover.
pub(in crate::ledger) fn handover_text(
    probe: &ProbeName,
    handover: &HandoverEntry,
) -> Result<String, String> {
    let HandoverEntry { next, replicas } = handover.clone();
    text(&HandoverFile { schema: SCHEMA, probe: probe.to_string(), next, replicas })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_reads_back() {
        let sample = r#"{"schema":1,"probe":"db","replicas":{"10.0.0.3:6379":"10.0.0.1:6379"}}"#;
        let (probe, entry) = handover(sample).unwrap();
        assert_eq!((probe.as_str(), &*entry.replicas["10.0.0.3:6379"]), ("db", "10.0.0.1:6379"));
        assert_eq!(entry.next, "");
        let entry = HandoverEntry { next: "10.0.0.2:6379".to_owned(), ..entry };
        assert_eq!(handover(&handover_text(&probe, &entry).unwrap()), Ok((probe, entry)));
        for bad in [r#"{"schema":2,"probe":"db","replicas":{}}"#, &sample.replace("\"db\"", "\"\"")] {
            assert!(handover(bad).is_err(), "{bad}");
        }
    }
}
