//! DNS names as in questions. Owns their shape and their case-insensitivity; never their meaning.

use core::fmt;
use core::str::FromStr;

use crate::words::name::MAX_LABEL_BYTES;

/// Longest name in bytes, with the length bytes and without the root's (RFC 1035 allows 255 with it).
pub const MAX_NAME_BYTES: usize = 254;

/// A DNS name: labels of 1 to 63 arbitrary bytes, at most 254 bytes together; letters in lower case. A name
/// without labels is the root.
#[derive(Clone, PartialEq, Eq)]
pub struct DnsName {
    bytes: [u8; MAX_NAME_BYTES],
    length: usize,
}

/// Why a label cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DnsNameError {
    /// It is empty.
    #[error("a label of a DNS name is empty")]
    Empty,
    /// It is longer than 63 bytes.
    #[error("a label of a DNS name is longer than 63 bytes")]
    LongLabel,
    /// With it, the name is longer than 254 bytes.
    #[error("a DNS name is longer than 254 bytes")]
    Long,
}

impl Default for DnsName {
    fn default() -> Self {
        Self { bytes: [0; MAX_NAME_BYTES], length: 0 }
    }
}

impl DnsName {
    /// Adds a label at the end, nearest to the root.
    ///
    /// # Errors
    /// [`DnsNameError`] when it is empty or too long; the name is unchanged then.
    pub fn push(&mut self, label: &[u8]) -> Result<(), DnsNameError> {
        let length = match u8::try_from(label.len()) {
            Ok(0) => return Err(DnsNameError::Empty),
            Ok(length) if label.len() <= MAX_LABEL_BYTES => length,
            Ok(_) | Err(_) => return Err(DnsNameError::LongLabel),
        };
        let end = self.length + 1 + label.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(DnsNameError::Long)?;
        let (first, rest) = place.split_first_mut().ok_or(DnsNameError::Long)?;
        *first = length;
        for (to, from) in rest.iter_mut().zip(label) {
            *to = from.to_ascii_lowercase();
        }
        self.length = end;
        Ok(())
    }

    /// The labels, beginning with the one furthest from the root.
    pub fn labels(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes();
        core::iter::from_fn(move || {
            let (label, after) = split(rest)?;
            rest = after;
            Some(label)
        })
    }

    /// The labels, each after its length byte, without the root's empty label.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The first label of the form that [`DnsName::bytes`] returns, and the rest.
pub(super) fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

impl FromStr for DnsName {
    type Err = DnsNameError;

    /// Reads `web.service.bw.internal`, with or without a final dot. A dot within a label cannot be written.
    fn from_str(text: &str) -> Result<Self, DnsNameError> {
        let mut name = Self::default();
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Ok(name);
        }
        text.split('.').try_for_each(|label| name.push(label.as_bytes()))?;
        Ok(name)
    }
}

impl fmt::Display for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length == 0 {
            return f.write_str(".");
        }
        for (number, label) in self.labels().enumerate() {
            let dot = if number == 0 { "" } else { "." };
            write!(f, "{dot}{}", label.escape_ascii())?;
        }
        Ok(())
    }
}

impl fmt::Debug for DnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({self})")
    }
}
