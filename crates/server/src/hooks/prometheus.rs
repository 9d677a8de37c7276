//! Prometheus as a monitor of rollouts: the query fails the rollout while it returns a sample other than zero.

use std::collections::BTreeMap;

use bellwether_core::rollout::hook_answer::HookAnswer;
use serde::Deserialize;
use serde_json::Value;

use super::exchange::HookReply;

/// The URL of an instant query.
pub(super) fn url(base: &str, query: &str) -> String {
    let mut url = format!("{}/api/v1/query?query=", base.trim_end_matches('/'));
    for byte in query.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

#[derive(Debug, Deserialize)]
struct QueryResponse {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<QueryData>,
}

#[derive(Debug, Deserialize)]
struct QueryData {
    #[serde(rename = "resultType")]
    kind: String,
    result: Value,
}

/// One sample: its labels, if any, and its time and value.
#[derive(Debug, Deserialize)]
struct Sample {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

/// The judgement in Prometheus' response.
pub(super) fn answer(reply: &HookReply) -> Result<HookAnswer, String> {
    let page: QueryResponse = match serde_json::from_slice(&reply.body) {
        Ok(page) => page,
        Err(_) if reply.status != 200 => return Err(reply.refusal()),
        Err(error) => return Err(format!("the response is not a Prometheus response: {error}")),
    };
    if page.status != "success" {
        return Err(format!("the query failed: {}", page.error));
    }
    let data = page.data.ok_or_else(|| "the answer has no \"data\"".to_owned())?;
    let garbled = |_: serde_json::Error| "the answer is not valid: expected samples".to_owned();
    let samples: Vec<Sample> = match data.kind.as_str() {
        "vector" => serde_json::from_value(data.result).map_err(garbled)?,
        "scalar" => {
            let value = serde_json::from_value(data.result).map_err(garbled)?;
            vec![Sample { metric: BTreeMap::new(), value }]
        }
        other => return Err(format!("the query returned a {other}; it must return a vector or a scalar")),
    };
    judged(&samples)
}

fn judged(samples: &[Sample]) -> Result<HookAnswer, String> {
    let mut unknown = None;
    for sample in samples {
        let (_, text) = &sample.value;
        let value: f64 =
            text.parse().map_err(|_| format!("the query returned {text:?}, which is not a number"))?;
        if value.is_nan() {
            unknown = unknown.or(Some(sample));
        } else if value != 0.0 {
            return Ok(HookAnswer::Watched { well: false, reason: format!("{} is {text}", labels(sample)) });
        }
    }
    match unknown {
        Some(sample) => Err(format!("the query returned NaN for {}", labels(sample))),
        None => Ok(HookAnswer::Watched { well: true, reason: String::new() }),
    }
}

/// A sample's labels as PromQL writes them.
fn labels(sample: &Sample) -> String {
    let name = sample.metric.get("__name__").map_or("", String::as_str);
    let others = sample.metric.iter().filter(|(key, _)| *key != "__name__");
    let pairs: Vec<String> = others.map(|(key, value)| format!("{key}={value:?}")).collect();
    match (name, pairs.is_empty()) {
        ("", true) => "the query".to_owned(),
        (name, true) => name.to_owned(),
        (name, false) => format!("{name}{{{}}}", pairs.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> Result<(bool, String), String> {
        let reply = HookReply { status, body: bytes::Bytes::from(body.to_owned()) };
        answer(&reply).map(|answer| match answer {
            HookAnswer::Watched { well, reason } => (well, reason),
            HookAnswer::Selected(_)
            | HookAnswer::Approved { .. }
            | HookAnswer::Judged(_)
            | HookAnswer::Removed(_)
            | HookAnswer::Silent { .. } => panic!("not a judgement"),
        })
    }

    fn vector(samples: &str) -> Result<(bool, String), String> {
        of(200, &format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{samples}]}}}}"#))
    }

    #[test]
    fn a_rollout_is_healthy_unless_a_sample_is_not_zero() {
        let sample = |value: &str| {
            format!(r#"{{"metric":{{"__name__":"errors","job":"web"}},"value":[1.5,"{value}"]}}"#)
        };
        let well = Ok((true, String::new()));
        assert_eq!(vector(""), well);
        assert_eq!(vector(&sample("0")), well);
        assert_eq!(vector(&sample("-0")), well);
        let failing = |value: &str| Ok((false, format!("errors{{job=\"web\"}} is {value}")));
        for value in ["1", "-1", "+Inf", "0.001"] {
            assert_eq!(vector(&format!("{},{}", sample("NaN"), sample(value))), failing(value));
        }
        assert_eq!(vector(&sample("NaN")).unwrap_err(), "the query returned NaN for errors{job=\"web\"}");
        let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[1.5,"2"]}}"#;
        assert_eq!(of(200, scalar), Ok((false, "the query is 2".to_owned())));
    }

    #[test]
    fn a_response_without_a_judgement_is_an_error() {
        let error = r#"{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}"#;
        assert_eq!(of(400, error).unwrap_err(), "the query failed: parse error: unexpected end");
        let said = "status 502; the first line of the answer is in the log of the server that leads";
        assert_eq!(of(502, "Bad Gateway\nmore").unwrap_err(), said);
        let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
        assert!(of(200, matrix).unwrap_err().contains("returned a matrix"));
        assert!(of(200, "<html>").unwrap_err().starts_with("the response is not a Prometheus response"));
    }

    #[test]
    fn a_query_is_written_into_the_address() {
        assert_eq!(
            url("http://p:9090/", "a{b=\"c\"} > 0"),
            "http://p:9090/api/v1/query?query=a%7Bb%3D%22c%22%7D%20%3E%200"
        );
    }
}
