//! `simulate` as a user has it: what it prints and draws, and what it says of a command line that makes no sense.

use std::process::{Command, Output};

use serde_json::Value;

use crate::place::{PROGRAM, text};

fn simulate(args: &[&str]) -> Output {
    Command::new(PROGRAM).arg("simulate").args(args).env_clear().output().unwrap()
}

fn said(args: &[&str]) -> String {
    let output = simulate(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// What it refuses: the exit code, and what it says.
fn refused(args: &[&str]) -> (i32, String) {
    let output = simulate(args);
    assert!(output.stdout.is_empty(), "{args:?}: {}", text(&output.stdout));
    (output.status.code().unwrap_or(-1), text(&output.stderr))
}

#[test]
fn policies_are_compared_row_by_row() {
    let args = ["--nodes", "100", "--policy", "careful:batch=1", "--policy", "quick:batch=50% soak=10s"];
    insta::assert_snapshot!(said(&args), @r"
    POLICY   RESULT     TOOK    BATCHES  ASSIGNED  FAILED  IN FLIGHT  BLAST  STOPPED AFTER
    careful  succeeded  2h 30m  100      100       0       1          -      -
    quick    succeeded  1m 20s  2        100       0       50         -      -
    ");
    let bad = [&args[..], &["--bad", "--failure-mode", "check", "--apply-time", "10s..30s", "--runs", "20"]]
        .concat();
    insta::assert_snapshot!(said(&bad), @r"
    POLICY   RESULT       TOOK              BATCHES  ASSIGNED  FAILED      IN FLIGHT  BLAST  STOPPED AFTER
    careful  rolled back  39s (28s to 51s)  1        1         1           1          1      20s (11s to 28s)
    quick    rolled back  41s (41s to 42s)  1        50        2 (1 to 6)  50         50     11s (11s to 12s)
    ");
}

#[test]
fn a_soak_that_is_too_short_lets_failures_through_and_says_so() {
    let args = ["--nodes", "100", "--bad", "10%", "--failure-mode", "soak", "--late", "1h"];
    insta::assert_snapshot!(said(&args), @r"
    POLICY   RESULT     TOOK  BATCHES  ASSIGNED  FAILED  FAILED LATE  IN FLIGHT  BLAST  STOPPED AFTER
    default  succeeded  30m   20       100       0       10           5          -      -
    ");
}

#[test]
fn what_never_ends_by_itself_says_why() {
    let why = |args: &[&str]| said(args).lines().last().unwrap_or_default().to_owned();
    insta::assert_snapshot!(why(&["--policy", "batch=0"]), @"batch=0: waiting: batch is 0, so no target starts; this does not end without an operator");
    insta::assert_snapshot!(why(&["--unreachable-rate", "50%", "--nodes", "100"]), @"default: paused automatically: 40 unreachable, 10 tolerated; it resumes by itself when enough of them report again");
    insta::assert_snapshot!(why(&["--bad", "--policy", "on_failure=pause"]), @"on_failure=pause: paused automatically: 37 failed, 0 tolerated; only an operator can resume it");
    insta::assert_snapshot!(why(&["--until", "5m"]), @"default: still in progress after 5m; use a longer --until");
}

#[test]
fn the_same_seed_gives_the_same_data_and_another_one_other() {
    let args = |seed| {
        ["--nodes", "200", "--failure-rate", "5%", "--apply-time", "exp:20s", "-o", "json", "--seed", seed]
    };
    assert_eq!(said(&args("3")), said(&args("3")));
    assert_ne!(said(&args("3")), said(&args("4")));
    let data: Value = serde_json::from_str(&said(&["--nodes", "60", "--zones", "3", "-o", "json"])).unwrap();
    let policy = &data["policies"][0];
    assert_eq!(
        (&data["nodes"], &policy["name"], &policy["ends"]["succeeded"]),
        (&60.into(), &"default".into(), &1.into())
    );
    assert_eq!(policy["opened"][0]["assigned"], 3);
    assert_eq!(policy["opened"][0]["zones"], serde_json::json!({"z1": 1, "z2": 1, "z3": 1}));
    assert_eq!(policy["series"].as_array().unwrap().last().unwrap()["on_new"], 60);
    assert_eq!(said(&["--nodes", "9", "-o", "name"]), "default\n");
}

#[test]
fn a_plot_is_a_picture_without_scripts() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plot.svg").display().to_string();
    let args = ["--nodes", "20", "--bad", "30%", "--policy", "a&b:batch=5 success=50%", "--svg", &file];
    said(&args);
    let plot = std::fs::read_to_string(&file).unwrap();
    assert!(!plot.contains("<script") && !plot.contains("@font-face") && !plot.contains("http-equiv"));
    assert!(plot.contains("a&amp;b") && plot.contains("50% needed to be good"), "{plot}");
    for word in ["Share of 20 nodes on the new version", "minutes since the start", "known bad", "<polyline"]
    {
        assert!(plot.contains(word), "{word} is not in {plot}");
    }
}

#[test]
fn a_flag_that_makes_no_sense_is_refused_with_what_would() {
    let cases: [(&[&str], &[&str]); 14] = [
        (&["--nodes", "1000001"], &["--nodes", "1 to 1000000, like 100"]),
        (&["--nodes", "many"], &["--nodes", "like 100"]),
        (&["--policy", "batsh=5%"], &["--policy", "did you mean batch?"]),
        (&["--policy", "careful"], &["--policy", "like batch=5%"]),
        (&["--policy", "success=100% failures=3"], &["--policy", "failures: success 100% tolerates no"]),
        (&["--policy", "batch=1", "--policy", "batch=1"], &["--policy", "--policy first:'batch=5%'"]),
        (&["--apply-time", "fast"], &["--apply-time", "exp:30s"]),
        (&["--failure-rate", "5"], &["--failure-rate", "like 0.5%"]),
        (&["--bad", "101%"], &["--bad", "like 0.5%"]),
        (&["--failure-mode", "bang"], &["--failure-mode", "like apply=3,soak=1"]),
        (&["--late", "60s..10s"], &["--late", "like 10s..1m"]),
        (&["--runs", "0"], &["--runs", "like 100"]),
        (&["--seed", "x"], &["--seed", "like 7"]),
        (&["--until", "0s"], &["--until", "like 30d"]),
    ];
    for (args, says) in cases {
        let (exit, said) = refused(args);
        assert_eq!(exit, 64, "{args:?}: {said}");
        assert!(says.iter().all(|word| said.contains(word)), "{args:?}: {said}");
    }
    let (exit, said) = refused(&["--policy-file", "/nowhere/policy.toml"]);
    assert!(exit == 64 && said.contains("--policy-file /nowhere/policy.toml"), "{exit} {said}");
    let (exit, said) = refused(&["--svg", "/nowhere/plot.svg"]);
    assert!(exit == 1 && said.contains("--svg /nowhere/plot.svg"), "{exit} {said}");
}
