//! How a command ends: the exit codes, and the message of a failure. The only place either is written.

mod flags;

use std::io::Write;
use std::process::ExitCode;

use bellwether_api::client::{CallError, UnreachableCause};
use bellwether_api::problem::Code;

use self::flags::by_flag;
use crate::show::visible;

/// How a command ended, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Yes, or done.
    Yes,
    /// No, failed, or not found.
    No,
    /// Not within the time given.
    Timeout,
    /// A person may have to act.
    NeedsPerson,
    /// Done in part.
    Partial,
    /// Somebody else changed the object first.
    Conflict,
    /// Forbidden, or refused in the current state.
    Refused,
    /// A wait was interrupted, which is not success.
    Interrupted,
    /// The command line is wrong.
    Usage,
    /// The control plane, its store or this machine's agent cannot be reached.
    Unavailable,
    /// A fault of this program.
    Internal,
    /// The reader of the output has gone away: 128 and the number of SIGPIPE, as a shell reports it of other programs.
    ReaderGone,
    /// The exit code of the command that was run; 128 and the signal's number if a signal ended it.
    Child(u8),
    /// `verify-hosts` and `hosts-at-version`: unknown, because nodes are silent.
    UnknownNodes,
    /// `pending-update`: unknown, but a local version exists.
    UnknownWithLocal,
    /// `pending-update`: unknown, and there is no local version.
    Unknown,
}

impl Exit {
    const fn number(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::UnknownNodes | Self::UnknownWithLocal => 2,
            Self::Timeout | Self::Unknown => 3,
            Self::NeedsPerson => 4,
            Self::Partial => 5,
            Self::Conflict => 6,
            Self::Refused => 7,
            Self::Interrupted => 8,
            Self::Usage => 64,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::ReaderGone => 141,
            Self::Child(code) => code,
        }
    }
}

/// Every exit code with its meaning, as the guide lists them.
const TABLE: [(Exit, &str); 13] = [
    (Exit::Yes, "yes, or done"),
    (Exit::No, "no, failed, or not found"),
    (Exit::UnknownNodes, "unknown: the nodes that decide it are silent; for `pending-update` see there"),
    (Exit::Timeout, "not within the time given"),
    (Exit::NeedsPerson, "the rollout is paused or needs approval: a person may have to act"),
    (Exit::Partial, "done in part: some targets failed"),
    (Exit::Conflict, "conflict: somebody else changed the object first"),
    (Exit::Refused, "forbidden, or refused in the current state"),
    (Exit::Interrupted, "a wait was interrupted: the manager of the cluster was made not runnable"),
    (Exit::Usage, "wrong usage, invalid input, or a missing `--yes`"),
    (Exit::Unavailable, "the control plane, its store or this machine's agent cannot be reached"),
    (Exit::Internal, "a fault of bellwether itself"),
    (Exit::ReaderGone, "the reader of the output went away while a command followed something"),
];

/// Every exit code with its meaning.
pub(crate) fn meanings() -> impl Iterator<Item = (u8, &'static str)> {
    TABLE.iter().map(|(exit, meaning)| (exit.number(), *meaning))
}

/// What failed on this machine, apart from an answer of the server. Each fault has one exit code, whichever command meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalFault {
    /// A file that a person named cannot be read.
    Input,
    /// A file or directory cannot be written.
    Output,
    /// What was named is not there, such as the status of an agent that never ran.
    Missing,
    /// A data directory cannot be used: damaged, in use, of another installation, or not readable.
    DataDirectory,
    /// An address cannot be listened on.
    Listen,
    /// The agent's socket or the store cannot be reached, or the store failed.
    Contact,
}

/// Every local fault with its exit code and meaning, as the guide lists them.
const LOCAL: [(LocalFault, Exit, &str); 6] = [
    (LocalFault::Input, Exit::Usage, "a file that the command names cannot be read or is not valid"),
    (LocalFault::Output, Exit::No, "a file or directory cannot be written"),
    (
        LocalFault::Missing,
        Exit::No,
        "there is nothing of that name, such as the status of an agent that never ran",
    ),
    (
        LocalFault::DataDirectory,
        Exit::Refused,
        "a data directory is damaged, in use, not readable, or of another installation",
    ),
    (LocalFault::Listen, Exit::Unavailable, "an address cannot be listened on"),
    (
        LocalFault::Contact,
        Exit::Unavailable,
        "the agent's socket or the store cannot be reached, or the store failed",
    ),
];

impl LocalFault {
    /// Its exit code.
    pub(crate) fn exit(self) -> Exit {
        let found = LOCAL.iter().find(|(fault, ..)| *fault == self);
        found.map_or(Exit::Internal, |(_, exit, _)| *exit)
    }
}

