use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Rounds of replacing and restoring a file while somebody exchanges it and its directory.
const ROUNDS: usize = 400;

fn all(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

struct TestDir {
    dir: tempfile::TempDir,
    journal: tempfile::TempDir,
}

impl TestDir {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), journal: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn journal(&self) -> FileJournal {
        FileJournal::read(&self.journal.path().join("files/web.json")).unwrap()
    }

    fn put(&self, name: &str, text: &str) {
        let staged = stage(&self.path(name), FileAttributes::default(), text).unwrap();
        place(&mut self.journal(), &staged.into_iter().collect::<Vec<_>>()).unwrap();
    }

    fn text(&self, name: &str) -> Option<String> {
        crate::disk::read(&self.path(name)).unwrap()
    }
}

#[test]
fn a_file_is_replaced_in_one_move_and_keeps_its_mode_and_owner() {
    let here = TestDir::new();
    let path = here.path("a.conf");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap();
    here.put("a.conf", "new");
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert_eq!(here.text("a.conf").as_deref(), Some("new"));
    settle(&mut here.journal()).unwrap();
    assert_eq!((all(here.dir.path()), here.journal().is_empty()), (vec!["a.conf".to_owned()], true));
    assert!(stage(&path, FileAttributes::default(), "new").unwrap().is_none());
    let private = FileAttributes { mode: Some(0o600), owner: None };
    assert!(stage(&path, private, "new").unwrap().is_some());
}

#[test]
fn a_path_that_is_not_a_regular_file_is_refused_and_leaves_nothing_behind() {
    let here = TestDir::new();
    fs::write(here.path("real"), "kept").unwrap();
    symlink(here.path("real"), here.path("link")).unwrap();
    fs::create_dir(here.path("dir")).unwrap();
    symlink(here.path("dir"), here.path("way")).unwrap();
    fs::create_dir_all(here.path("open/in")).unwrap();
    fs::set_permissions(here.path("open"), fs::Permissions::from_mode(0o777)).unwrap();
    for (path, says) in [
        (here.path("link"), "it is a link to"),
        (here.path("dir"), "is not a regular file"),
        (here.path("real/x"), "Not a directory"),
        (here.path("gone/x"), "cannot write to the directory"),
        (here.path("way/x"), "way is a link to"),
        (here.path("open/x"), "can write the directory"),
        (here.path("open/in/x"), "can write the directory"),
        (PathBuf::from("/proc/bellwether.conf"), "cannot write /proc/.bellwether.conf.bellwether-new"),
    ] {
        let error = stage(&path, FileAttributes::default(), "new").unwrap_err();
        assert!(error.contains(says), "{}: {error}", path.display());
    }
    assert_eq!(here.text("real").as_deref(), Some("kept"));
    assert_eq!(all(here.dir.path()), ["dir", "link", "open", "real", "way"]);
    assert_eq!((all(&here.path("dir")), all(&here.path("open/in"))), (vec![], vec![]));
}

#[test]
fn all_files_replaced_since_the_last_reload_are_restored_to_it() {
    let here = TestDir::new();
    fs::write(here.path("a"), "read").unwrap();
    here.put("a", "second");
    // A restart, and another version on top, before anything was reloaded.
    here.put("a", "third");
    here.put("b", "first");
    let mut journal = here.journal();
    assert_eq!(journal.files().count(), 2);
    put_back(&mut journal).unwrap();
    // Killed here: the next agent continues from what is on disk.
    let mut journal = here.journal();
    assert_eq!(journal.phase(), JournalPhase::Returning);
    put_back(&mut journal).unwrap();
    settle(&mut journal).unwrap();
    assert_eq!((here.text("a").as_deref(), here.text("b")), (Some("read"), None));
    assert_eq!(all(here.dir.path()), ["a"]);
}

#[test]
fn a_move_that_fails_halfway_restores_everything() {
    let here = TestDir::new();
    fs::write(here.path("a"), "old").unwrap();
    let staged: Vec<StagedFile> = ["a", "b"]
        .iter()
        .filter_map(|name| stage(&here.path(name), FileAttributes::default(), "new").unwrap())
        .collect();
    // The second temporary file disappears.
    let mut journal = here.journal();
    fs::remove_file(&staged[1].beside).unwrap();
    let error = place(&mut journal, &staged).unwrap_err();
    assert!(error.contains("cannot replace"), "{error}");
    assert_eq!((here.text("a").as_deref(), here.journal().is_empty()), (Some("old"), true));
    assert_eq!(all(here.dir.path()), ["a"]);
}

