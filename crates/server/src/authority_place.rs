//! The place of the key of an authority in the store, for which it is encrypted.

/// The place of the key of the authority with this fingerprint.
pub(crate) fn place(fingerprint: &str) -> String {
    format!("authority/{fingerprint}")
}
