//! Events that a filter matches, from the command line.

use crate::output::furnished;
use crate::place::{code, text};

#[tokio::test(flavor = "multi_thread")]
async fn events_are_filtered_by_the_server() {
    let place = furnished().await;
    let numbers = |args: &[&str]| -> Vec<u64> {
        let output = place.run(&[&["events", "-o", "name"], args].concat());
        assert_eq!(code(&output), 0, "{args:?}: {}", text(&output.stderr));
        text(&output.stdout).lines().map(|line| line.parse().unwrap()).collect()
    };
    let filter = ["--filter", "kind in (rollout.started, rollout.succeeded) and subject =~ \"^rollout/\""];
    let found = numbers(&filter);
    assert!(found.len() >= 2 && found.is_sorted(), "{found:?}");
    assert_eq!(numbers(&[&filter[..], &["--about", "shop", "--since", "1h"]].concat()), found);
    assert_eq!(numbers(&[&filter[..], &["--limit", "1"]].concat()), found[found.len() - 1..]);
    let first = found[0].to_string();
    assert_eq!(numbers(&[&filter[..], &["--after", &first]].concat()), found[1..]);
    assert_eq!(numbers(&["-l", "kind = ghost.seen"]), Vec::<u64>::new());
    let wrong = place.run(&["events", "--filter", "kind = a and knd = b"]);
    let said = text(&wrong.stderr);
    assert!(
        code(&wrong) != 0 && said.contains("position 13") && said.contains("did you mean kind"),
        "{said}"
    );
}
