//! `handovers/PROBE.json`: a handover that has begun.

use bellwether_core::words::name::ProbeName;
use serde::{Deserialize, Serialize};

use super::envelope::{SCHEMA, known, parse, text};
use crate::ledger::entry::FormerReplicas;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HandoverFile {
    schema: u32,
    probe: String,
    replicas: FormerReplicas,
}

/// Reads a handover.
pub(in crate::ledger) fn handover(from: &str) -> Result<(ProbeName, FormerReplicas), String> {
    let file: HandoverFile = parse(from)?;
    known(file.schema)?;
    let probe = ProbeName::parse(&file.probe).map_err(|error| error.to_string())?;
    Ok((probe, file.replicas))
}

/// Writes a handover.
pub(in crate::ledger) fn handover_text(
    probe: &ProbeName,
    replicas: &FormerReplicas,
) -> Result<String, String> {
    text(&HandoverFile { schema: SCHEMA, probe: probe.to_string(), replicas: replicas.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_reads_back() {
        let sample = r#"{"schema":1,"probe":"db","replicas":{"10.0.0.3:6379":"10.0.0.1:6379"}}"#;
        let (probe, replicas) = handover(sample).unwrap();
        assert_eq!((probe.as_str(), &*replicas["10.0.0.3:6379"]), ("db", "10.0.0.1:6379"));
        assert_eq!(handover(&handover_text(&probe, &replicas).unwrap()), Ok((probe, replicas)));
        for bad in [r#"{"schema":2,"probe":"db","replicas":{}}"#, &sample.replace("\"db\"", "\"\"")] {
            assert!(handover(bad).is_err(), "{bad}");
        }
    }
}
