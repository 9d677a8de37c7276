//! Exit codes, held over all commands.

use clap::{Command, FromArgMatches};

use crate::args::{self, Args};
use crate::exit::Exit;

/// Commands that need no server: they work offline, ask this machine's agent, or run something themselves.
const OFFLINE: [&str; 31] = [
    "demo",
    "dev",
    "server init",
    "server migrate",
    "server backup",
    "server inspect",
    "server restore",
    "server check",
    "server recover",
    "server secret-key",
    "server run",
    "agent join",
    "agent run",
    "agent status",
    "context list",
    "context use",
    "context set",
    "context delete",
    "simulate",
    "explain",
    "action list",
    "completions",
    "man",
    "lock-child",
    "demo-service",
    "service register",
    "service deregister",
    "service check",
    "service local",
    "local-version",
    "cache-services",
];

/// Commands that wait until they have an answer, that do without a server, or whose exit codes have a meaning of their own.
const OWN_CODES: [&str; 10] = [
    "doctor",
    "debug bundle",
    "wait",
    "cluster wait",
    "lock run",
    "pending-update",
    "publish-service",
    "local-health",
    "update-status",
    "delete-status",
];

/// Commands that read a file before they connect.
// A secret without a file is to be changed in nothing.
const READS_A_FILE: [&str; 8] = [
    "apply",
    "context refresh",
    "diff",
    "node patch",
    "profile patch",
    "profile replace",
    "secret set",
    "server join",
];

/// Every command that does something, as words with a value for each required argument.
fn all() -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut command = args::command();
    command.build();
    collect(&command, &[], &mut found);
    found
}

fn collect(command: &Command, before: &[String], found: &mut Vec<(String, Vec<String>)>) {
    let mut words = before.to_vec();
    if command.has_subcommands() {
        for inner in command.get_subcommands() {
            let mut words = words.clone();
            words.push(inner.get_name().to_owned());
            collect(inner, &words, found);
        }
        return;
    }
    let name = words.join(" ");
    let required = command.get_arguments().filter(|arg| arg.is_required_set());
    for arg in required {
        if let Some(long) = arg.get_long() {
            words.push(format!("--{long}"));
        }
        if arg.get_action().takes_values() {
            words.push(sample(&arg.get_value_names().unwrap_or_default().first().map(ToString::to_string)));
        }
    }
    let needs_node = command.get_groups().any(clap::ArgGroup::is_required_set);
    words.extend(needs_node.then(|| "web-1".to_owned()));
    words.extend((name == "sink replay").then(|| "--dead-letters".to_owned()));
    words.extend((name == "ensemble replace-osd").then(|| "--withdraw".to_owned()));
    let asks = command.get_arguments().any(|arg| arg.get_long() == Some("yes"));
    words.extend(asks.then(|| "--yes".to_owned()));
    found.push((name, words));
}

fn sample(value: &Option<String>) -> String {
    match value.as_deref() {
        Some("KEY=VALUE" | "CHANGE") => "key=value",
        Some("N" | "FROM" | "REVISION" | "MEMBER" | "OSD") => "1",
        Some("FILE") => "/dev/null",
        Some("SUBJECT") => "node/web-1",
        Some("JOB") => "web-7/web-1/0",
        Some("CLAIM") => "get node",
        Some(_) | None => "web",
    }
    .to_owned()
}

fn is_in(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| name == *known || name.starts_with(&format!("{known} ")))
}

async fn run(words: &[String]) -> Exit {
    let line = ["bellwether", "--server", "http://127.0.0.1:9", "--contexts-file", "/dev/null"];
    let line = line.into_iter().map(str::to_owned).chain(words.iter().cloned());
    let matches =
        args::command().try_get_matches_from(line).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    let args = Args::from_arg_matches(&matches).unwrap();
    super::run(args).await.unwrap_or_else(|failure| failure.exit)
}

#[tokio::test]
async fn an_unreachable_server_is_the_same_code_for_every_command() {
    drop(rustls::crypto::ring::default_provider().install_default());
    for (name, words) in all() {
        if is_in(&OFFLINE, &name) || is_in(&OWN_CODES, &name) || is_in(&READS_A_FILE, &name) {
            continue;
        }
        assert_eq!(run(&words).await, Exit::Unavailable, "{name}");
    }
}

#[test]
fn wrong_usage_is_refused_by_every_command() {
    for (name, words) in all() {
        let mut line = vec!["bellwether".to_owned()];
        line.extend(words);
        line.push("--no-such-flag".to_owned());
        if name == "lock run" || name == "lock-child" {
            continue;
        }
        let refused = args::command().try_get_matches_from(line).unwrap_err();
        assert!(refused.use_stderr(), "{name}");
    }
}

#[tokio::test]
async fn deleting_without_consent_or_a_terminal_is_wrong_usage_everywhere() {
    use std::io::IsTerminal;
    drop(rustls::crypto::ring::default_provider().install_default());
    // At a terminal the question is asked, and nobody answers it here.
    if std::io::stdin().is_terminal() {
        return;
    }
    for name in ["entity", "profile", "slot", "join-token"] {
        let words: Vec<String> = [name, "delete", "web"].map(str::to_owned).into();
        assert_eq!(run(&words).await, Exit::Usage, "{name} delete");
    }
}
