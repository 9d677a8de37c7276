//! `token`, `join-token` and `context` as typed.

use std::path::PathBuf;

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::consent::Consent;

#[derive(Debug, Subcommand)]
pub(crate) enum JoinTokenVerb {
    /// Create a join token; it is shown only once and admits one node, once
    Create {
        /// Node name that the token admits; any name if absent
        #[arg(long, value_name = "NODE")]
        node: Option<String>,
        /// Lifetime of the token, at most 1h [default: 1h]
        #[arg(long, value_name = "TIME")]
        expires_in: Option<Span>,
    },
    /// List join tokens
    List,
    /// Delete a join token
    Delete {
        /// Join token id, or its first characters
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Create an API token; it is shown only once
    Create {
        /// Token name; events name it as the actor
        #[arg(value_name = "TOKEN")]
        name: String,
        /// Role: viewer, operator or admin
        #[arg(long, default_value = "viewer")]
        role: String,
        /// Lifetime of the token; unlimited if absent
        #[arg(long, value_name = "TIME")]
        expires_in: Option<Span>,
    },
    /// List API tokens
    List,
    /// Delete an API token
    Delete {
        /// Token name
        #[arg(value_name = "TOKEN")]
        name: String,
        /// Delete the token even if this command authenticates with it
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Show the name and role of the token in use
    Whoami,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextVerb {
    /// List contexts; the current one is marked
    List,
    /// Make a context the current one
    Use {
        /// Context name
        #[arg(value_name = "CONTEXT")]
        name: String,
    },
    /// Create or replace a context from --server, --ca, --namespace and a token file
    Set {
        /// Context name
        #[arg(value_name = "CONTEXT")]
        name: String,
        /// File with the API token; `-` reads stdin
        #[arg(long, value_name = "FILE")]
        token_file: PathBuf,
    },
    /// Delete a context
    Delete {
        /// Context name
        #[arg(value_name = "CONTEXT")]
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
}
