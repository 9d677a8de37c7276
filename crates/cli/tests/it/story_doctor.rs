//! `doctor` and `debug bundle` on real processes: what is wrong is named with what to do, and no secret leaves the machine.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::place::{Setup, code, done, text, wait_for};

const STORED: &str = "stored-hunter2-eeee";
const IN_CONFIG: &str = "config-hunter2-ffff";
const HOOK: &str = "hook-hunter2-gggg";

/// The findings of this machine, by check, and the exit code.
fn findings(place: &Setup) -> (BTreeMap<String, (String, String)>, i32) {
    let (server, agent) = (place.path("server.toml"), place.path("web-1/agent.toml"));
    let looked = place.run(&["doctor", "--server-config", &server, "--agent-config", &agent, "-o", "json"]);
    let found: serde_json::Value = serde_json::from_slice(&looked.stdout).unwrap();
    let items = found.as_array().or_else(|| found.get("items")?.as_array()).unwrap().clone();
    let of = |item: &serde_json::Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let line = |item: &serde_json::Value| format!("{}; next: {}", of(item, "detail"), of(item, "next"));
    let all = items.iter().map(|item| (of(item, "check"), (of(item, "state"), line(item))));
    // The worst of one check.
    let mut worst: BTreeMap<String, (String, String)> = BTreeMap::new();
    for (check, found) in all {
        if found.0 != "ok" || !worst.contains_key(&check) {
            worst.insert(check, found);
        }
    }
    (worst, code(&looked))
}

