//! `needs.json`: which needs of services were met.

use bellwether_core::catalogue::need::Need;
use bellwether_core::words::name::{InstanceName, ServiceName};
use serde::{Deserialize, Serialize};

use super::envelope::{SCHEMA, known, parse, text};
use crate::ledger::entry::MetNeeds;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NeedsFile {
    schema: u32,
    met: Vec<MetShape>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MetShape {
    service: String,
    id: String,
    needs: Vec<String>,
}

/// Reads `needs.json`.
pub(in crate::ledger) fn met(from: &str) -> Result<MetNeeds, String> {
    let file: NeedsFile = parse(from)?;
    known(file.schema)?;
    let read = |MetShape { service, id, needs }: MetShape| {
        let service = ServiceName::parse(&service).map_err(|error| error.to_string())?;
        let id = InstanceName::parse(&id).map_err(|error| error.to_string())?;
        let needs = needs.iter().map(|need| need.parse::<Need>()).collect::<Result<_, _>>()?;
        Ok(((service, id), needs))
    };
    file.met.into_iter().map(read).collect()
}

/// Writes `needs.json`.
pub(in crate::ledger) fn met_text(met: &MetNeeds) -> Result<String, String> {
    let shape = |((service, id), needs): (&(ServiceName, InstanceName), &Vec<Need>)| MetShape {
        service: service.to_string(),
        id: id.to_string(),
        needs: needs.iter().map(ToString::to_string).collect(),
    };
    text(&NeedsFile { schema: SCHEMA, met: met.iter().map(shape).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ever_written_is_read_for_ever() {
        let sample = r#"{"schema":1,"met":[{"service":"web","id":"web-1","needs":["2 functional of db","1 addressable of lb"]}]}"#;
        let read = met(sample).unwrap();
        assert_eq!(read.values().next().unwrap().len(), 2);
        assert_eq!(met(&met_text(&read).unwrap()).unwrap(), read);
        for bad in
            [r#"{"schema":2,"met":[]}"#, &sample.replace("2 functional", "0"), &sample.replace("web-1", "")]
        {
            assert!(met(bad).is_err(), "{bad}");
        }
    }
}
