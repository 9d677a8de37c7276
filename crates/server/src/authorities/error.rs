//! Why a server cannot use the authorities of the record.

use crate::pki::PkiError;
use crate::secrets::keyring::KeyringError;

/// Why the authorities of the record cannot be used. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    /// The key of the active one cannot be decrypted.
    #[error("use the certificate authority: {0}")]
    Keyring(#[from] KeyringError),
    /// The active one cannot be used.
    #[error("{0}")]
    Pki(#[from] PkiError),
}