/// A command that did not do what it was asked: what, why, and what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// The whole message; nothing is printed if it is empty.
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Whether the server does not know an object that was named.
    pub(crate) not_found: bool,
}

impl Failure {
    /// A failure to do something: `what` follows "cannot", like `read the file: permission denied`.
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        let what = without_numbers(&what.into());
        // What begins with a quoted name is a statement about it.
        let message = if what.starts_with('"') { what } else { format!("cannot {}", bare(&what)) };
        Self { exit, message, hint: None, not_found: false }
    }

    /// A command line that is wrong.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// A failure on this machine.
    pub(crate) fn local(fault: LocalFault, what: impl Into<String>) -> Self {
        Self::new(fault.exit(), what)
    }

    /// A fault of this program.
    pub(crate) fn ours(what: impl Into<String>) -> Self {
        Self::new(Exit::Internal, what)
    }

    /// The end of a command whose reader has gone away: quiet.
    pub(crate) const fn reader_gone() -> Self {
        Self { exit: Exit::ReaderGone, message: String::new(), hint: None, not_found: false }
    }

    /// A fact that stands by itself, like `the token has expired`.
    pub(crate) fn stated(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, not_found: false }
    }

    /// A failed call with a filter: shows the place in it that the server could not read.
    pub(crate) fn pointing(error: CallError, filter: Option<&str>) -> Self {
        let invalid = match &error {
            CallError::Problem(problem) => {
                problem.invalid.as_ref().filter(|invalid| invalid.place == "filter")
            }
            CallError::Setup { .. }
            | CallError::Unreachable { .. }
            | CallError::NoneReachable { .. }
            | CallError::AnswerLost { .. }
            | CallError::Timeout { .. }
            | CallError::Garbled { .. } => None,
        };
        let position = invalid.and_then(|invalid| usize::try_from(invalid.position?).ok());
        let caret = filter.zip(position).map(|(filter, position)| caret(filter, position));
        let mut failure = Self::from(error);
        failure.message.push_str(&caret.unwrap_or_default());
        failure
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Most characters of a text on each side of a place in it that is shown: both together fit on a terminal.
const AROUND: usize = 30;

/// A text around the byte at this position, and a mark under it.
fn caret(text: &str, position: usize) -> String {
    let line = text.replace(['\n', '\t'], " ");
    let line = visible::line(&line);
    let column =
        visible::line(&text.get(..position).unwrap_or(text).replace(['\n', '\t'], " ")).chars().count();
    let from = column.saturating_sub(AROUND);
    let shown: String = line.chars().skip(from).take(2 * AROUND).collect();
    let begin = if from > 0 { "…" } else { "" };
    let end = if line.chars().count() > from + 2 * AROUND { "…" } else { "" };
    let indent = column - from + begin.chars().count();
    format!("\n  {begin}{shown}{end}\n  {}^", " ".repeat(indent))
}

/// A message without the numbers that Rust appends to the system's errors: `(os error 2)`.
fn without_numbers(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        out.push_str(rest.strip_prefix(')').unwrap_or(rest));
    }
    out
}

/// What follows "cannot" in a message that may begin with it.
pub(crate) fn bare(message: &str) -> &str {
    message.strip_prefix("cannot ").unwrap_or(message)
}

/// What a command answers.
pub(crate) type CommandResult = Result<Exit, Failure>;

/// What has the certificates of a control plane.
pub(crate) const CA_FILE: &str =
    "pki/trusted.pem of the server's data directory (pki/ca.pem until the authority was replaced)";

/// The hint for a change whose answer was lost.
const LOST: &str = "look whether it was made before repeating it";

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let what = error.to_string();
        match error {
            CallError::Setup { .. } => Self::usage(what),
            // They run and are reached: what they said is what there is to mend.
            CallError::NoneReachable { attempts, .. } if attempts.iter().all(|attempt| attempt.is_answered) => {
                Self::new(Exit::Unavailable, what).hint("mend what the servers said; see also: bellwether server list")
            }
            CallError::Unreachable { cause, .. } | CallError::NoneReachable { cause, .. } => Self::new(Exit::Unavailable, what).hint(match cause {
                UnreachableCause::Clock => "check the clock of this machine: date -u",
                UnreachableCause::Certificate => {
                    "check --ca, BELLWETHER_CA or the context: it must be pki/trusted.pem of this control plane (pki/ca.pem until its authority was replaced), and the server's certificate must name the address"
                }
                UnreachableCause::Scheme => {
                    "check the scheme: a server speaks https, and http only on the plain listener of `bellwether dev`"
                }
                UnreachableCause::Connection => {
                    "check that the server runs, and its address in --server, BELLWETHER_SERVER or the context"
                }
            }),
            CallError::AnswerLost { .. } => Self::new(Exit::Unavailable, what).hint(LOST),
            CallError::Timeout { may_be_made: true, .. } => Self::new(Exit::Timeout, what).hint(LOST),
            CallError::Timeout { .. } => Self::new(Exit::Timeout, what),
            CallError::Garbled { .. } => Self::new(Exit::Internal, what),
            CallError::Problem(problem) => {
                let not_found = problem.code == Code::NotFound;
                Self {
                    exit: of_problem(problem.code),
                    message: by_flag(problem.detail),
                    hint: problem.hint,
                    not_found,
                }
            }
        }
    }
}

