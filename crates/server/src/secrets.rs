//! Secrets: the keys that they are encrypted with, the programs that have others, and encryption again under a newer key.

pub mod keyring;
pub mod provider;
pub(crate) mod reencrypt;
pub(crate) mod stored;
