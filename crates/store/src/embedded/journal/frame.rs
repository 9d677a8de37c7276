//! A frame: one group in the journal. Length, checksum, generation, number of the group, payload.

use super::mark::JournalMark;

/// Length and checksum, 4 bytes each, generation and number, 8 bytes each.
pub(super) const HEADER: usize = 24;

/// A frame whose checksum holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// Number of its group: one more than that of the group before, for ever.
    pub(super) group: u64,
    /// What the group did; never empty.
    pub(super) payload: &'a [u8],
}

/// Writes the frame of a group.
pub(super) fn write(out: &mut Vec<u8>, mark: &JournalMark, group: u64, payload: &[u8]) {
    // A group is at most a few MiB: see the writer.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&checksum(mark, group, payload).to_le_bytes());
    out.extend_from_slice(&mark.generation.to_le_bytes());
    out.extend_from_slice(&group.to_le_bytes());
    out.extend_from_slice(payload);
}

/// The frame of this generation at the start of `bytes`, if there is one and it is whole.
pub(super) fn read<'a>(bytes: &'a [u8], mark: &JournalMark) -> Option<Frame<'a>> {
    let (length, sum, group) = claim(bytes, mark)?;
    let payload = bytes.get(HEADER..)?.get(..length)?;
    (checksum(mark, group, payload) == sum).then_some(Frame { group, payload })
}

/// The length that the frame of `group` claims, if `bytes` begin as it does, whole or not.
pub(super) fn claimed_length(bytes: &[u8], mark: &JournalMark, group: u64) -> Option<usize> {
    let (length, _, _) = claim(bytes, mark).filter(|(_, _, found)| *found == group)?;
    Some(length.saturating_add(HEADER))
}

/// Length, checksum and group of what claims to be a frame of this generation. Zeros claim nothing.
fn claim(bytes: &[u8], mark: &JournalMark) -> Option<(usize, u32, u64)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (generation, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length > 0)?;
    let is_ours = u64::from_le_bytes(*generation) == mark.generation;
    let group = rest.first_chunk::<8>().filter(|_| is_ours)?;
    Some((length, u32::from_le_bytes(*sum), u64::from_le_bytes(*group)))
}

fn checksum(mark: &JournalMark, group: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for number in [mark.salt, mark.generation, group] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(payload);
    hasher.finalize()
}
