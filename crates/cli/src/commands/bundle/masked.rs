//! Configuration without secrets: keys, numbers and booleans stay, and texts under keys that are known to hold none. Every other text
//! is replaced, so that a key that is added later is masked until somebody decides otherwise. In `[ensembles]`, only what may be secret is.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use toml::{Table, Value};

/// What stands in place of a text.
const MASK: &str = "***";

/// Fewest bytes of a text that is looked for elsewhere: shorter ones are in other words.
const SHORTEST: usize = 4;

/// Keys whose texts are shown: names, paths, addresses, times and choices.
const SHOWN: [&str; 54] = [
    "action",
    "address",
    "addresses",
    "allow",
    "before",
    "bind",
    "ca_file",
    "cert_file",
    "cgroup",
    "clock_synchronized_file",
    "cpu_quota",
    "data_dir",
    "datacentre",
    "debounce",
    "dir",
    "domain",
    "drain_time",
    "endpoints",
    "events_kept",
    "fall",
    "follows",
    "format",
    "interval",
    "key_file",
    "level",
    "listen",
    "memory_max",
    "mode",
    "name",
    "names",
    "namespace",
    "needs",
    "on_store_failure",
    "owner",
    "path",
    "plain_listen",
    "prefix",
    "reconnect_within",
    "required",
    "rise",
    "runs_kept",
    "server",
    "service_dir",
    "services",
    "services_kept",
    "services_on_exit",
    "stop_timeout",
    "suspect_after",
    "tags",
    "tasks",
    "timeout",
    "ttl",
    "unreachable_after",
    "user",
];

/// The section whose texts are shown but for those that may be secret: names and paths of programs, and why a node gets no member.
const OPEN: &str = "ensembles";

/// What is in a key, or an argument of a command, whose value may be secret.
const SECRET: [&str; 6] = ["pass", "secret", "token", "key", "credential", "auth"];

/// Which texts of a table are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Those of keys that are known.
    Known,
    /// None.
    Nothing,
    /// Those that are not secret by their key.
    Open,
}

/// Tables whose keys are free, so that a key says nothing of its value.
const FREE: [&str; 4] = ["env", "hook_tokens", "meta", "headers"];

/// The text of a configuration file without secrets and comments.
///
/// # Errors
/// It is not TOML; the reason does not quote it.
pub(super) fn configuration(text: &str) -> Result<String, String> {
    let table: Table = text.parse().map_err(|_| "it is not valid TOML".to_owned())?;
    toml::to_string_pretty(&masked_table(table, Shown::Known)).map_err(|error| error.to_string())
}

/// The texts of a configuration file that [`configuration`] masks, and that are long enough to be told from other words. None of one that is not
/// TOML: what is said of that quotes nothing.
pub(super) fn hidden(text: &str) -> BTreeSet<String> {
    let (mut hidden, Ok(table)) = (BTreeSet::new(), text.parse::<Table>()) else { return BTreeSet::new() };
    let masked = masked_table(table.clone(), Shown::Known);
    compare(&Value::Table(table), &Value::Table(masked), &mut hidden);
    hidden
}

fn compare(plain: &Value, masked: &Value, hidden: &mut BTreeSet<String>) {
    match (plain, masked) {
        (Value::Table(plain), Value::Table(masked)) => {
            plain
                .iter()
                .zip(masked.iter())
                .for_each(|((_, plain), (_, masked))| compare(plain, masked, hidden));
        }
        (Value::Array(plain), Value::Array(masked)) => {
            plain.iter().zip(masked).for_each(|(plain, masked)| compare(plain, masked, hidden));
        }
        (Value::String(text), Value::String(mask)) if mask == MASK && text.len() >= SHORTEST => {
            hidden.insert(text.clone());
        }
        (_, _) => {}
    }
}

/// What is said of a configuration, without the texts that are hidden in it.
pub(super) fn without(text: &str, hidden: &BTreeSet<String>) -> String {
    let mut longest: Vec<&String> = hidden.iter().collect();
    longest.sort_unstable_by_key(|hidden| Reverse(hidden.len()));
    longest.into_iter().fold(text.to_owned(), |text, hidden| {
        // As it is, and as it stands in quotes.
        let quoted = hidden.escape_debug().to_string();
        text.replace(hidden, MASK).replace(&quoted, MASK)
    })
}

/// The output of commands without their arguments, which stand in the line before it.
pub(super) fn log(text: &str) -> String {
    let line = |line: &str| match line.split_once(" [") {
        Some((run, _)) if line.starts_with("--- ") => format!("{run} [{MASK}]"),
        Some(_) | None => line.to_owned(),
    };
    let mut masked: String = text.lines().map(|text| line(text) + "\n").collect();
    if !text.ends_with('\n') {
        masked.pop();
    }
    masked
}

fn masked_table(table: Table, which: Shown) -> Table {
    let masked = table.into_iter().map(|(key, value)| {
        let (is_shown, inner) = match which {
            Shown::Nothing => (false, Shown::Nothing),
            Shown::Known | Shown::Open if FREE.contains(&key.as_str()) => (false, Shown::Nothing),
            Shown::Known if key == OPEN => (false, Shown::Open),
            Shown::Known => (SHOWN.contains(&key.as_str()), Shown::Known),
            Shown::Open => (!may_be_secret(&key), Shown::Open),
        };
        let value = match (which, value) {
            (Shown::Open, Value::Array(words)) if is_shown => Value::Array(arguments(words)),
            (Shown::Known | Shown::Nothing | Shown::Open, value) => masked(value, is_shown, inner),
        };
        (key, value)
    });
    masked.collect()
}

