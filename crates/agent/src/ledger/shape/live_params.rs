//! `params.json`: the params that reach this node without a rollout.

use bellwether_api::v1::node_params::LiveParams;
use serde::{Deserialize, Serialize};

use super::envelope::{SCHEMA, known, parse, text};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ParamsFile {
    schema: u32,
    live: LiveParams,
}

/// Reads `params.json`.
pub(in crate::ledger) fn live_params(from: &str) -> Result<LiveParams, String> {
    let file: ParamsFile = parse(from)?;
    known(file.schema)?;
    Ok(file.live)
}

/// Writes `params.json`.
pub(in crate::ledger) fn live_params_text(live: &LiveParams) -> Result<String, String> {
    text(&ParamsFile { schema: SCHEMA, live: live.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_reads_back() {
        let kept = r#"{"schema":1,"live":{"tag":"7-ff","params":{"port":8081},"profiles":["fast"],
            "live":{"fast":{"revision":3,"params":{"workers":null}}}}}"#;
        let read = live_params(kept).unwrap();
        assert_eq!((read.params.len(), read.live["fast"].revision), (1, 3));
        assert_eq!(live_params(&live_params_text(&read).unwrap()).unwrap(), read);
        assert!(live_params(&kept.replace("\"schema\":1", "\"schema\":2")).is_err());
    }
}
