//! Words and files that nobody means: each is refused with what is wrong, at a length that people read, and as it is shown on a terminal.

use std::process::Command;

use crate::place::{PROGRAM, code, text};

/// Runs the command line, which reaches no server, and answers its exit code and message.
fn refused(args: &[&str]) -> (i32, String) {
    let mut command = Command::new(PROGRAM);
    let home = tempfile::tempdir().unwrap();
    let ended = command.env_clear().env("HOME", home.path()).args(args).output().unwrap();
    (code(&ended), text(&ended.stderr))
}

/// The flags of a server that is not there.
const NOWHERE: [&str; 2] = ["--server", "http://127.0.0.1:1"];

#[test]
fn files_that_are_empty_or_without_end_are_refused() {
    for (flag, file, reason) in [
        ("--token-file", "/dev/null", "cannot read the token from /dev/null: it is empty"),
        (
            "--token-file",
            "/dev/zero",
            "cannot read the token from /dev/zero: it is larger than 1048576 bytes",
        ),
        ("--ca", "/dev/zero", "cannot read the CA certificate from /dev/zero: it is larger than"),
    ] {
        let (code, said) = refused(&[&["status", flag, file], &NOWHERE[..]].concat());
        assert!(code == 64 && said.contains(reason), "{code} {said}");
    }
    let (code, said) = refused(&["simulate", "--policy-file", "/dev/zero"]);
    assert!(code == 64 && said.contains("it is larger than"), "{code} {said}");
}

#[test]
fn what_was_typed_is_shown_and_not_obeyed_and_not_repeated_at_length() {
    for flag in ["--limit", "--after", "--since"] {
        let (code, said) = refused(&["events", flag, "a\u{202e}b"]);
        assert!(code == 64 && said.contains("a\\u{202e}b") && !said.contains('\u{202e}'), "{said}");
    }
    let long = "a".repeat(100_000);
    for args in [&["node", "get", &long][..], &["explain", &long], &["events", "--limit", &long]] {
        let (code, said) = refused(&[args, &NOWHERE[..]].concat());
        assert!(code != 0 && said.contains("aaa") && said.len() < 3_000, "{code} {} bytes", said.len());
    }
}

#[test]
fn a_log_filter_that_cannot_be_read_is_refused() {
    let (code, said) = refused(&["--log", "[[[", "context", "list"]);
    assert!(code == 64 && said.contains("cannot use --log \"[[[\": "), "{code} {said}");
    assert_eq!(refused(&["--log", "bellwether_server=debug,info", "context", "list"]).0, 0);
}
