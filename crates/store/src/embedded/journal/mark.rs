//! Which journal continues which database. Both have the mark: where the two agree, they belong together.

use std::io;

/// What a generation of the journal and the database that it continues know of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct JournalMark {
    /// Identity of the store, random.
    pub(in super::super) id: [u64; 2],
    /// Number of the generation: how often the database was made durable.
    pub(in super::super) generation: u64,
    /// Number of the last group that the database holds.
    pub(in super::super) group: u64,
    /// Random bits in the checksum of every frame of the generation, so that no value can pass for a frame.
    pub(in super::super) salt: u64,
}

/// Begins a header.
const MAGIC: &[u8; 8] = b"bwjournl";

/// Version of the form of headers and frames.
const VERSION: u64 = 2;

/// Size of a header: a sector, which a disk writes whole or not at all.
const SLOT_BYTES: usize = 512;

/// Distance of the two places for headers: a page, so that no failing write of one damages the other.
const SLOT_DISTANCE: usize = 4_096;

/// Where the frames begin, behind the headers.
pub(in super::super) const FRAMES: usize = 2 * SLOT_DISTANCE;

impl JournalMark {
    /// The mark of a new store.
    pub(in super::super) fn random() -> io::Result<Self> {
        Ok(Self { id: [random()?, random()?], generation: 0, group: 0, salt: random()? })
    }

    /// The mark of the generation that follows once the database holds `group`.
    pub(in super::super) fn following(&self, group: u64) -> io::Result<Self> {
        Ok(Self { id: self.id, generation: self.generation.saturating_add(1), group, salt: random()? })
    }

    /// The header that has it, and its place: the two places take turns, so that one is whole at any moment.
    pub(super) fn header(&self) -> (u64, Vec<u8>) {
        let mut header = Vec::from(*MAGIC);
        for number in [VERSION, self.id[0], self.id[1], self.generation, self.group, self.salt] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.resize(SLOT_BYTES.saturating_sub(4), 0);
        let sum = crc32fast::hash(&header);
        header.extend_from_slice(&sum.to_le_bytes());
        let place = if self.generation.is_multiple_of(2) { 0 } else { SLOT_DISTANCE };
        (place as u64, header)
    }

    /// The newest whole header of a journal.
    pub(super) fn newest(journal: &[u8]) -> Option<Self> {
        let slots = [0, SLOT_DISTANCE].map(|place| Self::read(journal.get(place..)?));
        slots.into_iter().flatten().max_by_key(|mark| mark.generation)
    }

    fn read(slot: &[u8]) -> Option<Self> {
        let (header, sum) = slot.get(..SLOT_BYTES)?.split_last_chunk::<4>()?;
        let mut rest = header.strip_prefix(MAGIC)?;
        if crc32fast::hash(header) != u32::from_le_bytes(*sum) {
            return None;
        }
        let mut number = || {
            let (number, behind) = rest.split_first_chunk::<8>()?;
            rest = behind;
            Some(u64::from_le_bytes(*number))
        };
        if number()? != VERSION {
            return None;
        }
        Some(Self { id: [number()?, number()?], generation: number()?, group: number()?, salt: number()? })
    }
}

fn random() -> io::Result<u64> {
    getrandom::u64().map_err(|error| io::Error::other(format!("the system gives no random numbers: {error}")))
}
