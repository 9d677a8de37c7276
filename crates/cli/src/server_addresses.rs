//! Addresses of servers that have one store, in the order in which they are tried: as typed, with commas between, and as stored in
//! a context.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Addresses of at least one server, in the order in which they are tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(crate) struct ServerAddresses {
    pub(crate) first: String,
    pub(crate) others: Vec<String>,
}

/// One address as a string, several as a list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged, expecting = "server must be an address or a list of addresses")]
enum Stored {
    One(String),
    Several(Vec<String>),
}

impl ServerAddresses {
    /// Reads addresses with commas between.
    pub(crate) fn parse(text: &str) -> Self {
        Self::of(text.split(',').map(str::to_owned))
    }

    fn of(addresses: impl IntoIterator<Item = String>) -> Self {
        let trimmed = addresses.into_iter().map(|address| address.trim().to_owned());
        let mut each = trimmed.filter(|address| !address.is_empty());
        Self { first: each.next().unwrap_or_default(), others: each.collect() }
    }

    /// All of them.
    pub(crate) fn each(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.first).chain(&self.others).map(String::as_str)
    }
}

impl From<Stored> for ServerAddresses {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::One(address) => Self::parse(&address),
            Stored::Several(addresses) => Self::of(addresses),
        }
    }
}

impl From<ServerAddresses> for Stored {
    fn from(addresses: ServerAddresses) -> Self {
        match addresses.others.is_empty() {
            true => Self::One(addresses.first),
            false => Self::Several(std::iter::once(addresses.first).chain(addresses.others).collect()),
        }
    }
}

impl fmt::Display for ServerAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.each().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Context {
        server: ServerAddresses,
    }

    #[test]
    fn addresses_are_typed_with_commas_and_stored_as_a_string_or_a_list() {
        let several = Context { server: ServerAddresses::parse("https://a:1, https://b:2,") };
        assert_eq!(several.server.to_string(), "https://a:1,https://b:2");
        let cases = [
            (several, "server = [\"https://a:1\", \"https://b:2\"]\n"),
            (Context { server: ServerAddresses::parse("https://a:1") }, "server = \"https://a:1\"\n"),
        ];
        for (context, text) in cases {
            assert_eq!(toml::to_string(&context).unwrap(), text);
            assert_eq!(toml::from_str::<Context>(text).unwrap(), context);
        }
        let error = toml::from_str::<Context>("server = 5").unwrap_err().to_string();
        assert!(error.contains("server must be an address or a list of addresses"), "{error}");
    }
}
