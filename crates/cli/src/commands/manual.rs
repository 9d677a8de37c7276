//! Completion scripts and manual pages, made from the command line's own definition.

use std::path::Path;

use clap::builder::Resettable;

use crate::args::{self, ENVIRONMENT, Global};
use crate::exit::{self, CommandResult, Exit, Failure, LocalFault};
use crate::show::{Show, print_data};
use crate::whole_file;

pub(super) fn completions(shell: &str) -> CommandResult {
    print_data(&crate::completion::script(shell)?)?;
    Ok(Exit::Yes)
}

pub(super) fn pages(global: &Global, directory: &Path) -> CommandResult {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(directory)?;
        let mut command = args::command();
        command.build();
        write_pages(command, directory, &end())
    };
    write().map_err(|error| {
        Failure::local(LocalFault::Output, format!("write manual pages to {}: {error}", directory.display()))
    })?;
    let text = format!("manual pages written to {}; read one with: man -l FILE", directory.display());
    Show::new(global).note(&text);
    Ok(Exit::Yes)
}

/// Writes the page of a command and those of the commands below it, each with the same end.
fn write_pages(command: clap::Command, directory: &Path, end: &str) -> std::io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below.clone(), directory, end)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    // The texts after the help would become a section without a meaning of its own.
    let command = command.after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    page.extend_from_slice(end.as_bytes());
    whole_file::replace(&directory.join(format!("{name}.1")), &page)
}

/// The environment and the exit codes, as roff.
fn end() -> String {
    let environment = ENVIRONMENT.iter().map(|(name, meaning)| format!(".TP\n\\fB{name}\\fR\n{meaning}\n"));
    let codes = exit::meanings().map(|(code, meaning)| format!(".TP\n{code}\n{meaning}\n"));
    format!(
        ".SH ENVIRONMENT\n{}.SH \"EXIT STATUS\"\n{}",
        environment.collect::<String>(),
        codes.collect::<String>()
    )
}
