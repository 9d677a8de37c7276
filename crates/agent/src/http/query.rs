//! The query of a request. A parameter that would change the answer and is not supported is refused, never ignored.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use bellwether_core::words::name::{Datacentre, Tag};
use bellwether_core::words::time::Span;
use http::request::Parts;

use super::refusal::ConsulRefusal;

/// Default and longest wait of a blocking query, as in Consul.
const WAIT: Duration = Duration::from_secs(5 * 60);
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 60);

/// Parameters of every read. `stale` and `cached` are always true, and `pretty`, `token` and `near` have no effect.
const EVERYWHERE: [&str; 8] = ["dc", "index", "wait", "stale", "cached", "pretty", "token", "near"];

/// The parameters of a request.
#[derive(Debug)]
pub(super) struct ConsulQuery(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for ConsulQuery {
    type Rejection = ConsulRefusal;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ConsulRefusal> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let pairs =
            pairs.map_err(|error| ConsulRefusal::Invalid(format!("cannot read the query: {error}")))?;
        Ok(Self(pairs.0))
    }
}

impl ConsulQuery {
    /// Refuses every parameter that is neither in `known` nor one of every read.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), ConsulRefusal> {
        let served = |name: &str| known.contains(&name) || EVERYWHERE.contains(&name);
        let unknown = self.0.iter().find(|(name, _)| !served(name));
        unknown.map_or(Ok(()), |(name, _)| {
            Err(ConsulRefusal::Invalid(format!(
                "cannot answer: the parameter {name:?} is not supported by this agent"
            )))
        })
    }

    /// Refuses another datacentre.
    pub(super) fn here(&self, datacentre: &Datacentre) -> Result<(), ConsulRefusal> {
        match self.first("dc") {
            Some(named) if !named.is_empty() && !named.eq_ignore_ascii_case(datacentre.as_str()) => {
                Err(ConsulRefusal::OtherDatacentre(named.to_owned()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The index of a blocking query; `None` for an answer at once.
    pub(super) fn index(&self) -> Result<Option<u64>, ConsulRefusal> {
        Ok(self.read("index")?.filter(|index| *index > 0))
    }

    /// How long a blocking query waits, plus up to a sixteenth, so that clients do not all return at once.
    pub(super) fn wait(&self, seed: u64) -> Result<Duration, ConsulRefusal> {
        let wait = self.read::<Span>("wait")?.map_or(WAIT, Span::to_duration);
        let wait = if wait.is_zero() { WAIT } else { wait.min(LONGEST_WAIT) };
        let most = u64::try_from(wait.as_millis()).unwrap_or_default() / 16;
        Ok(wait + Duration::from_millis(seed.checked_rem(most).unwrap_or_default()))
    }

    /// The requested tags; an instance must have all of them.
    pub(super) fn tags(&self) -> Result<Vec<Tag>, ConsulRefusal> {
        let named = self.0.iter().filter(|(name, _)| name == "tag");
        named.map(|(_, value)| value.parse().map_err(|error| refuse("tag", error))).collect()
    }

    /// Whether a flag is set; a flag without a value is.
    pub(super) fn switch(&self, name: &str) -> Result<bool, ConsulRefusal> {
        match self.first(name) {
            None => Ok(false),
            Some("" | "1" | "t" | "T" | "true" | "True" | "TRUE") => Ok(true),
            Some("0" | "f" | "F" | "false" | "False" | "FALSE") => Ok(false),
            Some(other) => Err(refuse(name, format!("{other:?} is not true or false"))),
        }
    }

    /// The value of a parameter, if it is there and not empty.
    pub(super) fn read<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, ConsulRefusal> {
        let text = self.first(name).filter(|text| !text.is_empty());
        text.map(|text| text.parse().map_err(|error| refuse(name, error))).transpose()
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

fn refuse(name: &str, reason: impl Display) -> ConsulRefusal {
    ConsulRefusal::Invalid(format!("cannot use the parameter {name}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> ConsulQuery {
        ConsulQuery(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_wait_is_consuls_default_and_at_most_ten_minutes_and_a_sixteenth_longer() {
        let wait = |text: &str, seed| query(&[("wait", text)]).wait(seed).unwrap().as_secs();
        assert_eq!(query(&[]).wait(0).unwrap(), WAIT);
        assert_eq!((wait("60000ms", 0), wait("1m", 0), wait("7d", 0)), (60, 60, 600));
        for seed in 0..100 {
            assert!((160..170).contains(&wait("160s", seed * 101)), "{seed}");
        }
    }

    #[test]
    fn a_flag_without_a_value_is_set() {
        for (text, on) in [("", true), ("1", true), ("true", true), ("0", false), ("false", false)] {
            assert_eq!(query(&[("passing", text)]).switch("passing").unwrap(), on, "{text}");
        }
        assert!(query(&[("passing", "maybe")]).switch("passing").is_err());
        assert!(!query(&[]).switch("passing").unwrap());
    }
}
