//! What people and programs read: data to stdout, everything else to stderr.

pub(crate) mod age;
pub(crate) mod paint;
pub(crate) mod screen;
pub(crate) mod tree;

use std::io::{IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::args::{Global, Output};
use crate::exit::Failure;
use paint::Paint;

/// How to print.
#[derive(Debug, Clone)]
pub(crate) struct Show {
    pub(crate) output: Output,
    pub(crate) paint: Paint,
    pub(crate) terminal: bool,
}

impl Show {
    pub(crate) fn new(global: &Global) -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self { output: global.output, paint: Paint::new(terminal && !global.no_color), terminal }
    }

    /// Prints data as JSON or YAML, names one a line, or else what `human` makes of it.
    pub(crate) fn data<T: Serialize>(
        &self,
        data: &T,
        names: impl FnOnce() -> Vec<String>,
        human: impl FnOnce(bool) -> String,
    ) -> Result<(), Failure> {
        let text = match self.output {
            Output::Json => serde_json::to_string_pretty(data).map_err(|error| error.to_string()),
            Output::Yaml => serde_norway::to_string(data).map_err(|error| error.to_string()),
            Output::Name => Ok(names().join("\n")),
            Output::Table => Ok(human(false)),
            Output::Wide => Ok(human(true)),
        };
        print(&text.map_err(|error| Failure::ours(format!("print the answer: {error}")))?);
        Ok(())
    }
}

/// A table without frames: columns line up, and nothing else is in the way of `cut` and `awk`.
pub(crate) fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().map(|text| text.to_uppercase()));
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Prints to stdout. A reader that has gone away is not our failure.
pub(crate) fn print(text: &str) {
    let text = text.trim_end();
    if !text.is_empty() {
        drop(writeln!(std::io::stdout(), "{text}"));
    }
}

/// Tells a person something: to stderr, so that data stays clean.
pub(crate) fn tell(text: &str) {
    drop(writeln!(std::io::stderr(), "{}", text.trim_end()));
}
