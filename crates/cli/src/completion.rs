//! Completion in shells: of commands and options from the command line's definition, of names from the server.

use std::ffi::OsStr;

use bellwether_api::v1::policy::{OnFailure, Policy, Supersede};
use clap::{Arg, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use crate::args::{self, Global};
use crate::exit::Failure;
use crate::names::{self, Kind};

/// The environment variable by which a shell asks for completion.
const VARIABLE: &str = "COMPLETE";

/// Answers a shell that asks for completion; `false` if none does.
///
/// # Errors
/// What clap reports of the question.
pub(crate) fn answer() -> Result<bool, clap::Error> {
    let directory = std::env::current_dir().ok();
    CompleteEnv::with_factory(command).var(VARIABLE).try_complete(std::env::args_os(), directory.as_deref())
}

/// The script that a shell loads; it calls this program for each completion.
pub(crate) fn script(shell: &str) -> Result<String, Failure> {
    let failed = |reason: String| Failure::ours(format!("write the completion script: {reason}"));
    let shells = Shells::builtins();
    let completer = shells.completer(shell).ok_or_else(|| failed(format!("{shell} is not a known shell")))?;
    let mut script = Vec::new();
    let written =
        completer.write_registration(VARIABLE, "bellwether", "bellwether", "bellwether", &mut script);
    written.map_err(|error| failed(error.to_string()))?;
    String::from_utf8(script).map_err(|error| failed(error.to_string()))
}

/// The command line, each value that names an object with its candidates.
fn command() -> Command {
    with_candidates(args::command())
}

fn with_candidates(command: Command) -> Command {
    let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    let inner: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let mut command = command;
    for id in ids {
        let of = command.get_name().to_owned();
        command = command.mut_arg(id, |arg| completed(&of, arg));
    }
    for name in inner {
        command = command.mut_subcommand(name, with_candidates);
    }
    command
}

/// An argument of a command with the candidates for its value.
fn completed(command: &str, arg: Arg) -> Arg {
    let value = arg.get_value_names().and_then(<[_]>::first).map(ToString::to_string).unwrap_or_default();
    let words =
        |words: &'static [&'static str]| ArgValueCandidates::new(move || plain(words.iter().copied()));
    match (Kind::of_value(&value), value.as_str()) {
        (Some(kind), _) => arg.add(ArgValueCandidates::new(move || plain(names_of(kind)))),
        (None, "SUBJECT") => {
            let kinds = kinds_of(command);
            arg.add(ArgValueCompleter::new(move |typed: &OsStr| subjects(kinds, typed)))
        }
        (None, "PATH") => arg.add(ArgValueCandidates::new(|| plain(crate::fields::paths()))),
        (None, "FIELD") => arg.add(ArgValueCandidates::new(|| plain(flag_names()))),
        (None, "RESPONSE") => arg.add(words(OnFailure::WORDS)),
        (None, "EFFECT") => arg.add(words(Supersede::WORDS)),
        (None, "ORDER") => arg.add(words(&["name", "label:", "shuffle:", "followers-first"])),
        (None, "BOOL") => arg.add(words(&["true", "false"])),
        (None, "STATE") => arg.add(words(&["success", "failed", "running", "pending"])),
        (None, _) => arg,
    }
}

/// The fields of a policy as its flags are written.
fn flag_names() -> impl Iterator<Item = String> {
    Policy::field_names().iter().map(|name| name.replace('_', "-"))
}

/// The kinds of subjects that a command takes.
fn kinds_of(command: &str) -> &'static [&'static str] {
    const EXPLAINED: &[&str] = &["node/", "entity/", "service/", "target/", "slot/"];
    const DESCRIBED: &[&str] =
        &["node/", "entity/", "service/", "target/", "slot/", "rollout/", "freeze/", "pause/", "profile/"];
    const RECORDED: &[&str] = &[
        "node/", "entity/", "service/", "target/", "slot/", "rollout/", "freeze/", "pause/", "profile/",
        "token/",
    ];
    match command {
        "why" => EXPLAINED,
        "events" => RECORDED,
        _ => DESCRIBED,
    }
}

fn plain(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<CompletionCandidate> {
    names.into_iter().map(|name| CompletionCandidate::new(name.into())).collect()
}

/// Subjects such as `node/web-1`: the kinds and bare names until there is a slash, then the names of that kind.
fn subjects(kinds: &[&str], typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let all: Vec<String> = match typed.split_once('/') {
        None => {
            // A bare name is a node's or an entity's; before its first letter there may be thousands.
            let bare: &[Kind] = if typed.is_empty() { &[] } else { &[Kind::Node, Kind::Entity] };
            let bare = bare.iter().flat_map(|kind| names_of(*kind));
            kinds.iter().map(|kind| (*kind).to_owned()).chain(bare).collect()
        }
        Some((word, _)) if !kinds.contains(&format!("{word}/").as_str()) => Vec::new(),
        Some(("target", rest)) => match rest.split_once('/') {
            None => names_of(Kind::Entity).into_iter().map(|entity| format!("target/{entity}/")).collect(),
            Some((entity, _)) => {
                names_of(Kind::Node).into_iter().map(|node| format!("target/{entity}/{node}")).collect()
            }
        },
        Some((word, _)) => {
            let found = Kind::of_subject(word).map(names_of).unwrap_or_default();
            found.into_iter().map(|name| format!("{word}/{name}")).collect()
        }
    };
    plain(all.into_iter().filter(|subject| subject.starts_with(&*typed)))
}

/// The names of a kind, asked with the global options on the line that is completed.
fn names_of(kind: Kind) -> Vec<String> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let matches = args::command().ignore_errors(true).try_get_matches_from(words);
    let Some(global) = matches.ok().and_then(|matches| Global::from_arg_matches(&matches).ok()) else {
        return Vec::new();
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map(|runtime| runtime.block_on(names::of(&global, kind))).unwrap_or_default()
}
