//! Secrets: generation, hashing and comparison. A plain hash is enough for 256 random bits.

use bellwether_api::client::secret::Secret;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Prefix of API tokens, by which a leaked one is recognised.
const TOKEN_PREFIX: &str = "bwt_";

/// Prefix of join tokens.
const JOIN_PREFIX: &str = "bwj_";

/// Prefix of join tokens for servers.
pub(crate) const SERVER_JOIN_PREFIX: &str = "bws_";

/// The system's random source failed.
#[derive(Debug, thiserror::Error)]
#[error("read random bytes from the system: {0}")]
pub struct RandomError(getrandom::Error);

/// A new API token: a prefix and 256 random bits in hex.
///
/// # Errors
/// [`RandomError`].
pub fn new_token() -> Result<Secret, RandomError> {
    Ok(Secret::new(format!("{TOKEN_PREFIX}{}", random_hex()?)))
}

/// A new join token: `bwj_`, 256 random bits, and the CA's fingerprint, by which the node verifies the server.
///
/// # Errors
/// [`RandomError`].
pub fn new_join_token(ca_fingerprint: &str) -> Result<Secret, RandomError> {
    Ok(Secret::new(format!("{JOIN_PREFIX}{}.{ca_fingerprint}", random_hex()?)))
}

/// A new join token for a server: `bws_`, 256 random bits, and the CA's fingerprint, by which the machine verifies the server that it
/// joins from.
///
/// # Errors
/// [`RandomError`].
pub fn new_server_token(ca_fingerprint: &str) -> Result<Secret, RandomError> {
    Ok(Secret::new(format!("{SERVER_JOIN_PREFIX}{}.{ca_fingerprint}", random_hex()?)))
}

/// SHA-256, lower-case hex.
#[must_use]
pub fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Compares two hashes in constant time.
#[must_use]
pub fn same(left: &str, right: &str) -> bool {
    bool::from(left.as_bytes().ct_eq(right.as_bytes()))
}

fn random_hex() -> Result<String, RandomError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(RandomError)?;
    Ok(hex(&bytes))
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_differ() {
        let (one, two) = (new_token().unwrap(), new_token().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.expose().len(), TOKEN_PREFIX.len() + 64);
    }

    #[test]
    fn hashes_compare_whole() {
        assert!(same(&hash(b"a"), &hash(b"a")));
        assert!(!same(&hash(b"a"), &hash(b"b")));
    }
}
