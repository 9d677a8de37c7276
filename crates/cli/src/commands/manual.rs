//! Completions and manual pages, made from the command line's own definition.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Args;
use crate::exit::{CommandResult, Exit, Failure};
use crate::show::tell;

pub(super) fn completions(shell: clap_complete::Shell) -> CommandResult {
    clap_complete::generate(shell, &mut Args::command(), "bellwether", &mut std::io::stdout());
    Ok(Exit::Yes)
}

pub(super) fn pages(directory: &Path) -> CommandResult {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(directory)?;
        clap_mangen::generate_to(Args::command(), directory)
    };
    write().map_err(|error| {
        Failure::new(Exit::No, format!("write manual pages to {}: {error}", directory.display()))
    })?;
    tell(&format!("manual pages are in {}; read one with: man -l FILE", directory.display()));
    Ok(Exit::Yes)
}
