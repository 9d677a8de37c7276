//! Exports of whole namespaces: by kind, into files, and larger than a transaction.

use crate::apply::write;
use crate::place::{Setup, code, done, text};

#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_more_than_three_megabytes_is_read_by_diff_and_apply() {
    let place = Setup::new().await;
    let params = format!("{{\"text\": \"{}\"}}", "x".repeat(60_000));
    let params = write(&place, "params.json", params);
    for number in 0..58 {
        done(&place, &["profile", "replace", &format!("big-{number}"), "-f", &params]);
    }
    done(&place, &["slot", "set", "reboot", "--capacity", "2"]);
    let all = done(&place, &["export"]);
    assert!(all.len() > 3_000_000);
    let file = write(&place, "all.yaml", &all);
    assert_eq!(done(&place, &["diff", "-f", &file]), "");

    let directory = place.path("exported");
    // What somebody put in the place of a file is replaced, and not written to.
    let theirs = write(&place, "theirs", "theirs");
    std::fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(&theirs, format!("{directory}/slot-reboot.yaml")).unwrap();
    done(&place, &["export", "-d", &directory]);
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "theirs");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 59);
    assert_eq!(done(&place, &["diff", "-f", &directory]), "");
    assert_eq!(done(&place, &["export", "--kind", "slot,pause", "-o", "name"]), "slot/reboot\n");
    assert_eq!(code(&place.run(&["export", "--kind", "rack"])), 64);

    let other = Setup::new().await;
    let applied = other.run(&["apply", "-f", &directory]);
    assert_eq!(text(&applied.stdout).matches(" created").count(), 59, "{}", text(&applied.stderr));
    assert!(text(&applied.stderr).contains("changed in 4 transactions"), "{}", text(&applied.stderr));
    assert_eq!(done(&other, &["export"]), all);
}
