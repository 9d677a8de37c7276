//! Address of a server and identity of the client.

use http::Uri;

use super::error::CallError;
use super::secret::Secret;

/// Address of a server and identity of the client.
#[derive(Debug, Clone)]
pub struct Access {
    /// `https://host:port`, or `http://` on loopback.
    pub server: String,
    /// The CA certificate that the server's certificate must be issued by, as PEM; required for `https`.
    pub ca: Option<String>,
    /// Identity of the client.
    pub identity: Identity,
}

/// Identity of a client.
#[derive(Debug, Clone)]
pub enum Identity {
    /// Anonymous.
    Nobody,
    /// A bearer token.
    Token(Secret),
    /// A node, with its client certificate and key (PEM).
    Node {
        /// The certificate.
        certificate: String,
        /// Its key.
        key: Secret,
    },
}

impl Access {
    /// The address of a server without its last slash, if it can be used with this CA and identity.
    pub(super) fn usable(&self, server: &str) -> Result<String, CallError> {
        let base = server.trim_end_matches('/').to_owned();
        let setup = |reason: String| CallError::Setup { what: "the server address".to_owned(), reason };
        let uri: Uri = base.parse().map_err(|error| setup(format!("{error}")))?;
        match uri.scheme_str() {
            Some("https") if self.ca.is_none() => Err(setup("https:// needs a CA certificate".to_owned())),
            Some("http") if !is_loopback(&uri) && !matches!(self.identity, Identity::Nobody) => {
                let reason =
                    "http:// would send the token unencrypted and is allowed for loopback only; use https://";
                Err(setup(reason.to_owned()))
            }
            Some("http" | "https") => Ok(base),
            Some(_) | None => Err(setup(format!("{base:?} does not start with https://"))),
        }
    }
}

/// Whether an address is a loopback address.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
