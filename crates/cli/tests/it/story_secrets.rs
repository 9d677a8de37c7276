//! Secrets on real processes: a declared param, a secret of the namespace, and one that a provider has reach the file that names them,
//! and no other place; a lost key stops nothing but secrets; a new key takes over.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::place::{Setup, code, done, text, wait_for};

const OWN: &str = "own-hunter2-aaaa";
const STORED: &str = "stored-hunter2-bbbb";
const PROVIDED: &str = "provided-hunter2-cccc";
const LATER: &str = "later-hunter2-dddd";

/// Files that are no part of the installation: what people keep elsewhere.
struct Elsewhere(tempfile::TempDir);

impl Elsewhere {
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

/// An installation with a node whose file has a secret of each kind. Its reload prints the file, and fails if it is told to.
async fn installed(elsewhere: &Elsewhere) -> Setup {
    let mut place = Setup::new().await;
    place.kill_server();
    let vault = elsewhere.write("vault", PROVIDED);
    let config = place.path("server.toml");
    let table = format!(
        "[secret_providers.vault]\ncommand = [\"sh\", \"-c\", \"test $1 = kv/key && cat {vault}\", \"sh\"]\n"
    );
    let before = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{before}\n{table}")).unwrap();
    place.start_server().await;
    let (conf, broken) = (place.path("web-1/web.conf"), place.path("broken"));
    let sections = format!(
        "[[entity.web.file]]\npath = {conf:?}\n\
         text = \"{{{{ params.user }}}} {{{{ params.password }}}} {{{{ params.token }}}} {{{{ params[\\\"vault/key\\\"] }}}}\"\n\
         reload = [\"sh\", \"-c\", \"cat {conf}; cat {conf} >&2; test ! -e {broken}\"]\n\
         [[entity.web.file]]\npath = {:?}\ntext = \"{{{{ params.user }}}}\"\n",
        place.path("web-1/plain.conf"),
    );
    place.start_agent("web-1", &sections);
    done(&place, &["param", "declare", "password", "--secret", "--type", "string"]);
    let set = place.run_with(&["secret", "set", "db/token", "--file", "-"], &format!("{STORED}\n"));
    assert_eq!(code(&set), 0, "{}", text(&set.stderr));
    done(&place, &["secret", "set", "vault-key", "--provider", "vault", "--reference", "kv/key"]);
    let params = format!(
        r#"{{"user": "db", "password": "{OWN}", "token": {{"$secret": "db/token"}}, "vault/key": {{"$secret": "vault-key"}}}}"#
    );
    let file = elsewhere.write("params.json", &params);
    done(&place, &["profile", "replace", "web", "--file", &file]);
    let set = ["entity", "set", "web", "--selector", "role=web", "--profile", "web", "--batch", "100%"];
    done(&place, &[&set[..], &["--soak", "500ms"]].concat());
    done(&place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
    place
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path(), found),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            Ok(_) | Err(_) => {}
        }
    }
}

fn has(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
}

/// Every file of the installation that has the text of a secret, besides the node's own secrets and the file that it is for.
fn leaks(place: &Setup) -> Vec<String> {
    let mut files = Vec::new();
    files_below(place.dir.path(), &mut files);
    let allowed = [place.path("web-1/web.conf"), place.path("web-1/.web.conf.bellwether-old")];
    let secrets = place.path("web-1/data/secrets");
    let others = files
        .into_iter()
        .filter(|path| !path.starts_with(&secrets) && !allowed.contains(&path.display().to_string()));
    let leaking = others.filter(|path| {
        let bytes = std::fs::read(path).unwrap_or_default();
        [OWN, STORED, PROVIDED, LATER].iter().any(|secret| has(&bytes, secret))
    });
    leaking.map(|path| path.display().to_string()).collect()
}

