//! A URL that others begin with: the same scheme, host and port, and a path below its own.

use std::fmt;
use std::str::FromStr;

use http::Uri;

/// The beginning of URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPrefix(UrlParts);

/// What is compared of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UrlParts {
    scheme: String,
    host: String,
    port: u16,
    path: String,
}

impl UrlPrefix {
    /// Whether a URL begins with this. One whose path could mean another one does not.
    #[must_use]
    pub fn covers(&self, url: &str) -> bool {
        let Some(url) = parts(url) else { return false };
        let Self(own) = self;
        let is_same_server = (&url.scheme, &url.host, url.port) == (&own.scheme, &own.host, own.port);
        let rest = url.path.strip_prefix(own.path.trim_end_matches('/'));
        is_same_server && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl FromStr for UrlPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let own = parts(text).filter(|_| !text.contains(['?', '#']));
        own.map(Self).ok_or_else(|| {
            format!(
                "{text:?} is not a URL like https://host/path, without a query, \"..\" and encoded characters"
            )
        })
    }
}

impl fmt::Display for UrlPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UrlParts { scheme, host, port, path } = &self.0;
        write!(f, "{scheme}://{host}:{port}{path}")
    }
}

/// The parts of a URL; `None` if it has a user, or a path that could mean another one.
fn parts(text: &str) -> Option<UrlParts> {
    let uri: Uri = text.parse().ok()?;
    let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme))?.to_owned();
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let default = if scheme == "https" { 443 } else { 80 };
    let path = uri.path();
    let is_plain = !path.contains(['%', '\\']) && !path.contains("//");
    let is_plain = is_plain && !path.split('/').any(|segment| [".", ".."].contains(&segment));
    is_plain.then(|| UrlParts {
        scheme,
        host: authority.host().trim_end_matches('.').to_ascii_lowercase(),
        port: uri.port_u16().unwrap_or(default),
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_of_the_same_server_below_the_path_are_covered() {
        let prefix: UrlPrefix = "https://Board.example/agree".parse().unwrap();
        for covered in [
            "https://board.example/agree",
            "https://board.example:443/agree/",
            "https://BOARD.example./agree/web?x=/../",
        ] {
            assert!(prefix.covers(covered), "{covered}");
        }
        for other in [
            "http://board.example/agree",
            "https://board.example:8443/agree",
            "https://board.example.evil.example/agree",
            "https://board.example@evil.example/agree",
            "https://evil.example/agree",
            "https://board.example/agreed",
            "https://board.example/",
            "https://board.example/agree/../secrets",
            "https://board.example/agree/%2e%2e/secrets",
            "https://board.example/agree/..%2fsecrets",
            "https://board.example//evil.example/agree",
            "https://board.example/agree//evil.example",
            "board.example/agree",
        ] {
            assert!(!prefix.covers(other), "{other}");
        }
        let whole: UrlPrefix = "http://10.0.0.7:9000".parse().unwrap();
        assert!(whole.covers("http://10.0.0.7:9000/any/path") && whole.covers("http://10.0.0.7:9000"));
        assert_eq!(prefix.to_string(), "https://board.example:443/agree");
    }
}
