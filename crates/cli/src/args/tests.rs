//! Laws of the whole command line, checked by walking over every command and flag.

use clap::{Arg, Command};

use super::help::GROUPS;

/// Names that mean the same as another flag, with the one name to use.
const ONE_NAME: [(&str, &str); 13] = [
    ("targets", "selector"),
    ("label-selector", "selector"),
    ("why", "reason"),
    ("note", "reason"),
    ("message", "reason"),
    ("comment", "reason"),
    ("with-token-file", "token-file"),
    ("lifetime", "ttl"),
    ("wait-for", "timeout"),
    ("deadline-after", "timeout"),
    ("slots", "capacity"),
    ("force-yes", "yes"),
    ("format-output", "output"),
];

/// One meaning has one value name and one short form, on every command.
const ONE_FORM: [(&str, &str, Option<char>); 11] = [
    ("filter", "FILTER", Some('l')),
    ("selector", "SELECTOR", Some('l')),
    ("reason", "TEXT", None),
    ("entity", "ENTITY", Some('e')),
    ("node", "NODE", None),
    ("timeout", "TIME", None),
    ("ttl", "TIME", None),
    ("token-file", "FILE", None),
    ("data-dir", "DIR", None),
    ("file", "FILE", Some('f')),
    ("config", "FILE", Some('c')),
];

/// First words of help that is not an imperative or the name of a thing.
const VAGUE: [&str; 24] = [
    "A",
    "An",
    "The",
    "Its",
    "It",
    "One",
    "Which",
    "What",
    "Who",
    "Where",
    "When",
    "Why",
    "Whether",
    "How",
    "Only",
    "Their",
    "Them",
    "Those",
    "That",
    "This",
    "So",
    "Everything",
    "Something",
    "Say",
];

/// Every command with its full name, the hidden ones too.
fn all() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    collect("bellwether", super::command(), &mut found);
    found
}

fn collect(name: &str, command: Command, found: &mut Vec<(String, Command)>) {
    for inner in command.get_subcommands() {
        collect(&format!("{name} {}", inner.get_name()), inner.clone(), found);
    }
    found.push((name.to_owned(), command));
}

/// Every argument with the name of its command; the copies of global options are left out.
fn all_arguments() -> Vec<(String, Arg)> {
    let own = |(name, command): (String, Command)| {
        let args: Vec<Arg> = command.get_arguments().cloned().collect();
        let top = name == "bellwether";
        args.into_iter().filter(move |arg| top || !arg.is_global_set()).map(move |arg| (name.clone(), arg))
    };
    all().into_iter().flat_map(own).collect()
}

fn is_plain(help: &str) -> bool {
    let first = help.split_whitespace().next().unwrap_or_default();
    help.starts_with(|c: char| c.is_uppercase()) && !help.trim_end().ends_with('.') && !VAGUE.contains(&first)
}

#[test]
fn the_command_line_fits_together() {
    super::command().debug_assert();
}

#[test]
fn every_command_and_flag_has_plain_help() {
    for (name, command) in all() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(is_plain(&about), "{name}: {about:?}");
    }
    for (name, arg) in all_arguments() {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        assert!(is_plain(&help), "{name} {}: {help:?}", arg.get_id());
    }
}

#[test]
fn every_value_has_a_name() {
    for (name, arg) in all_arguments() {
        if !arg.get_action().takes_values() {
            continue;
        }
        let value = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string).unwrap_or_default();
        assert!(!value.is_empty() && value.to_uppercase() == value, "{name} {}: {value:?}", arg.get_id());
    }
}

#[test]
fn one_meaning_has_one_flag() {
    for (command, arg) in all_arguments() {
        let Some(long) = arg.get_long() else { continue };
        let other = ONE_NAME.iter().find(|(wrong, _)| *wrong == long);
        assert_eq!(other, None, "{command} --{long}");
        let Some((_, value, short)) = ONE_FORM.iter().find(|(name, _, _)| *name == long) else { continue };
        let named = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string).unwrap_or_default();
        assert_eq!((named.as_str(), arg.get_short()), (*value, *short), "{command} --{long}");
    }
}