fn shows_no_secret(place: &Setup, args: &[&str]) -> String {
    let output = place.run(args);
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    for secret in [OWN, STORED, PROVIDED, LATER] {
        assert!(!all.contains(secret), "{args:?} shows a secret: {all}");
    }
    all
}

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Whatever is asked, secrets are shown as marks.
fn every_answer_has_marks(place: &Setup) {
    let shown = shows_no_secret(place, &["profile", "get", "web"]);
    assert!(shown.contains("***") && shown.contains("db/token"), "{shown}");
    for args in [
        &["profile", "get", "web", "-o", "json"][..],
        &["profile", "history", "web"],
        &["profile", "diff", "web", "1", "2"],
        &["param", "explain", "web-1", "password", "--entity", "web"],
        &["param", "get", "password"],
        &["secret", "list", "-o", "json"],
        &["secret", "get", "db/token"],
        &["export"],
        &["events"],
        &["why", "web"],
        &["why", "web-1"],
        &["describe", "node/web-1"],
        &["describe", "entity/web"],
        &["get-failures", "-o", "json"],
        &["node", "logs", "web-1", "web"],
        &["rollout", "get", "web", "-o", "json"],
        &["audit", "list", "-o", "json"],
    ] {
        shows_no_secret(place, args);
    }
}

/// Reading a value is a right of its own, and is recorded.
fn values_are_revealed_to_those_who_may(place: &Setup) {
    assert_eq!(done(place, &["secret", "reveal", "db/token"]).trim(), STORED);
    assert_eq!(done(place, &["secret", "reveal", "vault-key"]).trim(), PROVIDED);
    assert_eq!(done(place, &["secret", "reveal", "password", "--profile", "web"]).trim(), OWN);
    let operator = done(place, &["token", "create", "op", "--role", "operator", "-q"]);
    let mut command = place.command(&["secret", "reveal", "db/token"]);
    let refused = command.env("BELLWETHER_TOKEN", operator.trim()).output().unwrap();
    assert!(text(&refused.stderr).contains("reveal"), "{}", text(&refused.stderr));
    assert_ne!(code(&refused), 0);
    let audit = done(place, &["audit", "list", "-o", "json"]);
    assert!(audit.contains("revealed/secrets/db/token") && audit.contains("nodes/web-1/secrets"), "{audit}");
}

