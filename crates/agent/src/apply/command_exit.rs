//! How a command ended: its exit, and the last of its output.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// The exit code that means "not yet" (`EX_TEMPFAIL`).
const NOT_YET: i32 = 75;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandResult {
    pub(crate) exit: CommandExit,
    /// The last bytes of its output, stdout and stderr together.
    pub(crate) tail: String,
}

/// The exit of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandExit {
    /// Exit code 0.
    Success,
    /// Exit code 75.
    NotYet,
    /// Any other exit code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// The deadline passed; its group was killed.
    TimedOut(Duration),
    /// It cannot be started.
    NotStarted(String),
}

impl std::fmt::Display for CommandExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Success => f.write_str("exit code 0"),
            Self::NotYet => write!(f, "exit code {NOT_YET}, not yet"),
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => write!(f, "killed by signal {number}"),
            Self::TimedOut(after) => {
                // What was left of the limit when it started: close to what was written.
                let seconds = Duration::from_secs_f64(after.as_secs_f64().round());
                let shown = if seconds.is_zero() { *after } else { seconds };
                write!(f, "killed after its timeout of {shown:?}")
            }
            Self::NotStarted(reason) => write!(f, "cannot start: {reason}"),
        }
    }
}

impl CommandExit {
    /// The exit code, if the command exited by itself.
    pub(crate) fn code(&self) -> Option<i32> {
        match self {
            Self::Success => Some(0),
            Self::NotYet => Some(NOT_YET),
            Self::Code(code) => Some(*code),
            Self::Signal(_) | Self::TimedOut(_) | Self::NotStarted(_) => None,
        }
    }

    pub(crate) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::of_code(code),
            (None, signal) => Self::Signal(signal.unwrap_or_default()),
        }
    }

    pub(crate) const fn of_code(code: i32) -> Self {
        match code {
            0 => Self::Success,
            NOT_YET => Self::NotYet,
            code => Self::Code(code),
        }
    }
}
