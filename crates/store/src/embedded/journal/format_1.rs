//! Reading a journal of format 1: frames of length, checksum, generation and payload from the first byte on.

use std::path::Path;

use crate::error::OpenError;

/// Length and checksum, 4 bytes each, and the generation, 8 bytes.
const HEADER: usize = 16;

/// Whether `journal` has a frame of format 1.
pub(super) fn is_used(journal: &[u8]) -> bool {
    frame(journal).is_some()
}

/// The payloads of the journal that continues `generation`, up to the first frame that is torn or of an earlier one.
pub(in super::super) fn read(
    path: &Path,
    journal: &[u8],
    generation: u64,
) -> Result<Vec<Vec<u8>>, OpenError> {
    let (mut rest, mut payloads) = (journal, Vec::new());
    while let Some((found, payload, behind)) = frame(rest) {
        if found > generation {
            let reason = format!("it continues a newer store file ({found} after {generation})");
            return Err(OpenError::Corrupt { file: path.to_owned(), reason });
        }
        if found < generation {
            break;
        }
        payloads.push(payload.to_vec());
        rest = behind;
    }
    Ok(payloads)
}

/// The first frame of `bytes`, if it is whole: its generation, its payload and what lies behind it. A frame
/// is never empty, so zeros are none.
fn frame(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let (length, header) = header.split_first_chunk::<4>()?;
    let (sum, generation) = header.split_first_chunk::<4>()?;
    let generation = u64::from_le_bytes(generation.try_into().ok()?);
    let (payload, behind) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let whole = !payload.is_empty() && checksum(generation, payload) == u32::from_le_bytes(*sum);
    if whole { Some((generation, payload, behind)) } else { None }
}

fn checksum(generation: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&generation.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}
