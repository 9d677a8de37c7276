//! Documents in files: applying them, comparing them, exporting them.

use std::path::PathBuf;

use bellwether_core::words::label::Label;

/// Files with documents, and what to prune.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FileFlags {
    /// File or directory with documents; `-` reads YAML from stdin. Repeat the flag for several.
    /// A file that ends in .toml is TOML, in .json JSON, else YAML
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) file: Vec<PathBuf>,
    /// Read the subdirectories of directories too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Delete the objects that carry the labels of -l and are in no document
    #[arg(long, requires = "labels")]
    pub(crate) prune: bool,
    /// Labels to prune by; only `apply` gives labels to objects
    #[arg(short = 'l', long, value_name = "KEY=VALUE", value_delimiter = ',', requires = "prune")]
    pub(crate) labels: Vec<Label>,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) from: FileFlags,
    /// Only show what would change; nothing is written
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask before pruning deletes an entity or a profile
    #[arg(long)]
    pub(crate) yes: bool,
}
