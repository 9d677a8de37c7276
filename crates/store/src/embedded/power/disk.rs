//! A disk with two files, which fails or loses its power at a given operation.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::medium::Medium;

/// What a disk writes whole or not at all, in bytes.
const SECTOR: usize = 512;

/// Numbers that a seed gives, by splitmix64.
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// What will go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskFault {
    None,
    /// The process is killed. The system still shows all that it wrote.
    Kill,
    /// A sync fails: of what it was for, some is durable, and the system takes all of it for written.
    FailedSync,
    /// Of what was not synced, some is durable, and the rest is lost.
    PowerCut,
}

/// What the disk holds of a file, and what the system shows of it.
#[derive(Debug)]
struct Image {
    durable: Vec<u8>,
    shown: Vec<u8>,
    unsynced: BTreeSet<usize>,
}

impl Image {
    /// Writes the sectors that `is_written` picks.
    fn write_back(&mut self, mut is_written: impl FnMut() -> bool) {
        if is_written() {
            self.durable.resize(self.shown.len(), 0);
        }
        for sector in std::mem::take(&mut self.unsynced) {
            let range = sector * SECTOR..(sector * SECTOR + SECTOR).min(self.shown.len());
            if is_written() && range.start < range.end {
                let length = self.durable.len().max(range.end);
                self.durable.resize(length, 0);
                self.durable[range.clone()].copy_from_slice(&self.shown[range]);
            }
        }
    }

    /// Shows what the disk has, but for what waits to be written to it.
    fn forget(&mut self) {
        let mut shown = self.durable.clone();
        shown.resize(self.shown.len(), 0);
        for sector in &self.unsynced {
            let range = sector * SECTOR..(sector * SECTOR + SECTOR).min(shown.len());
            shown[range.clone()].copy_from_slice(&self.shown[range]);
        }
        self.shown = shown;
    }
}

#[derive(Debug)]
struct State {
    images: Vec<Image>,
    random: Random,
    fault: DiskFault,
    left: u64,
    forgets: bool,
    /// Whether the process has ended: nothing it does reaches the system.
    is_over: bool,
    has_failed: bool,
}

impl State {
    fn cut_power(&mut self) {
        for image in &mut self.images {
            image.write_back(|| self.random.below(2) == 0);
            image.shown.clone_from(&image.durable);
        }
        self.is_over = true;
        self.has_failed = true;
    }

    /// Counts one operation.
    fn step(&mut self) -> io::Result<()> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 && !self.is_over {
            match self.fault {
                DiskFault::PowerCut => self.cut_power(),
                DiskFault::Kill => (self.is_over, self.has_failed) = (true, true),
                // That is for the next sync.
                DiskFault::None | DiskFault::FailedSync => {}
            }
        }
        if self.is_over { Err(io::Error::other("the process is over")) } else { Ok(()) }
    }
}

/// The disk.
#[derive(Debug)]
pub(super) struct SimDisk(Mutex<State>);

impl SimDisk {
    pub(super) fn holding(files: &[Vec<u8>], seed: u64, forgets: bool) -> Arc<Self> {
        let image = |bytes: &Vec<u8>| Image {
            durable: bytes.clone(),
            shown: bytes.clone(),
            unsynced: BTreeSet::new(),
        };
        let images = files.iter().map(image).collect();
        let random = Random(!seed);
        let fault = DiskFault::None;
        let state = State { images, random, fault, left: 0, forgets, is_over: false, has_failed: false };
        Arc::new(Self(Mutex::new(state)))
    }

    pub(super) fn file(self: &Arc<Self>, number: usize) -> Arc<dyn Medium> {
        Arc::new(SimFile { disk: self.clone(), number })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Has `fault` happen after so many operations.
    pub(super) fn arm(&self, fault: DiskFault, operations: u64) {
        let mut state = self.state();
        (state.fault, state.left) = (fault, operations + 1);
    }

    /// Whether the disk failed since the process was started.
    pub(super) fn has_failed(&self) -> bool {
        self.state().has_failed
    }

    /// Ends the process as by kill -9.
    pub(super) fn kill(&self) {
        self.state().is_over = true;
    }

    pub(super) fn cut_power(&self) {
        self.state().cut_power();
    }

    /// Starts a process.
    pub(super) fn restart(&self) {
        let mut state = self.state();
        (state.is_over, state.has_failed, state.fault) = (false, false, DiskFault::None);
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

#[derive(Debug)]
struct SimFile {
    disk: Arc<SimDisk>,
    number: usize,
}

impl SimFile {
    fn act<T>(&self, act: impl FnOnce(&mut Image) -> T) -> io::Result<T> {
        let mut state = self.disk.state();
        state.step()?;
        Ok(act(&mut state.images[self.number]))
    }
}

impl Medium for SimFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.state().images[self.number].shown.len() as u64)
    }

    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.disk.state();
        let from = place(offset);
        let bytes = state.images[self.number].shown.get(from..from + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.act(|image| {
            let from = place(offset);
            let length = image.shown.len().max(from + data.len());
            image.shown.resize(length, 0);
            image.shown[from..from + data.len()].copy_from_slice(data);
            image.unsynced.extend(from / SECTOR..(from + data.len()).div_ceil(SECTOR));
        })
    }

    fn resize(&self, length: u64) -> io::Result<()> {
        self.act(|image| {
            image.shown.resize(place(length), 0);
            image.unsynced.retain(|sector| sector * SECTOR < image.shown.len());
        })
    }

    fn sync(&self) -> io::Result<()> {
        let mut guard = self.disk.state();
        let state = &mut *guard;
        state.step()?;
        let (image, random) = (&mut state.images[self.number], &mut state.random);
        if state.left == 0 && state.fault == DiskFault::FailedSync {
            state.fault = DiskFault::None;
            state.has_failed = true;
            image.write_back(|| random.below(2) == 0);
            return Err(io::Error::other("the disk failed"));
        }
        image.write_back(|| true);
        Ok(())
    }

    fn forget(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.forgets {
            state.images[self.number].forget();
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}
