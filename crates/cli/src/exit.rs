//! How a command ends: the exit codes, and the words that go with a failure. The only place either is written.

use std::io::Write;
use std::process::ExitCode;

use bellwether_api::client::CallError;
use bellwether_api::problem::Code;

/// How a command ended, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Yes, or done.
    Yes,
    /// No, or failed.
    No,
    /// Not within the time given.
    Timeout,
    /// It waits for a person.
    NeedsPerson,
    /// Done in part.
    Partial,
    /// Somebody else changed it first.
    LostRace,
    /// Not allowed, or not in this state.
    Refused,
    /// The command line makes no sense.
    Usage,
    /// The control plane or its store cannot be reached.
    Unavailable,
    /// Our own fault.
    Internal,
    /// What a command that was run ended with; 128 and its number, if a signal ended it.
    Child(u8),
    /// `pending-update`: cannot tell, but a local version exists.
    CannotTellWithLocal,
    /// `pending-update`: cannot tell, and there is no local version.
    CannotTell,
}

impl Exit {
    const fn number(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::CannotTellWithLocal => 2,
            Self::Timeout | Self::CannotTell => 3,
            Self::NeedsPerson => 4,
            Self::Partial => 5,
            Self::LostRace => 6,
            Self::Refused => 7,
            Self::Usage => 64,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::Child(code) => code,
        }
    }
}

/// A command that did not do what it was asked: what, why, and the next thing to try.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Fits after "could not ".
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), hint: None }
    }

    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    pub(crate) fn ours(what: impl Into<String>) -> Self {
        Self::new(Exit::Internal, what)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// What a command answers.
pub(crate) type CommandResult = Result<Exit, Failure>;

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let what = error.to_string();
        match error {
            CallError::Setup { .. } => Self::usage(what),
            CallError::Unreachable { .. } => Self::new(Exit::Unavailable, what).hint(
                "is the server running, and is this its address? BELLWETHER_SERVER or --server names it",
            ),
            CallError::Timeout { .. } => Self::new(Exit::Timeout, what),
            CallError::Garbled { .. } => Self::new(Exit::Internal, what),
            CallError::Problem(problem) => {
                let what = problem.detail.strip_prefix("could not ").unwrap_or(&problem.detail).to_owned();
                Self { exit: of_problem(problem.code), what, hint: problem.hint }
            }
        }
    }
}

const fn of_problem(code: Code) -> Exit {
    match code {
        Code::Invalid | Code::TooLarge | Code::MethodNotAllowed => Exit::Usage,
        Code::NotFound | Code::Exists => Exit::No,
        Code::Unauthenticated | Code::Forbidden | Code::Refused | Code::JoinToken => Exit::Refused,
        Code::Conflict => Exit::LostRace,
        Code::Timeout => Exit::Timeout,
        Code::Store | Code::Busy => Exit::Unavailable,
        Code::Internal => Exit::Internal,
    }
}

/// The process's exit code; a failure is told on stderr.
pub(crate) fn code(ended: CommandResult) -> ExitCode {
    let exit = match ended {
        Ok(exit) => exit,
        Err(failure) => {
            say(&format!("could not {}", failure.what.trim_end()));
            if let Some(hint) = failure.hint {
                say(&format!("\n  try: {hint}"));
            }
            failure.exit
        }
    };
    ExitCode::from(exit.number())
}

/// A command line that does not parse, or asked for help.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A closed stderr or stdout leaves nobody to tell.
    drop(error.print());
    ExitCode::from(if error.use_stderr() { Exit::Usage.number() } else { 0 })
}

fn say(line: &str) {
    // A closed stderr leaves nobody to tell.
    drop(writeln!(std::io::stderr(), "{line}"));
}
