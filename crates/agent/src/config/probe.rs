//! One check as written, for an entity or for a service: what it probes, how often, and how many results change its verdict.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bellwether_core::local::health::Hysteresis;
use bellwether_core::words::time::Span;

use super::command::{CommandDefaults, command};
use super::error::{DefinitionError, parse, wrong};
use super::recipe::{CheckRecipe, DEFAULT_CHECK_TIMEOUT, DEFAULT_INTERVAL, Probe};

/// Results in a row that `fall` and `rise` may ask for.
const RESULTS: std::ops::RangeInclusive<u32> = 1..=100;

/// The fields of a check that is probed by the agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckFields<'a> {
    pub(super) exec: Option<&'a [String]>,
    pub(super) warning_exit: Option<i32>,
    pub(super) http: Option<&'a str>,
    pub(super) status: Option<u16>,
    pub(super) tcp: Option<&'a str>,
    pub(super) interval: Option<&'a str>,
    pub(super) timeout: Option<&'a str>,
    pub(super) fall: Option<u32>,
    pub(super) rise: Option<u32>,
    /// The kinds of check that may be written here, for error messages.
    pub(super) kinds: &'static str,
}

impl CheckFields<'_> {
    /// The check; commands run with `defaults`.
    ///
    /// # Errors
    /// [`DefinitionError`] whose field is relative to the check, and empty for the check itself.
    pub(super) fn recipe(&self, defaults: &CommandDefaults) -> Result<CheckRecipe, DefinitionError> {
        let probe = self.probe(defaults)?;
        let probe = probe.ok_or_else(|| wrong("", format!("name one of {}", self.kinds)))?;
        let limits = Hysteresis::default();
        let hysteresis =
            Hysteresis { fall: self.fall.unwrap_or(limits.fall), rise: self.rise.unwrap_or(limits.rise) };
        for (field, number) in [("fall", hysteresis.fall), ("rise", hysteresis.rise)] {
            if !RESULTS.contains(&number) {
                return Err(wrong(field, format!("{number} is not from 1 to 100")));
            }
        }
        Ok(CheckRecipe {
            probe,
            interval: span("interval", self.interval, DEFAULT_INTERVAL)?,
            timeout: span("timeout", self.timeout, DEFAULT_CHECK_TIMEOUT)?,
            hysteresis,
        })
    }

    /// What is probed; `None` if the check names nothing.
    ///
    /// # Errors
    /// As [`CheckFields::recipe`].
    pub(super) fn probe(&self, defaults: &CommandDefaults) -> Result<Option<Probe>, DefinitionError> {
        if self.status.is_some() && self.http.is_none() {
            return Err(wrong("status", "only an http check has a status"));
        }
        if self.status.is_some_and(|status| !(100..600).contains(&status)) {
            return Err(wrong("status", "not from 100 to 599"));
        }
        if self.warning_exit.is_some() && self.exec.is_none() {
            return Err(wrong("warning_exit", "only an exec check has an exit code"));
        }
        if self.warning_exit.is_some_and(|code| !(1..256).contains(&code)) {
            return Err(wrong("warning_exit", "not from 1 to 255"));
        }
        match (self.exec, self.http, self.tcp) {
            (Some(argv), None, None) => {
                let command = command(argv, defaults).map_err(|reason| wrong("exec", reason))?;
                Ok(Some(Probe::Exec { command, warning: self.warning_exit }))
            }
            (None, Some(url), None) => {
                http(url, self.status).map(Some).map_err(|reason| wrong("http", reason))
            }
            (None, None, Some(address)) => {
                let authority = authority(address).map_err(|reason| wrong("tcp", reason))?;
                Ok(Some(Probe::Tcp { authority }))
            }
            (None, None, None) => Ok(None),
            (_, _, _) => Err(wrong("", format!("name only one of {}", self.kinds))),
        }
    }
}

/// The defaults of commands that belong to no entity.
pub(super) fn no_defaults() -> CommandDefaults {
    CommandDefaults { workdir: PathBuf::from("/"), env: BTreeMap::new() }
}

/// A length of time, longer than zero.
pub(super) fn span(field: &str, text: Option<&str>, default: Span) -> Result<Span, DefinitionError> {
    let span = text.map_or(Ok(default), |text| parse(field, text))?;
    if span == Span::ZERO { Err(wrong(field, "must be longer than zero")) } else { Ok(span) }
}

/// The probe of an HTTP URL; `status` is the one that passes, any success if `None`.
fn http(url: &str, status: Option<u16>) -> Result<Probe, String> {
    let uri: http::Uri = url.parse().map_err(|error| format!("{url:?} is not a valid URL: {error}"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => {
            return Err(
                "an http check probes a service on this machine without TLS; for https use an exec check \
                        with a program that knows which certificate to trust"
                    .to_owned(),
            );
        }
        Some(_) | None => return Err(format!("{url:?} does not begin with http://")),
    }
    let host = uri.host().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| format!("{url:?} names no host"))?;
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
    Ok(Probe::Http { authority: format!("{host}:{}", uri.port_u16().unwrap_or(80)), path, status })
}

/// A text that is `host:port`.
fn authority(text: &str) -> Result<String, String> {
    let parsed = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let port = parsed.and_then(|(_, port)| port.parse::<u16>().ok());
    match port {
        Some(port) if port > 0 => Ok(text.to_owned()),
        Some(_) | None => Err(format!("{text:?} is not host:port")),
    }
}