/// Exchanges the file for a link to what only its owner may read, and its directory for a link to another, until told to stop.
fn exchange(here: &TestDir, stop: &AtomicBool) {
    let (file, dir) = (here.path("sub/app.conf"), here.path("sub"));
    while !stop.load(Ordering::Relaxed) {
        // Each of these fails while the directory is away, or while the agent moves the file.
        drop(symlink(here.path("private"), here.path("sub/link")));
        drop(fs::rename(here.path("sub/link"), &file));
        drop(fs::write(here.path("sub/own"), "own"));
        drop(fs::rename(here.path("sub/own"), &file));
        drop(fs::rename(&dir, here.path("away")));
        drop(symlink(here.path("other"), &dir));
        drop(fs::remove_file(&dir));
        drop(fs::rename(here.path("away"), &dir));
    }
}

/// What others may read of a directory.
fn public(dir: &Path) -> Vec<String> {
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap();
    let paths = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    // Of the very file that is read: by its name, another one may be there by then.
    let texts = paths.filter_map(|path| {
        let options = fs::OpenOptions::new().read(true).custom_flags(no_follow).open(path);
        let file = options.ok()?;
        let about = file.metadata().ok()?;
        let is_public = about.is_file() && about.mode() & 0o004 != 0;
        is_public.then(|| std::io::read_to_string(file).ok())?
    });
    texts.collect()
}

/// Replaces and restores a file; returns whether others could read what they must not.
fn replaced_and_restored(here: &TestDir, round: usize) -> bool {
    let leaks = || {
        let read = [public(&here.path("sub")), public(&here.path("away"))].concat();
        read.contains(&"private".to_owned())
    };
    let mut journal = here.journal();
    let staged = stage(&here.path("sub/app.conf"), FileAttributes::default(), &round.to_string());
    let Ok(Some(staged)) = staged else { return leaks() };
    if place(&mut journal, &[staged]).is_err() {
        return leaks();
    }
    let before = leaks();
    drop(put_back(&mut journal));
    let after = leaks();
    drop(settle(&mut journal));
    before || after
}

#[test]
fn who_exchanges_a_file_and_its_directory_for_links_reads_and_writes_nothing_by_them() {
    let here = TestDir::new();
    fs::write(here.path("private"), "private").unwrap();
    fs::set_permissions(here.path("private"), fs::Permissions::from_mode(0o600)).unwrap();
    for dir in ["other", "sub"] {
        fs::create_dir(here.path(dir)).unwrap();
    }
    let stop = AtomicBool::new(false);
    let leaks = std::thread::scope(|scope| {
        let attack = scope.spawn(|| exchange(&here, &stop));
        let leaks = (0..ROUNDS).map(|round| replaced_and_restored(&here, round)).find(|leaks| *leaks);
        stop.store(true, Ordering::Relaxed);
        attack.join().unwrap();
        leaks
    });
    assert_eq!(leaks, None, "what only its owner may read was copied to where others may");
    assert_eq!(all(&here.path("other")), Vec::<String>::new());
    let about = fs::metadata(here.path("private")).unwrap();
    assert_eq!((here.text("private").as_deref(), about.mode() & 0o777), (Some("private"), 0o600));
}

#[test]
fn the_stored_journal_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("web.json");
    fs::write(&at, r#"{"schema":1,"phase":"returning","files":{"/etc/a":true,"/etc/b":false}}"#).unwrap();
    let journal = FileJournal::read(&at).unwrap();
    assert_eq!(journal.phase(), JournalPhase::Returning);
    assert_eq!(
        journal.files().collect::<Vec<_>>(),
        [(Path::new("/etc/a"), true), (Path::new("/etc/b"), false)]
    );
    fs::write(&at, "{}").unwrap();
    assert!(FileJournal::read(&at).unwrap_err().contains("web.json"));
}
