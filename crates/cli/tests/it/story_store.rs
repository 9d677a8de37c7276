//! A server whose disk fails or is full: it says so, is not ready, ends if it is to, and has everything once it is started again.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use bellwether_api::client::CallError;

use crate::place::{Setup, code, done, text, wait_for};

/// Has `fdatasync` of one file fail while another is there: a disk of this test's own that fails takes a device.
const FAILING_SYNC: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fdatasync(int fd) {
    char link[64], name[4096];
    const char *fails = getenv("FAILS_WHILE"), *file = getenv("FAILS_FILE"), *error = getenv("FAILS_WITH");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    name[length > 0 ? length : 0] = 0;
    const char *last = strrchr(name, '/');
    if (fails && file && error && last && strcmp(last + 1, file) == 0 && access(fails, F_OK) == 0) {
        errno = atoi(error);
        return -1;
    }
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return next(fd);
}
"#;

struct FailingDisk {
    library: String,
    fails_while: PathBuf,
    file: &'static str,
    error: rustix::io::Errno,
}

impl FailingDisk {
    fn of(place: &Setup) -> Self {
        let (source, library) = (place.path("sync.c"), place.path("sync.so"));
        std::fs::write(&source, FAILING_SYNC).unwrap();
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source, "-ldl"]).output().unwrap();
        assert!(built.status.success(), "{}", text(&built.stderr));
        let error = rustix::io::Errno::IO;
        Self { library, fails_while: place.path("fails").into(), file: "journal", error }
    }

    /// One that is full when the audit log is written.
    fn without_room_for_the_audit_log(place: &Setup) -> Self {
        Self { file: "audit.jsonl", error: rustix::io::Errno::NOSPC, ..Self::of(place) }
    }

    async fn start_server(&self, place: &mut Setup) {
        self.begin_server(place);
        let client = place.client();
        wait_for("the server answers", async || client.ready().await.is_ok()).await;
    }

    /// Starts it, and does not wait until it answers.
    fn begin_server(&self, place: &mut Setup) {
        let fails_while = self.fails_while.display().to_string();
        let with = self.error.raw_os_error().to_string();
        let variables = [
            ("LD_PRELOAD", self.library.as_str()),
            ("FAILS_WHILE", &fails_while),
            ("FAILS_FILE", self.file),
            ("FAILS_WITH", &with),
        ];
        place.begin_server(&variables);
    }

    fn fail(&self) {
        std::fs::write(&self.fails_while, "").unwrap();
    }

    fn mend(&self) {
        std::fs::remove_file(&self.fails_while).unwrap();
    }
}