/// Whether the value of what has this name may be secret.
fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|word| name.contains(word))
}

/// The arguments of a command, or other words, without those that may be secret, and without the values of options that may be.
fn arguments(words: Vec<Value>) -> Vec<Value> {
    let mut is_value = false;
    let each = words.into_iter().map(|word| {
        let text = word.as_str().unwrap_or_default();
        let (follows, may_be) = (text.starts_with('-') && !text.contains('='), may_be_secret(text));
        let is_option = follows && may_be;
        let value = masked(word, !is_value && (!may_be || is_option), Shown::Open);
        is_value = is_option;
        value
    });
    each.collect()
}

fn masked(value: Value, is_shown: bool, inner: Shown) -> Value {
    match value {
        Value::String(text) => Value::String(shown(text, is_shown)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| masked(item, is_shown, inner)).collect())
        }
        Value::Table(table) => Value::Table(masked_table(table, inner)),
        // A number may be a PIN in a table of free keys.
        Value::Integer(_) | Value::Float(_) if inner == Shown::Nothing => Value::String(MASK.to_owned()),
        other @ (Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_)) => other,
    }
}

/// A text, unless it is masked; an address with a user in it always is.
fn shown(text: String, is_shown: bool) -> String {
    let has_user = text.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    if is_shown && !has_user { text } else { MASK.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_configuration_does_not_quote_what_is_masked_in_it() {
        let text = "[agent]\nname = \"web-1\"\n[entity.web.process]\nenv = \"hunter2-env\"\nargv = [\"a\", \"say \\\"hunter2\\\"\"]\n";
        let hidden = hidden(text);
        assert_eq!(hidden, ["hunter2-env", "say \"hunter2\""].map(str::to_owned).into());
        let said = r#"web-1: env: invalid type: string "hunter2-env", in "say \"hunter2\"""#;
        assert_eq!(without(said, &hidden), r#"web-1: env: invalid type: string "***", in "***""#);
        assert!(super::hidden("hunter2 = = 1").is_empty());
    }

    #[test]
    fn a_log_has_no_arguments_of_commands() {
        let text = "--- n1/web/1 [\"sh\", \"-c\", \"echo hunter2 [x\"]\nout [1]\n--- exit 0\nrest";
        assert_eq!(log(text), "--- n1/web/1 [***]\nout [1]\n--- exit 0\nrest");
    }

    #[test]
    fn what_a_node_has_for_ensembles_is_shown_but_for_what_may_be_secret() {
        let text = r#"
            [ensembles]
            etcd = "/opt/etcd"
            units = ["web@.service"]
            [ensembles.device_paths]
            d1 = "/dev/loop1"
            [ensembles.programs.token-server]
            argv = ["/bin/web", "{listen}", "--cache", "/srv", "--password", "hunter2-a", "--api-token=hunter2-b", "postgres://u:hunter2-c@db"]
            http = "/health"
            client_secret = "hunter2-d"
            env = { LOG = "hunter2-e", PIN = 2 }
        "#;
        let masked = configuration(text).unwrap();
        assert!(!masked.contains("hunter2") && !masked.contains("PIN = 2"), "{masked}");
        let shown = [
            "/opt/etcd",
            "web@.service",
            "/dev/loop1",
            "/bin/web",
            "{listen}",
            "--cache",
            "/srv",
            "--password",
            "/health",
        ];
        for kept in shown {
            assert!(masked.contains(kept), "{kept}: {masked}");
        }
        let hidden = hidden(text);
        assert!(hidden.contains("hunter2-a") && !hidden.contains("/opt/etcd"), "{hidden:?}");
    }

    #[test]
    fn texts_are_masked_unless_their_key_is_known_to_hold_no_secret() {
        let text = r#"
            # the password is hunter2-comment
            [agent]
            name = "web-1"
            server = ["https://cp:7420", "https://user:hunter2-url@cp:7420"]
            [entity.web]
            static = ["/bin/install", "--password=hunter2-argv"]
            timeout = "5m"
            env = { PIN = 1234567, name = "hunter2-env" }
            [[entity.web.file]]
            path = "/etc/web.conf"
            text = "password = hunter2-text"
            [hook_tokens]
            path = "hunter2-hook"
            [probe.db]
            postgresql = "postgres://db:hunter2-probe@localhost"
            interval = "1s"
            [later]
            newly_added = "hunter2-new"
            count = 3
        "#;
        let masked = configuration(text).unwrap();
        assert!(!masked.contains("hunter2") && !masked.contains("1234567"), "{masked}");
        for kept in
            ["\"web-1\"", "https://cp:7420", "\"5m\"", "/etc/web.conf", "\"1s\"", "count = 3", "static"]
        {
            assert!(masked.contains(kept), "{kept}: {masked}");
        }
        let broken = configuration("password = hunter2").unwrap_err();
        assert!(!broken.contains("hunter2"), "{broken}");
    }
}
