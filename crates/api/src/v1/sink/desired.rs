//! What a sink is to be, read from requests.

use std::collections::BTreeMap;

use bellwether_core::records::sink as core;
use bellwether_core::words::filter::Filter;
use bellwether_core::words::time::Span;

use super::{DesiredSink, SinkFileSpec, SinkSpec, WebhookSpec};
use crate::list::tables::EVENTS;
use crate::shape::{ShapeError, one_line, read, read_some, reason};
use crate::web_address::{path_below, web_url};

/// Names of headers that a sink sends itself, or that belong to the connection.
const RESERVED_HEADERS: [&str; 12] = [
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl SinkSpec {
    /// What the sink is to be.
    ///
    /// # Errors
    /// [`ShapeError`] naming the field.
    pub fn desired(&self) -> Result<DesiredSink, ShapeError> {
        let target = match (&self.webhook, &self.file) {
            (Some(webhook), None) => core::SinkTarget::Webhook(webhook.read()?),
            (None, Some(file)) => core::SinkTarget::File(file.read()?),
            (Some(_), Some(_)) => {
                return Err(ShapeError::at("file", "a sink has a webhook or a file, not both"));
            }
            (None, None) => return Err(ShapeError::at("webhook", "missing; a sink has a webhook or a file")),
        };
        let filter = self.filter.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let filter = filter.map_or(Ok(Filter::all()), |text| Filter::parse(text, &EVENTS));
        Ok(DesiredSink {
            target,
            filter: filter.map_err(|error| ShapeError::misread("filter", &error))?,
            disabled: self.disabled,
            reason: reason(&self.reason)?,
        })
    }
}

impl WebhookSpec {
    fn read(&self) -> Result<core::Webhook, ShapeError> {
        let secrets = self.secrets.iter().map(|name| read("webhook.secrets", name));
        let secrets = secrets.collect::<Result<Vec<_>, _>>()?;
        if secrets.len() > core::MAX_SIGNING_SECRETS {
            let reason = format!("{} secrets; at most {}", secrets.len(), core::MAX_SIGNING_SECRETS);
            return Err(ShapeError::at("webhook.secrets", reason));
        }
        if let [first, second] = secrets.as_slice()
            && first == second
        {
            return Err(ShapeError::at("webhook.secrets", "the same secret twice"));
        }
        let span = |field: &str, text: &Option<String>, default: Span, (least, most): (Span, Span)| {
            let span = read_some(field, text.as_deref())?.unwrap_or(default);
            let wrong = || ShapeError::at(field, format!("{span}; write {least} to {most}"));
            if span < least || span > most { Err(wrong()) } else { Ok(span) }
        };
        let attempts = self.attempts.unwrap_or(core::DEFAULT_ATTEMPTS);
        if !(1..=core::MAX_ATTEMPTS).contains(&attempts) {
            let reason = format!("{attempts}; write 1 to {}", core::MAX_ATTEMPTS);
            return Err(ShapeError::at("webhook.attempts", reason));
        }
        let (timeouts, ages) =
            ((core::MIN_TIMEOUT, core::MAX_TIMEOUT), (core::SHORTEST_MAX_AGE, core::LONGEST_MAX_AGE));
        Ok(core::Webhook {
            url: web_url("webhook.url", &self.url)?,
            secrets,
            headers: headers(&self.headers)?,
            timeout: span("webhook.timeout", &self.timeout, core::DEFAULT_TIMEOUT, timeouts)?,
            attempts,
            max_age: span("webhook.max_age", &self.max_age, core::DEFAULT_MAX_AGE, ages)?,
        })
    }
}

impl SinkFileSpec {
    fn read(&self) -> Result<core::SinkFile, ShapeError> {
        let max_bytes = self.max_bytes.unwrap_or(core::DEFAULT_FILE_BYTES);
        if !(core::MIN_FILE_BYTES..=core::MAX_FILE_BYTES).contains(&max_bytes) {
            let reason = format!("{max_bytes}; write {} to {}", core::MIN_FILE_BYTES, core::MAX_FILE_BYTES);
            return Err(ShapeError::at("file.max_bytes", reason));
        }
        let keep = self.keep.unwrap_or(core::DEFAULT_KEEP);
        if keep > core::MAX_KEEP {
            return Err(ShapeError::at("file.keep", format!("{keep}; at most {}", core::MAX_KEEP)));
        }
        Ok(core::SinkFile { path: path_below("file.path", &self.path)?, max_bytes, keep })
    }
}

/// The headers of a webhook, by their names in lower case.
fn headers(from: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ShapeError> {
    let place = "webhook.headers";
    if from.len() > core::MAX_HEADERS {
        return Err(ShapeError::at(place, format!("{} headers; at most {}", from.len(), core::MAX_HEADERS)));
    }
    let mut headers = BTreeMap::new();
    for (name, value) in from {
        let at = |reason: &str| ShapeError::at(&format!("{place}.{name}"), reason);
        let known: http::HeaderName = name.parse().map_err(|_| at("not a name of a header"))?;
        let lower = known.as_str().to_owned();
        if RESERVED_HEADERS.contains(&lower.as_str()) || lower.starts_with("webhook-") {
            return Err(at("it is not for a sink to set; sign the requests with a secret instead"));
        }
        if http::HeaderValue::from_str(value).is_err() || !value.is_ascii() {
            return Err(at("not a value of a header: visible ASCII characters"));
        }
        let value = one_line(&format!("{place}.{name}"), value, core::MAX_HEADER_BYTES)?;
        if headers.insert(lower, value).is_some() {
            return Err(at("the same name twice"));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(spec: &str) -> String {
        let spec: SinkSpec = serde_json::from_str(spec).unwrap();
        spec.desired().unwrap_err().to_string()
    }

    #[test]
    fn what_a_sink_cannot_be_is_refused_with_its_field() {
        for (spec, said) in [
            (r#"{}"#, "webhook: missing"),
            (r#"{"webhook": {"url": "http://a"}, "file": {"path": "a"}}"#, "not both"),
            (r#"{"webhook": {"url": "ftp://a"}}"#, "is not http://"),
            (r#"{"webhook": {"url": "/events"}}"#, "is not http://"),
            (r#"{"webhook": {"url": "http://kim:secret@a"}}"#, "a user in it"),
            (r#"{"webhook": {"url": "http://a/#b"}}"#, "fragment"),
            (r#"{"webhook": {"url": "http://a", "secrets": ["a", "b", "c"]}}"#, "at most 2"),
            (r#"{"webhook": {"url": "http://a", "secrets": ["a", "a"]}}"#, "twice"),
            (r#"{"webhook": {"url": "http://a", "headers": {"Authorization": "a"}}}"#, "not for a sink"),
            (r#"{"webhook": {"url": "http://a", "headers": {"Webhook-Id": "a"}}}"#, "not for a sink"),
            (r#"{"webhook": {"url": "http://a", "headers": {"X": "a\nb"}}}"#, "value of a header"),
            (r#"{"webhook": {"url": "http://a", "timeout": "2m"}}"#, "write 100ms to"),
            (r#"{"webhook": {"url": "http://a", "attempts": 0}}"#, "write 1 to"),
            (r#"{"webhook": {"url": "http://a"}, "filter": "kin = x"}"#, "filter"),
            (r#"{"file": {"path": "/etc/passwd"}}"#, "without a leading /"),
            (r#"{"file": {"path": "a/../../b"}}"#, "begins with no dot"),
            (r#"{"file": {"path": "a//b"}}"#, "begins with no dot"),
            (r#"{"file": {"path": ""}}"#, "1 to 255"),
            (r#"{"file": {"path": "a", "max_bytes": 1}}"#, "file.max_bytes"),
            (r#"{"file": {"path": "a", "keep": 101}}"#, "file.keep"),
        ] {
            let refusal = refusal(spec);
            assert!(refusal.contains(said), "{spec}: {refusal}");
        }
    }
}