/// In the store, the ledger, logs and a backup there is none, nor in the arguments of a process.
fn nothing_at_rest_has_a_secret(place: &Setup) {
    let config = place.path("server.toml");
    done(place, &["server", "backup", "--config", &config, &place.path("backup")]);
    assert_eq!(leaks(place), [""; 0]);
    let secrets = place.path("web-1/data/secrets");
    for entry in std::fs::read_dir(&secrets).unwrap().flatten() {
        assert_eq!(mode(&entry.path().display().to_string()), 0o600);
    }
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        assert!(!has(&arguments, OWN) && !has(&arguments, STORED), "{}", entry.path().display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_reaches_the_file_that_names_it_and_no_other_place() {
    let elsewhere = Elsewhere(tempfile::tempdir().unwrap());
    let mut place = installed(&elsewhere).await;
    let conf = place.path("web-1/web.conf");
    let wanted = format!("db {OWN} {STORED} {PROVIDED}");
    assert_eq!(std::fs::read_to_string(&conf).unwrap().trim(), wanted);
    assert_eq!((mode(&conf), mode(&place.path("web-1/plain.conf"))), (0o600, 0o644));

    // A reload that prints the file and fails: the reason and the log have marks in place of the secrets.
    std::fs::write(place.path("broken"), "").unwrap();
    done(&place, &["profile", "set", "web", "user=other"]);
    let failed = place.run(&["rollout", "start", "web", "-w", "--timeout", "60s"]);
    assert_ne!(code(&failed), 0);
    assert!(!has(&failed.stdout, OWN) && !has(&failed.stderr, OWN), "{}", text(&failed.stderr));
    std::fs::remove_file(place.path("broken")).unwrap();
    done(&place, &["profile", "set", "web", "user=third"]);
    done(&place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
    assert!(std::fs::read_to_string(&conf).unwrap().starts_with("third own-hunter2"));

    every_answer_has_marks(&place);
    values_are_revealed_to_those_who_may(&place);

    // A new value is copied on request, and rolled out as any other change.
    let set = place.run_with(&["secret", "set", "db/token", "--file", "-"], LATER);
    assert!(text(&set.stderr).contains("1 param still"), "{}", text(&set.stderr));
    done(&place, &["secret", "propagate", "db/token"]);
    assert!(std::fs::read_to_string(&conf).unwrap().contains(STORED), "a profile is rolled out");
    done(&place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
    assert!(std::fs::read_to_string(&conf).unwrap().contains(LATER));

    // Exported documents change nothing when they are applied.
    let exported = place.path("all.yaml");
    std::fs::write(&exported, done(&place, &["export"])).unwrap();
    let diff = place.run(&["diff", "-f", &exported]);
    assert_eq!(code(&diff), 0, "{}", text(&diff.stdout));

    place.kill_server();
    nothing_at_rest_has_a_secret(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_key_stops_nothing_but_secrets_and_a_new_key_takes_over() {
    let elsewhere = Elsewhere(tempfile::tempdir().unwrap());
    let mut place = installed(&elsewhere).await;
    let (key, config) = (place.path("server/pki/secrets.key"), place.path("server.toml"));
    assert_eq!(mode(&key), 0o600);
    let kept = std::fs::read_to_string(&key).unwrap();

    // Without the file: what is no secret works, and every answer about a secret says what is missing.
    place.kill_server();
    std::fs::remove_file(&key).unwrap();
    place.start_server().await;
    let lost = place.run(&["secret", "reveal", "db/token"]);
    assert_eq!(code(&lost), 7, "{}", text(&lost.stderr));
    assert!(
        text(&lost.stderr).contains("copy pki/secrets.key from another server"),
        "{}",
        text(&lost.stderr)
    );
    let refused = place.run_with(&["secret", "set", "other", "--file", "-"], "x");
    assert!(text(&refused.stderr).contains("no key for secrets"), "{}", text(&refused.stderr));
    assert!(done(&place, &["secret", "keys"]).contains("warning: "));
    done(&place, &["profile", "set", "plain", "a=1"]);
    done(&place, &["profile", "set", "web", "user=second"]);
    done(&place, &["rollout", "start", "web"]);
    wait_for("the reason is shown", async || {
        text(&place.run(&["why", "web-1"]).stdout).contains("lacks the key")
            || text(&place.run(&["why", "web"]).stdout).contains("lacks the key")
    })
    .await;

    // A truncated file is refused at the start, with its line.
    place.kill_server();
    let put_back = |text: &str| {
        std::fs::write(&key, text).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    put_back(kept.trim_end().get(..kept.len() - 12).unwrap());
    let bad = place.run(&["server", "run", "--config", &config]);
    assert!(text(&bad.stderr).contains("line 3 of") && code(&bad) != 0, "{}", text(&bad.stderr));

    // With it, the rollout goes on.
    put_back(&kept);
    place.start_server().await;
    place.ended().await;
    let conf = place.path("web-1/web.conf");
    assert!(std::fs::read_to_string(&conf).unwrap().starts_with("second own-hunter2"));

    // A new key takes over everything, and the old one may go.
    let added = done(&place, &["server", "secret-key", "--config", &config, "-o", "json"]);
    let added: serde_json::Value = serde_json::from_str(&added).unwrap();
    place.kill_server();
    place.start_server().await;
    wait_for("every secret is encrypted with the new key", async || {
        let keys: serde_json::Value =
            serde_json::from_str(&done(&place, &["secret", "keys", "-o", "json"])).unwrap();
        let [new, old] = keys["keys"].as_array().unwrap().as_slice() else { return false };
        new["id"] == added["key"] && new["active"] == true && new["secrets"] != 0 && old["secrets"] == 0
    })
    .await;
    place.kill_server();
    let both = std::fs::read_to_string(&key).unwrap();
    let lines: Vec<&str> = both.lines().filter(|line| !line.starts_with('#')).collect();
    std::fs::write(&key, format!("{}\n", lines[1])).unwrap();
    place.start_server().await;
    assert_eq!(done(&place, &["secret", "reveal", "db/token"]).trim(), STORED);
    assert_eq!(done(&place, &["secret", "reveal", "password", "--profile", "web"]).trim(), OWN);
    done(&place, &["profile", "set", "web", "user=third"]);
    done(&place, &["rollout", "start", "web", "-w", "--timeout", "60s"]);
}
