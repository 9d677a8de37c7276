use std::os::unix::fs::symlink;

use super::*;

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
        let staged = stage(&self.path(name), None, text).unwrap();
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
    assert_eq!(stage(&path, None, "new").unwrap(), None);
    assert!(stage(&path, Some(0o600), "new").unwrap().is_some());
}

#[test]
fn a_path_that_is_not_a_regular_file_is_refused_and_leaves_nothing_behind() {
    let here = TestDir::new();
    fs::write(here.path("real"), "kept").unwrap();
    symlink(here.path("real"), here.path("link")).unwrap();
    fs::create_dir(here.path("dir")).unwrap();
    for (path, says) in [
        (here.path("link"), "it is a link to"),
        (here.path("dir"), "is not a regular file"),
        (here.path("real/x"), "Not a directory"),
        (here.path("gone/x"), "cannot write to the directory"),
        (PathBuf::from("/proc/bellwether.conf"), "cannot write /proc/.bellwether.conf.bellwether-new"),
    ] {
        let error = stage(&path, None, "new").unwrap_err();
        assert!(error.contains(says), "{}: {error}", path.display());
    }
    assert_eq!(here.text("real").as_deref(), Some("kept"));
    assert_eq!(all(here.dir.path()), ["dir", "link", "real"]);
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
    let staged: Vec<StagedFile> =
        ["a", "b"].iter().filter_map(|name| stage(&here.path(name), None, "new").unwrap()).collect();
    // The second temporary file disappears.
    let mut journal = here.journal();
    fs::remove_file(&staged[1].beside).unwrap();
    let error = place(&mut journal, &staged).unwrap_err();
    assert!(error.contains("cannot replace"), "{error}");
    assert_eq!((here.text("a").as_deref(), here.journal().is_empty()), (Some("old"), true));
    assert_eq!(all(here.dir.path()), ["a"]);
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
