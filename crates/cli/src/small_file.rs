//! Files that are read whole and are small: what is larger, or has no end, is not what was meant.

use std::io::{Error, Read, Result};

/// Largest file of a token, of certificates or of policies, in bytes: far more than any has.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The whole text of a file that is small, such as one with a token.
pub(crate) fn limited(file: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(Error::other(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Error::other("it is not text in UTF-8"))
}
