//! Completion scripts and manual pages, made from the command line's own definition.

use std::path::Path;

use crate::args::{self, Global};
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::{Show, print};

pub(super) fn completions(shell: &str) -> CommandResult {
    print(&crate::completion::script(shell)?)?;
    Ok(Exit::Yes)
}

pub(super) fn pages(global: &Global, directory: &Path) -> CommandResult {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(args::command(), directory)
    };
    write().map_err(|error| {
        Failure::new(Exit::No, format!("write manual pages to {}: {error}", directory.display()))
    })?;
    let text = format!("manual pages written to {}; read one with: man -l FILE", directory.display());
    Show::new(global).note(&text);
    Ok(Exit::Yes)
}