const fn of_problem(code: Code) -> Exit {
    match code {
        Code::Invalid | Code::TooLarge | Code::MethodNotAllowed => Exit::Usage,
        Code::NotFound | Code::Exists => Exit::No,
        Code::Unauthenticated | Code::Decommissioned | Code::Forbidden | Code::Refused | Code::JoinToken => {
            Exit::Refused
        }
        Code::Conflict => Exit::Conflict,
        Code::Timeout => Exit::Timeout,
        Code::Store | Code::Busy => Exit::Unavailable,
        Code::Internal => Exit::Internal,
    }
}

/// The process's exit code; the message of a failure goes to stderr.
pub(crate) fn code(ended: CommandResult) -> ExitCode {
    let exit = match ended {
        Ok(exit) => exit,
        Err(failure) => {
            if !failure.message.is_empty() {
                say(failure.message.trim_end());
            }
            if let Some(hint) = failure.hint {
                say(&format!("  hint: {hint}"));
            }
            failure.exit
        }
    };
    ExitCode::from(exit.number())
}

/// A command line that does not parse, or asked for help; with a hint if there is one.
pub(crate) fn usage(error: &clap::Error, hint: Option<String>) -> ExitCode {
    let said = error.render().to_string();
    if error.use_stderr() && visible::message(&said) != said {
        say(said.trim_end());
    } else {
        // With stderr or stdout closed nobody reads the message.
        drop(error.print());
    }
    if let Some(hint) = hint {
        say(&format!("hint: {hint}"));
    }
    ExitCode::from(if error.use_stderr() { Exit::Usage.number() } else { 0 })
}

fn say(line: &str) {
    // With stderr closed nobody reads the message.
    drop(writeln!(std::io::stderr(), "{}", visible::message(line)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_lists_every_exit_code_with_its_meaning() {
        let page = include_str!("../../../docs/guide/commands.md");
        let rows: Vec<String> =
            TABLE.iter().map(|(exit, meaning)| format!("| {} | {meaning} |", exit.number())).collect();
        let table = rows.join("\n");
        assert!(page.contains(&table), "the guide does not contain this table:\n{table}");
    }

    #[test]
    fn the_guide_lists_every_local_fault_with_its_exit_code() {
        let page = include_str!("../../../docs/guide/commands.md");
        let rows: Vec<String> =
            LOCAL.iter().map(|(_, exit, meaning)| format!("| {meaning} | {} |", exit.number())).collect();
        let table = rows.join("\n");
        assert!(page.contains(&table), "the guide does not contain this table:\n{table}");
        for (fault, exit, _) in LOCAL {
            assert_eq!(fault.exit(), exit);
        }
    }

    #[test]
    fn a_mark_stands_under_the_place() {
        assert_eq!(caret("ü=a or", 7), "\n  ü=a or\n        ^");
        let long = format!("{}!{}", "a".repeat(2_000), "b".repeat(2_000));
        let shown = format!("\n  …{}!{}…\n  {}^", "a".repeat(30), "b".repeat(29), " ".repeat(31));
        assert_eq!(caret(&long, 2_000), shown);
    }

    #[test]
    fn a_message_has_no_numbers_of_the_system() {
        let failure = Failure::local(LocalFault::Input, "read a: No such file (os error 2); b (os error 13)");
        assert_eq!(failure.message, "cannot read a: No such file; b");
    }

    #[test]
    fn a_message_begins_with_cannot_once() {
        let name = "\"n1.\" is not a valid node name";
        assert_eq!(Failure::new(Exit::No, name).message, name);
        for what in ["read the file: denied", "cannot read the file: denied"] {
            assert_eq!(Failure::new(Exit::No, what).message, "cannot read the file: denied");
        }
    }
}
