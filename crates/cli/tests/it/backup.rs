//! Backups by command: taken, looked at, restored into an installation of the same authority.

use crate::place::{Setup, text, wait_for};

#[tokio::test]
async fn a_restored_backup_is_served_as_it_was() {
    let mut place = Setup::new().await;
    let entity = ["entity", "set", "web", "--selector", "role=web", "--batch", "1"];
    assert!(place.run(&entity).status.success());
    let lists = |place: &Setup| {
        let entities = text(&place.run(&["entity", "list", "-o", "json"]).stdout);
        // Revisions are the store's own, and a restored store numbers them anew.
        let entities: Vec<&str> = entities.lines().filter(|line| !line.contains("\"revision\"")).collect();
        (entities.join("\n"), text(&place.run(&["events", "-o", "json"]).stdout))
    };
    let before = lists(&place);
    let (config, file) = (place.path("server.toml"), place.path("all.backup"));
    let busy = place.run(&["server", "backup", "--config", &config, &file]);
    assert!(text(&busy.stderr).contains("another process has this store open"), "{}", text(&busy.stderr));
    assert_eq!(busy.status.code(), Some(7), "the server refuses, as the agent does");
    let second = place.run(&["server", "run", "--config", &config, "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(7), "{}", text(&second.stderr));
    let missing = place.run(&["server", "inspect", &place.path("nothing")]);
    assert_eq!(missing.status.code(), Some(64), "{}", text(&missing.stderr));
    place.kill_server();
    let taken = place.run(&["server", "backup", "--config", &config, &file]);
    assert!(taken.status.success(), "{}", text(&taken.stderr));
    let again = place.run(&["server", "backup", "--config", &config, &file]);
    assert!(text(&again.stderr).contains("the file exists"), "{}", text(&again.stderr));
    let looked = place.run(&["server", "inspect", &file]);
    assert!(text(&looked.stdout).contains("default entity"), "{}", text(&looked.stdout));

    std::fs::remove_dir_all(place.path("server/store")).unwrap();
    let restored = place.run(&["server", "restore", "--config", &config, &file]);
    assert!(restored.status.success(), "{}", text(&restored.stderr));
    let told = text(&restored.stdout);
    assert!(told.contains("all at once and without batches"), "{told}");
    let twice = place.run(&["server", "restore", "--config", &config, &file]);
    assert!(text(&twice.stderr).contains("it has installation"), "{}", text(&twice.stderr));
    place.start_server().await;
    let client = place.client();
    wait_for("it leads again", async || client.overview("default").await.is_ok_and(|seen| seen.has_leader))
        .await;
    wait_for("that is told", async || lists(&place).1.contains("leader.elected")).await;
    let (entities, events) = lists(&place);
    let (known, last) = events.split_at(before.1.len());
    assert_eq!((entities, known.to_owned()), before);
    assert!(last.contains("server.restored") && last.lines().count() == 2, "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_store_and_no_backup_is_refused_and_nothing_is_created() {
    let place = Setup::new().await;
    let (nowhere, file) = (place.path("nowhere"), place.path("other.backup"));
    let taken = place.run(&["server", "backup", "--data-dir", &nowhere, &file]);
    assert_eq!(taken.status.code(), Some(7), "{}", text(&taken.stderr));
    let said = text(&taken.stderr);
    assert!(said.contains(&format!("cannot find an installation in {nowhere}")), "{said}");
    std::fs::write(&file, "a letter\n").unwrap();
    let restored = place.run(&["server", "restore", "--data-dir", &nowhere, &file]);
    let said = text(&restored.stderr);
    assert!(said.contains("use a file written by `bellwether server backup`"), "{said}");
    assert_eq!(restored.status.code(), Some(64), "{said}");
    assert!(!std::path::Path::new(&nowhere).exists(), "{nowhere} was created");
}

/// Runs a command where the data directory of the server cannot be written.
fn run_read_only(place: &Setup, args: &[&str]) -> std::process::Output {
    let dir = place.path("server");
    let script = format!("mount --bind {dir} {dir} && mount -o remount,ro,bind {dir} && exec \"$@\"");
    let within = ["-m", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_bellwether")];
    std::process::Command::new("unshare").args(within).args(args).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_can_only_be_read_is_checked_and_backed_up() {
    let mut place = Setup::new().await;
    let (config, file) = (place.path("server.toml"), place.path("all.backup"));
    let check = place.run(&["server", "run", "--check", "--config", &config]);
    assert!(check.status.success(), "the server that runs has looked: {}", text(&check.stderr));
    assert!(text(&check.stderr).contains("it was not looked at"), "{}", text(&check.stderr));
    place.kill_server();
    // As in a copy that somebody made of the store alone.
    std::fs::remove_file(place.path("server/store/lock")).unwrap();
    for args in [
        ["server", "check", "--config", &config].as_slice(),
        &["server", "backup", "--config", &config, &file],
    ] {
        let done = run_read_only(&place, args);
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
    }
    let seen = place.run(&["server", "inspect", &file]);
    assert!(seen.status.success(), "{}", text(&seen.stderr));

    // A damaged store is found before a start.
    let sound = place.run(&["server", "run", "--check", "--config", &config]);
    assert!(sound.status.success(), "{}", text(&sound.stderr));
    let store = place.path("server/store/store.redb");
    let size = std::fs::metadata(&store).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&store).unwrap().set_len(size / 2).unwrap();
    let damaged = place.run(&["server", "run", "--check", "--config", &config]);
    assert!(
        !damaged.status.success() && text(&damaged.stderr).contains("store.redb"),
        "{}",
        text(&damaged.stderr)
    );
}

/// Runs a command as somebody who does not own the data directory.
fn run_as_another_user(args: &[&str]) -> std::process::Output {
    let within = ["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_bellwether")];
    std::process::Command::new("setpriv").args(within).args(args).current_dir("/").output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_of_another_user_or_installation_and_one_that_is_a_file_are_named() {
    let mut place = Setup::new().await;
    place.kill_server();
    let (dir, config, file) = (place.path("server"), place.path("server.toml"), place.path("all.backup"));
    let verbs = [["server", "check"], ["server", "backup"]];
    let args = |verb: [&'static str; 2], dir: &'static str| {
        let to = (verb[1] == "backup").then_some("/tmp/never-written.backup");
        verb.into_iter().chain(["--data-dir", dir]).chain(to).collect::<Vec<_>>()
    };
    for verb in verbs {
        let said = place.run(&args(verb, "/etc/hostname"));
        assert_eq!(said.status.code(), Some(7), "{}", text(&said.stderr));
        assert!(text(&said.stderr).contains("it is a file, and no directory"), "{}", text(&said.stderr));
    }
    // The directory of the test is this user's alone, too: without that of the server nothing could be read.
    for path in [place.dir.path().to_owned(), place.dir.path().join("server")] {
        use std::os::unix::fs::PermissionsExt;
        let mode = if path.ends_with("server") { 0o700 } else { 0o755 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let denied = run_as_another_user(&["server", "check", "--data-dir", &dir]);
    let said = text(&denied.stderr);
    assert_eq!(denied.status.code(), Some(7), "{said}");
    assert!(said.contains("permission denied; run the command as the user that owns it"), "{said}");

    let other = place.path("other");
    assert!(place.run(&["server", "init", "--data-dir", &other]).status.success());
    for name in ["ca.pem", "ca.key"] {
        std::fs::copy(format!("{other}/pki/{name}"), format!("{dir}/pki/{name}")).unwrap();
    }
    let found = place.run(&["server", "check", "--config", &config]);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stderr));
    let said = text(&found.stdout);
    assert!(said.contains("pki has the authority of another installation"), "{said}");
    let taken = place.run(&["server", "backup", "--config", &config, &file]);
    assert!(taken.status.success(), "{}", text(&taken.stderr));
    let said = text(&taken.stderr);
    assert!(said.contains("warning: ") && said.contains("authority of another installation"), "{said}");
}
