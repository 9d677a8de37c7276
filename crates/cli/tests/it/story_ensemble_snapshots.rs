//! Snapshots of a real etcd with TLS: they have what was acknowledged, are kept up to a number on all nodes together, and one that cannot be
//! taken says why.

use std::path::PathBuf;
use std::process::Command;

use crate::place::{Setup, code, done, free_ports, text, wait_for};
use crate::story_ensembles::{complete, installed, spec};

/// The snapshots on all nodes.
fn files(place: &Setup) -> Vec<PathBuf> {
    let of = |number: usize| place.path(&format!("db-{number}/data/ensembles/store.snapshots"));
    let entries = (1..=5).flat_map(|number| std::fs::read_dir(of(number)).into_iter().flatten());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "db")).collect()
}

fn etcdctl(args: &[&str]) -> String {
    let run = Command::new("etcdctl").env("ETCDCTL_API", "3").args(args).output().unwrap();
    assert!(run.status.success(), "{args:?}: {}", text(&run.stderr));
    text(&run.stdout)
}

/// What the command says that takes one and waits for it.
fn take(place: &Setup) -> (i32, String) {
    let said = place.run(&["ensemble", "snapshot", "store", "-w", "--reason", "before the upgrade"]);
    (code(&said), format!("{}{}", text(&said.stdout), text(&said.stderr)))
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_have_what_was_acknowledged_are_kept_up_to_a_number_and_say_why_they_fail() {
    let place = installed().await;
    let ports = free_ports();
    place.client().set_ensemble("default", "store", &spec(3, ports, true)).await.unwrap();
    let members = complete(&place, 3).await;
    let dir = place.path("client");
    done(&place, &["ensemble", "certify", "store", "--out", &dir]);
    let file = |name: &str| format!("{dir}/{name}");
    let [ca, certificate, key] = ["ca.pem", "client.pem", "client-key.pem"].map(file);
    let peer = members[0].peer_url.clone().unwrap();
    let host = peer.trim_start_matches("https://").split(':').next().unwrap().to_owned();
    let endpoint = format!("https://{host}:{}", ports[0]);
    let own = ["--endpoints", &endpoint, "--cacert", &ca, "--cert", &certificate, "--key", &key];
    // More than one piece of the answer.
    let value = "x".repeat(100_000);
    for number in 1..=5 {
        etcdctl(&[&own[..], &["put", &format!("key-{number}"), &value]].concat());
    }

    let (taken, said) = take(&place);
    assert!(taken == 0 && said.contains("ensemble store: snapshot 1 is on node db-"), "{said}");
    let listed = done(&place, &["ensemble", "snapshots", "store"]);
    assert!(listed.contains("NUMBER") && listed.contains("db-"), "{listed}");
    let first = files(&place);
    assert_eq!(first.len(), 1);
    let snapshot = first[0].display().to_string();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&snapshot).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let restored = place.path("restored");
    etcdctl(&["snapshot", "restore", &snapshot, "--data-dir", &restored]);
    let whole = std::fs::read(format!("{restored}/member/snap/db")).unwrap();
    assert!(whole.windows(5).any(|bytes| bytes == b"key-5"), "it has the last key");
    let events = done(&place, &["events", "--limit", "1000"]);
    for kind in ["ensemble.snapshot_requested", "ensemble.snapshot_taken"] {
        assert!(events.contains(kind), "{kind}: {events}");
    }

    done(&place, &["ensemble", "set", "store", "--snapshots-kept", "2", "--yes"]);
    for _ in 0..2 {
        assert_eq!(take(&place).0, 0);
    }
    wait_for("two are kept", async || files(&place).len() == 2).await;
    let shown = done(&place, &["ensemble", "get", "store"]);
    assert!(shown.contains("snapshots       when asked for, 2 kept"), "{shown}");
    let left = place.client().ensemble("default", "store").await.unwrap().status.unwrap().snapshots.unwrap();
    assert_eq!(left.taken.iter().map(|taken| taken.id.number).collect::<Vec<_>>(), [2, 3]);

    // Where the directory cannot be, none can.
    for member in &members {
        let dir = place.path(&format!("{}/data/ensembles/store.snapshots", member.node));
        drop(std::fs::remove_dir_all(&dir));
        std::fs::write(&dir, "").unwrap();
    }
    let (failed, said) = take(&place);
    assert!(failed == 1 && said.contains("cannot take snapshot 4 on node db-"), "{failed}: {said}");
    let why = done(&place, &["why", "ensemble/store"]);
    assert!(why.contains("snapshot 4 failed") && why.contains("cannot use"), "{why}");
    let scheduled = done(&place, &["ensemble", "set", "store", "--snapshot-every", "6h", "--yes"]);
    assert!(!scheduled.contains("cannot"), "{scheduled}");
    let wrong = place.run(&["ensemble", "set", "store", "--snapshot-every", "1s", "--yes"]);
    assert!(text(&wrong.stderr).contains("snapshots.every: 1s; write 1m to 365d"), "{wrong:?}");
}
