//! Reading a journal that was not written by this process. Decides what is torn, which was never acknowledged,
//! and what is damaged, which was.
//!
//! A frame is written only after the one before it was synced. So a power cut tears the last one at most: a bad frame
//! with a whole one of the same generation behind it is damage.

use super::frame;
use super::mark::{FRAMES, JournalMark};

/// Size that a journal is made with, in bytes, without its headers: 4 MiB, some 12,000 small commits. At this size
/// the database is made durable. Everyone waits for about 90 ms meanwhile; half the size waits 65 ms and gives a
/// tenth fewer commits a second, twice the size 150 ms and a tenth more.
pub(super) const LONG: usize = 4 << 20;

/// What a sound journal holds beyond the database.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Scan<'a> {
    /// Its groups, in order.
    pub(in super::super) payloads: Vec<&'a [u8]>,
    /// Where the next frame goes.
    pub(super) end: usize,
    /// Number of the last group.
    pub(super) group: u64,
    /// Length of the frame that was begun at the end and is not whole, as it claims.
    pub(in super::super) torn_length: Option<usize>,
    /// Whether the database was made durable and the journal was not restarted yet.
    pub(super) is_behind: bool,
}

/// Reads `journal`, which is to continue the database that has `mark`. The error says what is wrong with it.
pub(in super::super) fn scan<'a>(journal: &'a [u8], mark: &JournalMark) -> Result<Scan<'a>, String> {
    let made = FRAMES.saturating_add(LONG);
    if journal.len() < made {
        return Err(format!("it has {} bytes and was made with {made}", journal.len()));
    }
    let Some(found) = JournalMark::newest(journal) else {
        return Err("both of its headers are damaged".to_owned());
    };
    if found.id != mark.id {
        return Err("it is the journal of another store".to_owned());
    }
    if found == *mark {
        return frames(journal, mark);
    }
    if found.generation.checked_add(1) == Some(mark.generation) {
        return behind(journal, &found, mark);
    }
    let (generation, group) = (found.generation, found.group);
    Err(if generation > mark.generation {
        format!("it continues a newer store file (generation {generation} after {})", mark.generation)
    } else {
        format!(
            "it is older than the store file: of generation {generation} behind group {group}, not {} behind {}",
            mark.generation, mark.group
        )
    })
}

/// A journal of the generation before, all of which the database must hold: the process ended between the two.
fn behind<'a>(journal: &'a [u8], found: &JournalMark, mark: &JournalMark) -> Result<Scan<'a>, String> {
    let old = frames(journal, found)?;
    if old.group != mark.group {
        return Err(format!("it ends at group {}, and the store file holds {}", old.group, mark.group));
    }
    // The header comes before the first frame, so one without the other was there and is lost.
    if let Some((place, group)) = find(journal, FRAMES, mark, mark.group.saturating_add(1)) {
        let generation = mark.generation;
        return Err(format!(
            "its header is damaged: group {group} of generation {generation} is at byte {place}"
        ));
    }
    let (payloads, group) = (Vec::new(), mark.group);
    Ok(Scan { payloads, end: FRAMES, group, torn_length: None, is_behind: true })
}

fn frames<'a>(journal: &'a [u8], mark: &JournalMark) -> Result<Scan<'a>, String> {
    let (mut payloads, mut end, mut group) = (Vec::new(), FRAMES, mark.group);
    let rest = |end: usize| journal.get(end..).unwrap_or_default();
    while let Some(found) = frame::read(rest(end), mark) {
        let next = group.saturating_add(1);
        if found.group != next {
            return Err(format!("group {} is at byte {end} where group {next} should be", found.group));
        }
        payloads.push(found.payload);
        group = next;
        end = end.saturating_add(frame::HEADER).saturating_add(found.payload.len());
    }
    let next = group.saturating_add(1);
    if let Some((place, found)) = find(journal, end.saturating_add(1), mark, next) {
        return Err(format!(
            "its frame at byte {end} is damaged: group {next} should be there, and group {found} is whole at byte {place}"
        ));
    }
    let torn_length = frame::claimed_length(rest(end), mark, next);
    Ok(Scan { payloads, end, group, torn_length, is_behind: false })
}

/// Bytes that are compared with zeros at a time.
const BLOCK: usize = 4_096;

/// What claims to be a frame and begins in a block reaches at most this far beyond it before its first byte that is
/// not zero: the length comes first.
const OVERLAP: usize = 4;

/// The first whole frame of group `least` or later at or behind `from`: its place and its group.
fn find(journal: &[u8], from: usize, mark: &JournalMark, least: u64) -> Option<(usize, u64)> {
    let zeros = [0; BLOCK + OVERLAP];
    let mut at = from;
    while at < journal.len() {
        let rest = journal.get(at..)?;
        let block = rest.get(..zeros.len()).unwrap_or(rest);
        if zeros.starts_with(block) {
            at = at.saturating_add(BLOCK);
            continue;
        }
        for step in 0..BLOCK {
            let place = at.saturating_add(step);
            let found = journal.get(place..).and_then(|bytes| frame::read(bytes, mark));
            if let Some(found) = found.filter(|found| found.group >= least) {
                return Some((place, found.group));
            }
        }
        at = at.saturating_add(BLOCK);
    }
    None
}
