use std::fs::File;
use std::path::PathBuf;

use super::*;

struct Sample {
    _dir: tempfile::TempDir,
    path: PathBuf,
    mark: JournalMark,
}

impl Sample {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (path, mark) = (dir.path().join("journal"), JournalMark::random().unwrap());
        Journal::make(&path, &mark).unwrap();
        Self { _dir: dir, path, mark }
    }

    fn file(&self) -> File {
        private().open(&self.path).unwrap()
    }

    fn open(&self, mark: &JournalMark) -> Result<(Journal, Vec<Vec<u8>>), OpenError> {
        let found = Journal::open(Arc::new(self.file()), &self.path, mark)?;
        Ok((found.journal, found.payloads))
    }

    fn torn(&self) -> Option<Vec<u8>> {
        Journal::open(Arc::new(self.file()), &self.path, &self.mark).unwrap().torn.map(|(journal, _)| journal)
    }

    /// With three groups, and where their frames begin.
    fn written() -> (Self, Journal, [u64; 3]) {
        let place = Self::new();
        let (mut journal, none) = place.open(&place.mark).unwrap();
        assert!(none.is_empty());
        let places = ["one", "two", "three"].map(|payload| {
            let end = journal.end;
            journal.append(payload.as_bytes()).unwrap();
            end
        });
        (place, journal, places)
    }

    /// The reason for which opening refuses.
    fn refusal(&self, mark: &JournalMark) -> String {
        let error = self.open(mark).unwrap_err();
        let OpenError::Corrupt { file, reason } = error else { panic!("{error}") };
        assert_eq!(file, self.path);
        reason
    }

    fn flip(&self, place: u64) {
        let mut byte = [0];
        self.file().read(&mut byte, place).unwrap();
        self.file().write(&[byte[0] ^ 0x10], place).unwrap();
    }
}

const ALL: [&[u8]; 3] = [b"one", b"two", b"three"];

#[test]
fn frames_read_back_and_a_torn_one_at_the_end_is_left_out() {
    let (place, journal, _) = Sample::written();
    assert_eq!(place.open(&place.mark).unwrap().1, ALL);
    assert!(place.torn().is_none());
    place.flip(journal.end - 1);
    let torn = fs::read(&place.path).unwrap();
    let (mut journal, payloads) = place.open(&place.mark).unwrap();
    assert_eq!(payloads, ALL[..2]);
    assert!(place.torn() == Some(torn));
    journal.append(b"3").unwrap();
    assert_eq!(place.open(&place.mark).unwrap().1, [&b"one"[..], b"two", b"3"]);
}

#[test]
fn a_bad_frame_with_a_whole_one_behind_it_is_refused_whichever_of_its_bytes_is_bad() {
    let (place, _, [first, second, third]) = Sample::written();
    for (from, to, next) in [(first, second, 1), (second, third, 2)] {
        for bad in from..to {
            place.flip(bad);
            let reason = place.refusal(&place.mark);
            let expected = format!("its frame at byte {from} is damaged: group {next} should be there, and");
            assert!(reason.starts_with(&expected), "{reason}");
            place.flip(bad);
        }
    }
    assert_eq!(place.open(&place.mark).unwrap().1, ALL);
}

#[test]
fn frames_of_an_earlier_generation_are_over() {
    let (place, mut journal, _) = Sample::written();
    let next = journal.next_mark().unwrap();
    journal.restart(next).unwrap();
    assert_eq!(place.open(&next).unwrap().1, Vec::<Vec<u8>>::new());
    journal.append(b"new").unwrap();
    assert_eq!(place.open(&next).unwrap().1, [b"new"]);
    assert!(place.refusal(&place.mark).starts_with("it continues a newer store file"));
}

#[test]
fn a_journal_that_was_not_restarted_is_so_once_it_is_opened() {
    let (place, journal, _) = Sample::written();
    let next = journal.next_mark().unwrap();
    let (mut journal, none) = place.open(&next).unwrap();
    assert!(none.is_empty());
    journal.append(b"new").unwrap();
    assert_eq!(place.open(&next).unwrap().1, [b"new"]);
}

#[test]
fn a_journal_that_does_not_end_where_the_database_does_is_refused() {
    let (place, journal, _) = Sample::written();
    let mark = place.mark;
    for group in [2, 4] {
        let next = JournalMark { group, ..journal.next_mark().unwrap() };
        assert_eq!(place.refusal(&next), format!("it ends at group 3, and the store file holds {group}"));
        assert!(place.refusal(&JournalMark { group, ..mark }).starts_with("it is older than the store file"));
    }
    let later = JournalMark { generation: 2, group: 3, ..mark };
    assert!(place.refusal(&later).starts_with("it is older than the store file"));
    let other = JournalMark { id: [1, 2], ..mark };
    assert_eq!(place.refusal(&other), "it is the journal of another store");
}

#[test]
fn a_journal_cut_short_or_without_a_whole_header_is_refused() {
    let (place, mut journal, _) = Sample::written();
    let whole = fs::read(&place.path).unwrap();
    for length in [0, 1, FRAMES, whole.len() - 1] {
        fs::write(&place.path, &whole[..length]).unwrap();
        assert!(place.refusal(&place.mark).starts_with(&format!("it has {length} bytes")));
    }
    fs::write(&place.path, vec![0; whole.len()]).unwrap();
    assert_eq!(place.refusal(&place.mark), "both of its headers are damaged");
    fs::write(&place.path, &whole).unwrap();
    // Two empty generations: here the older header and all behind it would pass for the end of the one before.
    for _ in 0..2 {
        let next = journal.next_mark().unwrap();
        journal.restart(next).unwrap();
    }
    journal.append(b"new").unwrap();
    let newest = journal.mark.header().0;
    place.flip(newest + 20);
    assert!(place.refusal(&journal.mark).starts_with("its header is damaged: group 4 of generation 2"));
    place.flip(newest + 20);
    assert_eq!(place.open(&journal.mark).unwrap().1, [b"new"]);
}

#[test]
fn a_journal_without_its_store_file_is_not_written_over_once_it_was_used() {
    let place = Sample::new();
    Journal::make(&place.path, &place.mark).unwrap();
    let (mut journal, _) = place.open(&place.mark).unwrap();
    journal.append(b"one").unwrap();
    Journal::make(&place.path, &place.mark).unwrap_err();
    let (mut journal, _) = place.open(&place.mark).unwrap();
    let next = journal.next_mark().unwrap();
    journal.restart(next).unwrap();
    Journal::make(&place.path, &place.mark).unwrap_err();
}