fn mode(path: &str, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn failed(found: &BTreeMap<String, (String, String)>) -> Vec<&str> {
    found.iter().filter(|(_, (state, _))| state == "failed").map(|(check, _)| check.as_str()).collect()
}

async fn installed(sections: &str) -> Setup {
    let mut place = Setup::new().await;
    place.start_agent("web-1", sections);
    wait_for("the agent is connected", async || failed(&findings(&place).0).is_empty()).await;
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_machine_is_named_with_what_to_do() {
    let mut place = installed("").await;
    let (found, exit) = findings(&place);
    assert_eq!((failed(&found), exit), (vec![], 0), "{found:#?}");
    for check in [
        "server/configuration",
        "server/disk",
        "server/permissions",
        "server/authority",
        "server/clock",
        "server/port",
        "agent/configuration",
        "agent/permissions",
        "agent/certificate",
        "agent/server",
        "agent/process",
        "agent/connection",
        "connection/server",
        "connection/token",
        "control-plane/version",
        "control-plane/leader",
        "control-plane/store",
        "machine/clock",
    ] {
        assert!(found.contains_key(check), "{check}: {found:#?}");
    }
    let shown = place.run(&["doctor", "--server-config", &place.path("server.toml")]);
    assert!(text(&shown.stdout).contains("ok       server/port"), "{}", text(&shown.stdout));

    let key = place.path("server/pki/ca.key");
    mode(&key, 0o644);
    let (found, exit) = findings(&place);
    assert_eq!((failed(&found), exit), (vec!["server/permissions"], 1));
    assert!(found["server/permissions"].1.ends_with(&format!("next: chmod 0600 {key}")), "{found:#?}");
    mode(&key, 0o600);

    assert_eq!(place.stop_server().await, Some(0));
    let (found, exit) = findings(&place);
    assert_eq!(exit, 1);
    assert_eq!(found["server/port"].0, "warning", "it does not run: {found:#?}");
    for check in ["agent/server", "connection/server"] {
        assert_eq!(found[check].0, "failed", "{check}: {found:#?}");
    }
    let other = TcpListener::bind(("127.0.0.1", place.port)).unwrap();
    let (found, _) = findings(&place);
    let (state, line) = &found["server/port"];
    assert!(state == "failed" && line.contains("ss -ltnp"), "{line}");
    drop(other);

    std::fs::write(place.path("server.toml"), "listen = 7").unwrap();
    let (found, _) = findings(&place);
    assert_eq!(found["server/configuration"].0, "failed");
    let missing = place.run(&["doctor", "--agent-config", &place.path("none.toml"), "-o", "name"]);
    assert_eq!((code(&missing), text(&missing.stdout).contains("agent/configuration")), (1, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_starts_on_what_others_can_write_and_each_says_what_mends_it() {
    let mut place = installed("").await;
    assert_eq!(place.stop_server().await, Some(0));
    place.stop_agent("web-1");
    let (server, agent) = (place.path("server.toml"), place.path("web-1/agent.toml"));
    let runs = [("server", &server), ("agent", &agent)];
    for (path, open, sound, of) in [
        ("server", 0o777, 0o700, 0),
        ("server/pki", 0o770, 0o700, 0),
        ("server/pki/ca.key", 0o640, 0o600, 0),
        ("server/pki/secrets.key", 0o644, 0o600, 0),
        ("web-1/data", 0o777, 0o700, 1),
        ("web-1/data/ledger", 0o777, 0o700, 1),
        ("web-1/data/node.key", 0o666, 0o600, 1),
        ("web-1/data/identity.toml", 0o622, 0o600, 1),
    ] {
        let path = place.path(path);
        mode(&path, open);
        let (part, config) = runs[of];
        let mend = format!("chmod {sound:04o} {path}");
        for check in [&["--check"][..], &[]] {
            let refused = place.run(&[&[part, "run", "--config", config], check].concat());
            let said = text(&refused.stderr);
            assert!(code(&refused) == 7 && said.contains(&mend), "{path}: {said}");
        }
        let (found, _) = findings(&place);
        assert!(found[&format!("{part}/permissions")].1.ends_with(&format!("next: {mend}")), "{found:#?}");
        mode(&path, sound);
        let checked = place.run(&[part, "run", "--config", config, "--check"]);
        assert_eq!(code(&checked), 0, "{}", text(&checked.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_decommissioned_says_so_and_how_it_comes_back() {
    let mut place = installed("").await;
    done(&place, &["node", "decommission", "web-1", "--reason", "its disk died", "--yes"]);
    assert_eq!(place.agent_ended("web-1").await, Some(4));
    let (data, agent) = (place.path("web-1/data"), place.path("web-1/agent.toml"));
    let said = text(&place.run(&["agent", "status", "--data-dir", &data]).stdout);
    assert!(said.contains("(this node was decommissioned)") && !said.contains("connected since"), "{said}");
    assert!(said.contains("its disk died") && said.contains("bellwether agent join --force"), "{said}");
    let looked = text(&place.run(&["doctor", "--agent-config", &agent]).stdout);
    assert!(looked.contains("the agent has ended: ") && !looked.contains("systemctl start"), "{looked}");
    assert!(looked.contains("next: join again with a new join token"), "{looked}");
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            files_below(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

/// An installation with secrets of every kind, and a node that has read and printed them.
async fn with_secrets() -> Setup {
    let mut place = Setup::new().await;
    let conf = place.path("web-1/web.conf");
    let sections = format!(
        "[entity.web]\nenv = {{ KEY = {IN_CONFIG:?} }}\n\
         [[entity.web.file]]\npath = {conf:?}\ntext = \"{{{{ params.token }}}} {IN_CONFIG}\"\n\
         reload = [\"sh\", \"-c\", \"cat {conf}; echo reloaded\"]\n\
         [entity.web.process]\nargv = [\"sh\", \"-c\", \"cat {conf}; echo serving; exec sleep 600\"]\n"
    );
    place.start_agent("web-1", &sections);
    let hook = place.path("hook-token");
    std::fs::write(&hook, HOOK).unwrap();
    let config = place.path("server.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{before}\n[hook_tokens]\nmetrics = {{ file = {hook:?}, urls = [\"https://metrics.example/\"] }}\n")).unwrap();
    let set = place.run_with(&["secret", "set", "token", "--file", "-"], &format!("{STORED}\n"));
    assert_eq!(code(&set), 0, "{}", text(&set.stderr));
    let params = place.path("params.json");
    std::fs::write(&params, r#"{"token": {"$secret": "token"}}"#).unwrap();
    done(&place, &["profile", "replace", "web", "--file", &params]);
    done(&place, &["entity", "set", "web", "--selector", "all", "--profile", "web", "--soak", "0"]);
    done(&place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_for_a_person_has_what_is_needed_and_no_secret() {
    let place = with_secrets().await;
    let config = place.path("server.toml");
    let archive = place.path("debug.tar.gz");
    let agent = place.path("web-1/agent.toml");
    let on = ["--server-config", &config, "--agent-config", &agent];
    let bundle = [&["debug", "bundle"][..], &on, &["--process-logs", &archive]].concat();
    done(&place, &bundle);
    assert_eq!(std::fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::exists(format!("{archive}.partial")).unwrap());
    assert_ne!(code(&place.run(&bundle)), 0, "an archive is not replaced");

    let unpacked = tempfile::tempdir().unwrap();
    let tar = std::process::Command::new("tar").args(["-xzf", &archive, "-C"]).arg(unpacked.path()).status();
    assert!(tar.unwrap().success());
    let mut files = Vec::new();
    files_below(unpacked.path(), &mut files);
    let root = unpacked.path().join("bellwether-debug");
    for name in [
        "version.txt",
        "doctor.json",
        "missing.txt",
        "config/server.toml",
        "config/agent.toml",
        "agent/status.json",
        "agent/logs/web.log",
        "agent/logs/web.service.log",
        "control-plane/status.json",
        "control-plane/servers.json",
        "control-plane/nodes.json",
        "control-plane/ensembles.json",
        "control-plane/failures.json",
        "control-plane/clusters.json",
        "control-plane/runs.json",
        "control-plane/entities.json",
        "control-plane/rollouts/web.json",
        "control-plane/events.json",
    ] {
        assert!(files.contains(&root.join(name)), "{name}: {files:?}");
    }
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    assert!(read("agent/logs/web.log").contains("reloaded") && read("config/agent.toml").contains("web-1"));
    assert_eq!(read("missing.txt"), "");
    let admin = std::fs::read_to_string(place.path("server/admin-token")).unwrap();
    // What a file of the configuration has as text is known to the agent as no secret; what its process prints is not added by itself.
    for path in &files {
        let found = std::fs::read_to_string(path).unwrap();
        let is_log = path.starts_with(root.join("agent/logs"));
        let own = [STORED, HOOK, admin.trim(), "PRIVATE KEY"].into_iter();
        for secret in own.chain((!is_log).then_some(IN_CONFIG)) {
            assert!(!found.contains(secret), "{secret} in {}", path.display());
        }
    }
}
