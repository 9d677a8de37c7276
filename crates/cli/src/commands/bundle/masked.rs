//! Configuration without secrets: keys, numbers and booleans stay, and texts under keys that are known to hold none. Every other text
//! is replaced, so that a key that is added later is masked until somebody decides otherwise.

use toml::{Table, Value};

/// What stands in place of a text.
const MASK: &str = "***";

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

/// Tables whose keys are free, so that a key says nothing of its value.
const FREE: [&str; 4] = ["env", "hook_tokens", "meta", "headers"];

/// The text of a configuration file without secrets and comments.
///
/// # Errors
/// It is not TOML; the reason does not quote it.
pub(super) fn configuration(text: &str) -> Result<String, String> {
    let table: Table = text.parse().map_err(|_| "it is not valid TOML".to_owned())?;
    toml::to_string_pretty(&masked_table(table, false)).map_err(|error| error.to_string())
}

fn masked_table(table: Table, is_free: bool) -> Table {
    let masked = table.into_iter().map(|(key, value)| {
        let is_shown = !is_free && SHOWN.contains(&key.as_str());
        let is_free = is_free || FREE.contains(&key.as_str());
        let value = masked(value, is_shown, is_free);
        (key, value)
    });
    masked.collect()
}

fn masked(value: Value, is_shown: bool, is_free: bool) -> Value {
    match value {
        Value::String(text) => Value::String(shown(text, is_shown)),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| masked(item, is_shown, is_free)).collect())
        }
        Value::Table(table) => Value::Table(masked_table(table, is_free)),
        // A number may be a PIN in a table of free keys.
        Value::Integer(_) | Value::Float(_) if is_free => Value::String(MASK.to_owned()),
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
