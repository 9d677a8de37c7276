//! The README, followed by a machine: its installation section is run as it stands, on a port and in a home of its own.

use std::process::{Command, Stdio};

use crate::place::{PROGRAM, free_port, text};

/// The shell blocks of a section.
fn blocks(heading: &str) -> String {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let section = readme.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_installation_in_the_readme_works_as_it_stands() {
    let home = tempfile::tempdir().unwrap();
    let port = free_port().to_string();
    let script = blocks("### An installation").replace("7420", &port);
    assert!(script.contains("bellwether rollout start web broken"), "the section lost its point");
    let listen = format!("bellwether server run --listen 127.0.0.1:{port} ");
    let script = script.replace("bellwether server run ", &listen);
    // Whatever the script started ends with it.
    let script =
        format!("set -e\ntrap 'kill $(jobs -p); wait' EXIT\nmkdir -p \"$HOME/bellwether\"\n{script}");
    let bin = std::path::Path::new(PROGRAM).parent().unwrap().display().to_string();
    let output = Command::new("timeout")
        .args(["-s", "TERM", "120", "bash", "-c", &script])
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (said, wrong) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{script}\n{said}\n{wrong}");
    assert!(said.contains("exit code 1"), "the broken version was not refused:\n{said}");
    assert!(said.contains("rolled back") || said.contains("paused"), "{said}");
    let version = std::fs::read_to_string(home.path().join("bellwether/web.version")).unwrap();
    assert_eq!(version.trim(), "v1", "{said}");
}
