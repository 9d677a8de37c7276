//! A file as it is, with changes that stay in memory: what looks at a store as the library does changes nothing in it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::medium::Medium;

/// Size in which changes are kept, in bytes: a page of the library.
const BLOCK: u64 = 4_096;

/// A file under changes.
#[derive(Debug)]
pub(super) struct Overlay {
    base: Arc<dyn Medium>,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    length: u64,
    /// How much of the file below still shows.
    kept: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    /// Nothing is changed yet.
    pub(super) fn new(base: Arc<dyn Medium>) -> io::Result<Self> {
        let length = base.length()?;
        Ok(Self { base, changes: Mutex::new(Changes { length, kept: length, blocks: BTreeMap::new() }) })
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is in the file below, and zeros behind it.
    fn below(&self, out: &mut [u8], offset: u64, kept: u64) -> io::Result<()> {
        let there = size(kept.saturating_sub(offset)).min(out.len());
        let (found, behind) = out.split_at_mut(there);
        behind.fill(0);
        if found.is_empty() { Ok(()) } else { self.base.read(found, offset) }
    }
}

/// The blocks that a range touches, each with the part of it and the part of the range that are the same bytes.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let end = offset.saturating_add(length as u64);
    (offset / BLOCK..end.div_ceil(BLOCK)).map(move |block| {
        let start = block.saturating_mul(BLOCK);
        let (from, to) = (offset.max(start), end.min(start.saturating_add(BLOCK)));
        let within = size(from.saturating_sub(start))..size(to.saturating_sub(start));
        (block, within, size(from.saturating_sub(offset))..size(to.saturating_sub(offset)))
    })
}

fn size(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

impl Medium for Overlay {
    fn length(&self) -> io::Result<u64> {
        Ok(self.changes().length)
    }

    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let changes = self.changes();
        if offset.saturating_add(out.len() as u64) > changes.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.below(out, offset, changes.kept)?;
        for (block, within, place) in parts(offset, out.len()) {
            let changed = changes.blocks.get(&block).and_then(|bytes| bytes.get(within));
            if let Some((changed, out)) = changed.zip(out.get_mut(place)) {
                out.copy_from_slice(changed);
            }
        }
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        // A file that nothing is written to behind its end does not become longer.
        if data.is_empty() {
            return Ok(());
        }
        let mut changes = self.changes();
        changes.length = changes.length.max(offset.saturating_add(data.len() as u64));
        let kept = changes.kept;
        for (block, within, place) in parts(offset, data.len()) {
            let mut bytes = match changes.blocks.remove(&block) {
                Some(bytes) => bytes,
                None => {
                    let mut bytes = vec![0; size(BLOCK)];
                    self.below(&mut bytes, block.saturating_mul(BLOCK), kept)?;
                    bytes
                }
            };
            if let Some((bytes, data)) = bytes.get_mut(within).zip(data.get(place)) {
                bytes.copy_from_slice(data);
            }
            changes.blocks.insert(block, bytes);
        }
        Ok(())
    }

    fn resize(&self, length: u64) -> io::Result<()> {
        let mut changes = self.changes();
        (changes.length, changes.kept) = (length, changes.kept.min(length));
        changes.blocks.split_off(&length.div_ceil(BLOCK));
        let cut = size(length % BLOCK);
        if cut > 0
            && let Some(bytes) = changes.blocks.get_mut(&(length / BLOCK))
        {
            bytes.truncate(cut);
            bytes.resize(size(BLOCK), 0);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn forget(&self) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_reads_as_a_file_that_was_changed_so_and_leaves_its_own_alone(
            steps in proptest::collection::vec((0..3_u8, 0..20_000_u64, 0..9_000_usize, any::<u8>()), 1..20),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let (below, beside) = (dir.path().join("below"), dir.path().join("beside"));
            let whole: Vec<u8> = (0..10_000_u32).map(|place| (place % 251) as u8).collect();
            fs::write(&below, &whole).unwrap();
            fs::write(&beside, &whole).unwrap();
            let file = fs::File::options().read(true).write(true).open(&beside).unwrap();
            let overlay = Overlay::new(Arc::new(fs::File::open(&below).unwrap())).unwrap();
            for (what, offset, length, byte) in steps {
                let media: [&dyn Medium; 2] = [&file, &overlay];
                match what {
                    0 => media.iter().for_each(|medium| medium.write(&vec![byte; length], offset).unwrap()),
                    1 => media.iter().for_each(|medium| medium.resize(offset).unwrap()),
                    _ => {
                        let [a, b] = media.map(|medium| {
                            let mut out = vec![0; length];
                            medium.read(&mut out, offset).ok().map(|()| out)
                        });
                        // Of nothing, a file has as much as one likes.
                        prop_assert!(a == b || length == 0);
                    }
                }
                prop_assert_eq!(file.length().unwrap(), overlay.length().unwrap());
            }
            let mut all = vec![0; size(overlay.length().unwrap())];
            overlay.read(&mut all, 0).unwrap();
            prop_assert!(all == fs::read(&beside).unwrap());
            prop_assert!(fs::read(&below).unwrap() == whole);
        }
    }
}
