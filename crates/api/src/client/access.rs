//! Address of a server and identity of the client.

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
