//! What people and programs read: answers on stdout, everything else on stderr.

pub(crate) mod change;
pub(crate) mod currency;
pub(crate) mod data;
pub(crate) mod event;
pub(crate) mod list;
pub(crate) mod paint;
pub(crate) mod screen;
pub(crate) mod sheet;
mod table;
pub(crate) mod time;
pub(crate) mod tree;
pub(crate) mod visible;

use std::io::{ErrorKind, IsTerminal, Write};

use serde::Serialize;

use crate::args::{Global, Output};
use crate::exit::{Exit, Failure, LocalFault};
use paint::Paint;
pub(crate) use table::table;

/// How to print.
#[derive(Debug, Clone)]
pub(crate) struct Show {
    pub(crate) output: Output,
    pub(crate) paint: Paint,
    pub(crate) terminal: bool,
    quiet: bool,
}

impl Show {
    pub(crate) fn new(global: &Global) -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self {
            output: global.output,
            paint: Paint::new(terminal && !global.no_color),
            terminal,
            quiet: global.quiet,
        }
    }

    /// Prints data as JSON or YAML, names one a line, or else what `human` makes of it.
    pub(crate) fn data<T: Serialize>(
        &self,
        data: &T,
        names: impl FnOnce() -> Vec<String>,
        human: impl FnOnce(bool) -> String,
    ) -> Result<(), Failure> {
        let text = match self.output {
            Output::Json => data::json(data),
            Output::Yaml => data::yaml(data),
            Output::Name => return print(&names().join("\n")),
            Output::Table => return print(&human(false)),
            Output::Wide => return print(&human(true)),
        };
        print_data(&text.map_err(|error| Failure::ours(format!("print the answer: {error}")))?)
    }

    /// Reports what a command changed, in one line on stderr; nothing with `--quiet`.
    pub(crate) fn changed(&self, line: &str) {
        self.note(line);
    }

    /// Tells a person what to do next or what to know, on stderr; nothing with `--quiet`.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            tell(text);
        }
    }

    /// Whether output is for programs.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self.output, Output::Json | Output::Yaml | Output::Name)
    }
}

/// Prints to stdout what a person reads, with control characters made visible. A reader that has gone away is not a failure of the
/// command; a full disk is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    unless_gone(try_print(text))
}

/// Prints to stdout what a program reads, as it is.
pub(crate) fn print_data(text: &str) -> Result<(), Failure> {
    unless_gone(try_print_data(text))
}

fn unless_gone(ended: Result<(), Failure>) -> Result<(), Failure> {
    match ended {
        Err(failure) if failure.exit == Exit::ReaderGone => Ok(()),
        ended => ended,
    }
}

/// Prints to stdout, for a command that prints until it is stopped, what a person reads.
///
/// # Errors
/// [`Failure::reader_gone`] when the reader has gone away: the command is to end quietly, and not as if what it follows had
/// ended. A failure with its reason when the text cannot be written.
pub(crate) fn try_print(text: &str) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() {
        return try_print_data(&visible::coloured(text));
    }
    try_print_data(&visible::text(text))
}

/// Prints to stdout, for a command that prints until it is stopped, what a program reads.
///
/// # Errors
/// Those of [`try_print`].
pub(crate) fn try_print_data(text: &str) -> Result<(), Failure> {
    let text = text.trim_end();
    if text.is_empty() { Ok(()) } else { write_out(&format!("{text}\n")) }
}

/// Prints to stdout a part of a text that goes on, with every blank line and without one more.
///
/// # Errors
/// Those of [`try_print`].
pub(crate) fn try_print_part(text: &str) -> Result<(), Failure> {
    let is_terminal = std::io::stdout().is_terminal();
    if is_terminal { write_out(&visible::coloured(text)) } else { write_out(&visible::text(text)) }
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| {
        if error.kind() == ErrorKind::BrokenPipe {
            Failure::reader_gone()
        } else {
            Failure::local(LocalFault::Output, format!("write to standard output: {error}"))
        }
    })
}

/// Tells a person something, on stderr, so that the answer on stdout stays clean.
pub(crate) fn tell(text: &str) {
    drop(writeln!(std::io::stderr(), "{}", visible::text(text.trim_end())));
}
