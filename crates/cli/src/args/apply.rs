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

/// Which objects are printed as documents, and where.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Export {
    /// Kind of the objects to print, every kind if absent; repeat it for several
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) kind: Vec<DocumentKind>,
    /// Write one YAML file for each object into this directory, named KIND-NAME.yaml, instead of printing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// The kinds of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DocumentKind {
    Cluster,
    Ensemble,
    Entity,
    Filter,
    Freeze,
    Node,
    Param,
    Pause,
    Profile,
    Schedule,
    Reaction,
    Sink,
    Slot,
    Stage,
    Task,
    Workflow,
}

impl DocumentKind {
    /// The kind as documents have it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Ensemble => "ensemble",
            Self::Entity => "entity",
            Self::Filter => "filter",
            Self::Freeze => "freeze",
            Self::Node => "node",
            Self::Param => "param",
            Self::Pause => "pause",
            Self::Profile => "profile",
            Self::Schedule => "schedule",
            Self::Reaction => "reaction",
            Self::Sink => "sink",
            Self::Slot => "slot",
            Self::Stage => "stage",
            Self::Task => "task",
            Self::Workflow => "workflow",
        }
    }
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
