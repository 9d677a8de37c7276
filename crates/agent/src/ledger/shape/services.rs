//! `services.json`: what programs on this machine registered.

use bellwether_api::v1::service::definition::ServiceDefinition;
use serde::{Deserialize, Serialize};

use super::envelope::{SCHEMA, known, parse, text};
use crate::ledger::entry::RegisteredService;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServicesFile {
    schema: u32,
    services: Vec<RegisteredShape>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegisteredShape {
    definition: ServiceDefinition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
}

/// Reads `services.json`.
pub(in crate::ledger) fn services(from: &str) -> Result<Vec<RegisteredService>, String> {
    let file: ServicesFile = parse(from)?;
    known(file.schema)?;
    let read = |RegisteredShape { definition, pid }| RegisteredService { definition, pid };
    Ok(file.services.into_iter().map(read).collect())
}

/// Writes `services.json`.
pub(in crate::ledger) fn services_text(services: &[RegisteredService]) -> Result<String, String> {
    let shape =
        |kept: &RegisteredService| RegisteredShape { definition: kept.definition.clone(), pid: kept.pid };
    text(&ServicesFile { schema: SCHEMA, services: services.iter().map(shape).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ever_written_is_read_for_ever() {
        let sample = r#"{"schema":1,"services":[{"definition":{"name":"web","id":"web-1","port":80,"tags":["a"],
            "check":[{"name":"ttl","ttl":"30s"}]},"pid":7},{"definition":{"name":"db"}}]}"#;
        let read = services(sample).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(services(&services_text(&read).unwrap()).unwrap(), read);
        assert!(services(r#"{"schema":2,"services":[]}"#).is_err());
    }
}
