//! Secrets: how they are made, hashed and compared. 256 random bits need no slow hash.

use bellwether_api::client::secret::Secret;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Marks a person's or program's token, so that a leaked one is recognised for what it is.
const TOKEN_PREFIX: &str = "bwt_";

/// Marks a join token.
const JOIN_PREFIX: &str = "bwj_";

/// The host's random source did not answer.
#[derive(Debug, thiserror::Error)]
#[error("draw random bytes from the host: {0}")]
pub struct RandomError(getrandom::Error);

/// A new token: 256 random bits in hex behind a prefix.
///
/// # Errors
/// [`RandomError`].
pub fn new_token() -> Result<Secret, RandomError> {
    Ok(Secret::new(format!("{TOKEN_PREFIX}{}", random_hex()?)))
}

/// A new join token: `bwj_`, 256 random bits, and the CA's fingerprint, so that a machine joins no impostor.
///
/// # Errors
/// [`RandomError`].
pub fn new_join_token(ca_fingerprint: &str) -> Result<Secret, RandomError> {
    Ok(Secret::new(format!("{JOIN_PREFIX}{}.{ca_fingerprint}", random_hex()?)))
}

/// SHA-256, lower-case hex.
#[must_use]
pub fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Compares two hashes without telling by time where they differ.
#[must_use]
pub fn same(left: &str, right: &str) -> bool {
    bool::from(left.as_bytes().ct_eq(right.as_bytes()))
}

fn random_hex() -> Result<String, RandomError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(RandomError)?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
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
