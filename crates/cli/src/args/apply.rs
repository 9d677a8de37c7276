//! `apply` and `diff`: files with documents.

use std::path::PathBuf;

use bellwether_core::words::label::Label;

use super::consent::Consent;

/// Files with documents, and what to prune.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FileFlags {
    /// File or directory with documents, `-` for YAML from stdin; repeat it for several. Files that end in .toml are TOML, in
    /// .json JSON, all others YAML
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) file: Vec<PathBuf>,
    /// Read subdirectories too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Delete objects that have the labels of -l and are in no document
    #[arg(long, requires = "labels")]
    pub(crate) prune: bool,
    /// Labels of the objects to prune
    #[arg(short = 'l', long, value_name = "KEY=VALUE", value_delimiter = ',', requires = "prune")]
    pub(crate) labels: Vec<Label>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) from: FileFlags,
    /// Show what would change and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) consent: Consent,
}
