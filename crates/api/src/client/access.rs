//! How to reach a server, and with which identity.

use super::secret::Secret;

/// How to reach a server, and as whom.
#[derive(Debug, Clone)]
pub struct Access {
    /// `https://host:port`, or `http://` on loopback.
    pub server: String,
    /// The CA that the server's certificate must come from, as PEM; needed for `https`.
    pub ca: Option<String>,
    /// Who to be.
    pub identity: Identity,
}

/// Who the client is.
#[derive(Debug, Clone)]
pub enum Identity {
    /// Nobody.
    Nobody,
    /// The bearer of a token.
    Token(Secret),
    /// A node, by certificate and key (PEM).
    Node {
        /// The certificate.
        certificate: String,
        /// Its key.
        key: Secret,
    },
}