#[test]
fn every_visible_command_is_in_one_group_of_the_help() {
    let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let command = super::command();
    let visible = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
    listed.sort_unstable();
    visible.sort_unstable();
    assert_eq!(listed, visible);
}

#[test]
fn short_help_of_the_program_fits_a_small_terminal() {
    let help = super::command().term_width(80).render_help().to_string();
    let widest = help.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    assert!(help.lines().count() <= 24, "{} lines:\n{help}", help.lines().count());
    assert!(widest <= 80, "{widest} columns:\n{help}");
    assert!(!help.contains("demo-service") && !help.contains("lock-child"), "{help}");
}

#[test]
fn global_options_are_listed_once() {
    for (name, mut command) in all() {
        let help = command.render_long_help().to_string();
        assert!(!help.contains("--contexts-file"), "{name}");
        assert_eq!(help.contains("--consistent"), name == "bellwether", "{name}:\n{help}");
    }
}

#[test]
fn a_verb_without_its_noun_is_found_under_its_nouns() {
    let found = super::commands_named("history");
    assert_eq!(found, ["bellwether profile history", "bellwether rollout history"]);
    assert!(super::commands_named("rollout").is_empty(), "a command of the first level");
    assert!(super::commands_named("histroy").is_empty());
}

#[test]
fn every_command_that_deletes_or_drains_asks_by_one_rule() {
    for (name, command) in all() {
        let deletes = [" delete", " decommission", " stop-everything", " apply", " drain"]
            .iter()
            .any(|end| name.ends_with(end));
        // Ends what `drain` began: a script passes --yes to both.
        let accepts = name.ends_with(" uncordon");
        let asks = command.get_arguments().any(|arg| arg.get_long() == Some("yes"));
        // With --accept, members leave.
        // With fewer members than there are, some leave.
        // With --accept-data-loss, writes are lost.
        // What is retired is never trusted again.
        let removes = [
            "bellwether cluster members",
            "bellwether ensemble defragment",
            "bellwether ensemble failover",
            "bellwether ensemble remove-foreign-member",
            "bellwether ensemble remove-osd",
            "bellwether ensemble replace",
            "bellwether ensemble replace-osd",
            "bellwether ensemble restart",
            "bellwether ensemble resume",
            "bellwether ensemble scale",
            "bellwether ensemble set",
            "bellwether server ca retire",
        ];
        let removes = removes.contains(&name.as_str());
        assert_eq!(deletes || accepts || removes, asks, "{name}");
    }
}

#[test]
fn the_guide_lists_every_command() {
    let page = include_str!("../../../../docs/guide/commands.md");
    for (name, command) in all() {
        let hidden = name == "bellwether lock-child" || name == "bellwether demo-service";
        // The three results of a check share a row.
        if hidden || command.has_subcommands() || name.starts_with("bellwether service check ") {
            continue;
        }
        let words = name.trim_start_matches("bellwether ");
        assert!(page.contains(&format!("| `{words}")), "the guide does not list {words}");
    }
}

#[test]
fn the_guide_shows_the_short_help() {
    let page = include_str!("../../../../docs/guide/commands.md");
    let help = super::command().term_width(80).render_help().to_string();
    assert!(page.contains(help.trim_end()), "the guide does not show:\n{help}");
    let mut whole = super::command().term_width(80);
    whole.build();
    let rollout = whole.find_subcommand_mut("rollout").unwrap();
    let noun = rollout.render_help().to_string();
    let verb = rollout.find_subcommand_mut("approve").unwrap().render_help().to_string();
    for (command, help) in [("rollout", noun), ("rollout approve", verb)] {
        let shown = format!("$ bellwether {command} -h\n{}", help.trim_end());
        assert!(page.contains(&shown), "the guide does not show:\n{shown}");
    }
}
