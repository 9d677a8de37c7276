//! The names by which this port may be called: a page in a browser of this machine, whose name was made to mean this address, reads nothing.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::uri::Authority;
use http::{HeaderMap, Uri, header};

use super::refusal::ConsulRefusal;
use super::settings::CatalogueHttp;

/// Names of this port. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct KnownHosts(Arc<BTreeSet<String>>);

impl KnownHosts {
    pub(super) fn new(http: &CatalogueHttp) -> Self {
        let mut names = http.hosts.clone();
        names.insert("localhost".to_owned());
        names.insert(http.node.to_string());
        Self(Arc::new(names))
    }

    /// Whether a host is an address or a known name.
    fn knows(&self, host: &str) -> bool {
        let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        address.parse::<IpAddr>().is_ok() || self.0.contains(&host.trim_end_matches('.').to_ascii_lowercase())
    }
}

/// The name of a host in lower case; `None` if it is none.
pub(crate) fn host_name(text: &str) -> Option<String> {
    let authority: Authority = text.parse().ok()?;
    let is_plain =
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let is_alone = authority.host() == text && !text.is_empty() && is_plain;
    is_alone.then(|| text.trim_end_matches('.').to_ascii_lowercase())
}

/// The host that a request is for; an error if it names none, several, or one that cannot be read.
fn host(uri: &Uri, headers: &HeaderMap) -> Result<String, &'static str> {
    let mut given = headers.get_all(header::HOST).iter();
    let (first, second) = (given.next(), given.next());
    if second.is_some() {
        return Err("it has several Host headers");
    }
    let authority = match (uri.authority(), first) {
        (Some(authority), _) => authority.clone(),
        (None, Some(host)) => {
            let host = host.to_str().ok().and_then(|host| host.parse().ok());
            host.ok_or("its Host header cannot be read")?
        }
        (None, None) => return Err("it has no Host header"),
    };
    match authority.as_str().contains('@') {
        true => Err("its Host header has a user"),
        false => Ok(authority.host().to_owned()),
    }
}

/// Refuses requests for other hosts.
pub(super) async fn only_known(
    State(known): State<KnownHosts>,
    request: Request,
    next: Next,
) -> Result<Response, ConsulRefusal> {
    let host = host(request.uri(), request.headers());
    let host = host
        .map_err(|reason| ConsulRefusal::Invalid(format!("cannot tell whom the request is for: {reason}")))?;
    if !known.knows(&host) {
        return Err(ConsulRefusal::OtherHost(host));
    }
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_known_names_are_this_port_and_other_names_are_not() {
        let known = KnownHosts(Arc::new(["localhost", "web-1", "a.example"].map(str::to_owned).into()));
        for own in ["127.0.0.1", "10.0.0.7", "[::1]", "localhost", "LOCALHOST.", "web-1", "A.example"] {
            assert!(known.knows(own), "{own}");
        }
        for other in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "b.a.example",
            "0x7f000001",
        ] {
            assert!(!known.knows(other), "{other}");
        }
    }

    #[test]
    fn a_request_names_its_host_once() {
        let of = |uri: &str, hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for one in hosts {
                headers.append(header::HOST, one.parse().unwrap());
            }
            host(&uri.parse().unwrap(), &headers)
        };
        assert_eq!(of("/", &["web-1:8500"]), Ok("web-1".to_owned()));
        assert_eq!(of("/", &["[::1]:8500"]), Ok("[::1]".to_owned()));
        // The target of a request counts before its header.
        assert_eq!(of("http://evil.example/", &["localhost"]), Ok("evil.example".to_owned()));
        for hosts in [&[][..], &["a", "b"], &["localhost@evil.example"], &["a b"]] {
            assert!(of("/", hosts).is_err(), "{hosts:?}");
        }
    }

    #[test]
    fn what_is_no_name_of_a_host_is_refused() {
        assert_eq!(host_name("A.Example."), Some("a.example".to_owned()));
        for text in ["", "a:1", "a/b", "u@a", "a b", "*"] {
            assert_eq!(host_name(text), None, "{text}");
        }
    }
}