fn set(place: &Setup, name: &str) -> i32 {
    code(&place.run(&["entity", "set", name, "--selector", "role=web"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_disk_fails_ends_with_a_failure_and_has_everything_when_it_is_started_again() {
    let mut place = Setup::new().await;
    let disk = FailingDisk::of(&place);
    place.kill_server();
    disk.start_server(&mut place).await;
    assert_eq!(set(&place, "before"), 0);
    disk.fail();
    assert_ne!(set(&place, "meanwhile"), 0);
    assert_eq!(place.server_ended().await, Some(69));
    let log = std::fs::read_to_string(place.log("server")).unwrap();
    assert!(log.contains("the store failed: ") && log.contains("cannot sync: Input/output error"), "{log}");
    assert!(place.dir.path().join("server/store/suspect").exists());

    disk.mend();
    place.start_server().await;
    assert!(!place.dir.path().join("server/store/suspect").exists());
    assert!(done(&place, &["entity", "list"]).contains("before"));
    assert_eq!(set(&place, "after"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_to_stay_answers_reads_and_is_not_ready_until_it_is_restarted() {
    let mut place = Setup::new().await;
    let disk = FailingDisk::of(&place);
    place.kill_server();
    let file = place.path("server.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("on_store_failure = \"stay\"\n{config}")).unwrap();
    disk.start_server(&mut place).await;
    assert_eq!(set(&place, "before"), 0);
    disk.fail();
    assert_ne!(set(&place, "meanwhile"), 0);
    // Once it failed it stays so, whatever becomes of the disk.
    disk.mend();
    let client = place.client();
    wait_for("it is not ready", async || {
        client.ready().await.is_err_and(|error| error.to_string().contains("the store failed: "))
    })
    .await;
    assert_ne!(set(&place, "afterwards"), 0);
    assert!(done(&place, &["entity", "list"]).contains("before"));
    let said = done(&place, &["status"]);
    assert!(said.contains("failed, writes are refused until the server is restarted"), "{said}");

    place.kill_server();
    place.start_server().await;
    assert!(done(&place, &["entity", "list"]).contains("before"));
    assert_eq!(set(&place, "afterwards"), 0);
    assert!(!done(&place, &["status"]).contains("failed, writes"), "it is writable again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_write_its_audit_log_says_so_and_is_ready_once_there_is_room() {
    let mut place = Setup::new().await;
    let disk = FailingDisk::without_room_for_the_audit_log(&place);
    place.kill_server();
    disk.start_server(&mut place).await;
    assert_eq!(set(&place, "before"), 0);
    let quiet = place.run(&["status"]);
    assert!(quiet.stderr.is_empty(), "{}", text(&quiet.stderr));

    disk.fail();
    let because = "no change is accepted, because the audit log cannot be written: No space left on device";
    let client = place.client();
    let is_told = async || client.ready().await.is_err_and(|error| error.to_string().contains(because));
    wait_for("it is not ready, though nobody asked for a change", is_told).await;
    assert_ne!(set(&place, "meanwhile"), 0);
    // It reads before it writes: the answer to neither says that changes are accepted again.
    let refused = place.run(&["profile", "set", "web", "port=1"]);
    let told = text(&refused.stderr);
    assert!(code(&refused) != 0 && told.contains(because) && !told.contains("accepted again"), "{told}");
    // Neither is one that is started now: it has not tried to record anything.
    place.kill_server();
    disk.begin_server(&mut place);
    let answer = Mutex::new(None);
    wait_for("it answers", async || {
        let ready = client.ready().await;
        let is_answer = matches!(ready, Ok(_) | Err(CallError::Problem(_)));
        *answer.lock().unwrap() = Some(ready);
        is_answer
    })
    .await;
    let refused = answer.into_inner().unwrap().unwrap().unwrap_err().to_string();
    assert!(refused.contains(because), "{refused}");
    let status = place.run(&["status"]);
    assert!(text(&status.stdout).contains(because), "{}", text(&status.stdout));
    let told = text(&place.run(&["entity", "list"]).stderr);
    assert!(told.contains(because), "{told}");

    // Nobody asks for a change: it finds out by itself.
    disk.mend();
    let client = place.client();
    wait_for("it is ready", async || client.ready().await.is_ok()).await;
    let quiet = place.run(&["status"]);
    assert!(quiet.stderr.is_empty() && !text(&quiet.stdout).contains(because), "{}", text(&quiet.stdout));
    assert_eq!(set(&place, "after"), 0);
}

/// Damages the last group of a journal: a frame has its length first, then 20 other bytes, and the last one of its generation ends it.
#[expect(clippy::indexing_slicing, reason = "a test stops where the journal is not what it expects")]
fn damage_the_last_group(journal: &std::path::Path) {
    let mut bytes = std::fs::read(journal).unwrap();
    let length =
        |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize + 24;
    let generation = bytes[8_192 + 8..8_192 + 16].to_vec();
    let (mut at, mut last) = (8_192, 8_192);
    while bytes[at + 8..at + 16] == generation && length(&bytes, at) > 24 {
        (last, at) = (at, at + length(&bytes, at));
    }
    bytes[last + 30] ^= 1;
    std::fs::write(journal, &bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_start_leaves_out_of_the_journal_is_an_event_and_a_warning_until_its_copy_is_removed() {
    let mut place = Setup::new().await;
    assert_eq!(set(&place, "web"), 0);
    place.kill_server();
    damage_the_last_group(&place.dir.path().join("server/store/journal"));
    place.start_server().await;
    let warned = "a start left out the last group of changes in the journal";
    wait_for("it is an event", async || done(&place, &["events"]).contains("server.journal_tail_dropped"))
        .await;
    for command in [&["status"], &["server", "list"][..]] {
        let said = done(&place, command);
        assert!(said.contains(warned) && said.contains("bellwether server restore --in-place"), "{said}");
    }

    place.kill_server();
    let config = place.path("server.toml");
    let said = done(&place, &["server", "check", "--config", &config]);
    assert!(said.starts_with("the store is sound: ") && said.contains(warned), "{said}");
    std::fs::remove_file(place.dir.path().join("server/store/journal.cut")).unwrap();
    place.start_server().await;
    assert!(!done(&place, &["status"]).contains(warned));
    assert_eq!(done(&place, &["events"]).matches("server.journal_tail_dropped").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_finds_nothing_in_what_a_killed_server_leaves_and_names_what_is_damaged() {
    let mut place = Setup::new().await;
    assert_eq!(set(&place, "web"), 0);
    let config = place.path("server.toml");
    let check = ["server", "check", "--config", &config];
    let while_it_runs = place.run(&check);
    assert_eq!(code(&while_it_runs), 7, "{}", text(&while_it_runs.stderr));
    place.kill_server();
    let said = done(&place, &check);
    assert!(said.starts_with("the store is sound: "), "{said}");

    let journal = place.dir.path().join("server/store/journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes[8_192 + 30] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    let found = place.run(&check);
    assert_eq!(code(&found), 1);
    let said = text(&found.stdout);
    assert!(said.contains("journal: its frame at byte 8192 is damaged"), "{said}");
    assert!(text(&found.stderr).contains("bellwether server restore"));
    let start = place.run(&["server", "run", "--config", &config]);
    let said = text(&start.stderr);
    assert!(
        said.contains("its frame at byte 8192 is damaged") && said.contains("bellwether server check"),
        "{said}"
    );
    assert!(std::fs::read(&journal).unwrap() == bytes, "it was left alone");

    std::fs::rename(place.path("server/store/store.redb"), place.path("taken")).unwrap();
    let missing = place.run(&check);
    let said = text(&missing.stderr);
    assert_eq!(code(&missing), 7, "{said}");
    assert!(said.contains("the file is missing") && said.contains("bellwether server restore"), "{said}");

    let nothing = place.run(&["server", "check", "--data-dir", &place.path("nowhere")]);
    assert_eq!(code(&nothing), 7);
    assert!(text(&nothing.stderr).contains("cannot find an installation in"), "{}", text(&nothing.stderr));
}
