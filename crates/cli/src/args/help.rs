//! The layout of help: commands grouped by purpose, global options listed once.

use clap::Command;

/// Every visible command, by purpose, in the order that help lists them.
pub(super) const GROUPS: [(&str, &[&str]); 7] = [
    ("Start here", &["demo", "dev", "server", "agent", "context", "simulate"]),
    ("Look", &["status", "describe", "why", "events", "explain", "filter", "doctor", "debug"]),
    ("Nodes", &["node", "pause", "join-token"]),
    (
        "Change",
        &[
            "entity",
            "rollout",
            "profile",
            "action",
            "task",
            "stage",
            "workflow",
            "schedule",
            "run",
            "job",
            "cluster",
            "apply",
            "diff",
            "export",
            "freeze",
            "stop-everything",
        ],
    ),
    (
        "Data and services",
        &["param", "secret", "service", "wait", "slot", "lock", "reaction", "sink", "ensemble"],
    ),
    ("Access and shell", &["token", "role", "auth", "audit", "namespace", "completions", "man"]),
    (
        "Fleet verbs",
        &[
            "trigger-update",
            "current-version",
            "pending-update",
            "local-version",
            "running-versions",
            "hosts-at-version",
            "verify-hosts",
            "check-single-version",
            "update-status",
            "delete-status",
            "get-failures",
            "publish-service",
            "cache-services",
            "local-health",
        ],
    ),
];

/// Help of the whole program. `before-help` holds the groups: names alone for `-h`, a line for each command for `--help`.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Global options:\n{options}{after-help}";

/// The end of every other command's help.
const GLOBAL: &str = "Global options such as -n, -o, -q, --context and --server: bellwether --help";

/// The end of the short help of the whole program.
const SHORT_END: &str = "More: bellwether --help (every command and option), bellwether COMMAND --help";

/// The end of the long help of the whole program.
const LONG_END: &str = "\
Environment:
  BELLWETHER_SERVER, BELLWETHER_CA, BELLWETHER_NAMESPACE, BELLWETHER_CONTEXT, BELLWETHER_TOKEN_FILE,
  BELLWETHER_LOG and NO_COLOR set the option of the same name; an option on the command line wins.
  BELLWETHER_TOKEN holds the API token itself, BELLWETHER_CONFIG is the path of the file with the contexts, and
  BELLWETHER_AGENT_DIR is the data directory of this machine's agent (--data-dir).";

/// The variables that the program reads, each with its meaning, for the manual pages.
pub(crate) const ENVIRONMENT: [(&str, &str); 10] = [
    ("BELLWETHER_SERVER", "Addresses of the servers, as --server"),
    ("BELLWETHER_CA", "File with the CA certificate, as --ca"),
    ("BELLWETHER_NAMESPACE", "Namespace, as --namespace"),
    ("BELLWETHER_CONTEXT", "Context to use instead of the current one, as --context"),
    ("BELLWETHER_TOKEN_FILE", "File with the API token, as --token-file"),
    ("BELLWETHER_TOKEN", "The API token itself; there is no option for it"),
    ("BELLWETHER_CONFIG", "Path of the file with the contexts"),
    ("BELLWETHER_AGENT_DIR", "Data directory of this machine's agent, as --data-dir"),
    ("BELLWETHER_LOG", "Log filter, as --log"),
    ("NO_COLOR", "Print without colour, as --no-color"),
];

/// Columns of the descriptions in the long list of commands.
const ABOUT_COLUMNS: usize = 56;

/// Columns of the names in the short list of commands.
const COLUMNS: usize = 60;

/// Options that the short help of the whole program leaves to the long one.
const LONG_ONLY: [&str; 8] =
    ["consistent", "no_color", "log", "log_format", "ca", "context", "server", "token_file"];

/// The command line with its help laid out.
pub(super) fn arranged(command: Command) -> Command {
    let globals: Vec<clap::Arg> =
        command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    let (short, long) = (short_list(), long_list(&command));
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let mut command = command
        .override_usage("bellwether [OPTIONS] <COMMAND>")
        .help_template(TEMPLATE)
        .before_help(short)
        .before_long_help(long)
        .after_help(SHORT_END)
        .after_long_help(LONG_END)
        .disable_help_subcommand(true);
    for id in LONG_ONLY {
        command = command.mut_arg(id, |arg| arg.hide_short_help(true));
    }
    for name in names {
        command = command.mut_subcommand(name, |sub| without_globals(sub, &globals));
    }
    command
}

/// A command below the top: global options work, but its help lists its own options alone.
fn without_globals(command: Command, globals: &[clap::Arg]) -> Command {
    let own: Vec<clap::Id> = command.get_arguments().map(|arg| arg.get_id().clone()).collect();
    let further = globals.iter().filter(|arg| !own.contains(arg.get_id()));
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let mut command = command
        .args(further.map(|arg| arg.clone().hide(true)))
        .after_help(GLOBAL)
        .disable_help_subcommand(true);
    for name in names {
        command = command.mut_subcommand(name, |sub| without_globals(sub, globals));
    }
    command
}

/// The groups with their commands' names alone.
fn short_list() -> String {
    let mut lines = Vec::new();
    for (title, names) in GROUPS {
        let mut line = String::new();
        let mut head = format!("{title}:");
        for name in names {
            if line.len() + name.len() > COLUMNS {
                lines.push(format!("{head:<18} {}", line.trim_end()));
                (line, head) = (String::new(), String::new());
            }
            line.push_str(name);
            line.push(' ');
        }
        lines.push(format!("{head:<18} {}", line.trim_end()));
    }
    lines.join("\n")
}

/// A text in lines that fit beside the names.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut() {
            if line.is_empty() {
                line.push_str(word);
            } else if line.len() + word.len() < ABOUT_COLUMNS {
                line.push(' ');
                line.push_str(word);
            } else {
                lines.push(word.to_owned());
            }
        }
    }
    lines
}

/// The groups with a line for each command.
fn long_list(command: &Command) -> String {
    let mut lines = Vec::new();
    for (title, names) in GROUPS {
        lines.push(format!("{title}:"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let mut name = *name;
            for line in wrapped(&about) {
                lines.push(format!("  {name:<21} {line}"));
                name = "";
            }
        }
        lines.push(String::new());
    }
    lines.join("\n").trim_end().to_owned()
}
