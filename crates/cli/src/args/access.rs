//! `token`, `join-token` and `context` as typed.

use std::path::PathBuf;

use bellwether_core::words::time::Span;
use clap::Subcommand;

use super::consent::Consent;
use super::list::ListFlags;

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
        /// Label of the node, KEY=VALUE; KEY=* lets the machine choose when it joins; repeat it for more [default: none]
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
        /// Service that the node may register, which may end with *; repeat it for more [default: *]
        #[arg(long = "service", value_name = "SERVICE")]
        services: Vec<String>,
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
        /// Role that the token has; repeat it for more [default: viewer]
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// Limit the token to a namespace, or to those that begin so: shop, shop-*
        #[arg(long, value_name = "NAMESPACE")]
        only_in: Option<String>,
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
    /// Show the name and roles of the token in use
    Whoami,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RoleVerb {
    /// Create a role, or replace its claims
    Set {
        /// Role name
        #[arg(value_name = "ROLE")]
        name: String,
        /// Claim: VERBS KINDS[/NAMES] [in NAMESPACES], such as "get,update:/params node/web-* in shop"
        #[arg(value_name = "CLAIM", required = true)]
        claims: Vec<String>,
        /// Description of the role: who it is meant for
        #[arg(long, default_value = "", hide_default_value = true)]
        description: String,
    },
    /// Show a role and its claims
    Get {
        /// Role name
        #[arg(value_name = "ROLE")]
        name: String,
    },
    /// List roles
    List(ListFlags),
    /// Delete a role that no token has
    Delete {
        /// Role name
        #[arg(value_name = "ROLE")]
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// List the newest entries: who asked for which change, from where, and what became of it
    List {
        /// Filter of what to list, like 'actor = ci and outcome = denied'
        #[arg(value_name = "FILTER")]
        filter: Option<String>,
        /// Number of the entry after which to start
        #[arg(long, value_name = "N", value_parser = super::number::whole::<u64>)]
        after: Option<u64>,
        /// Most entries to print, 1 to 1000
        #[arg(long, value_parser = super::number::between(1_u32, 1_000), value_name = "N", default_value = "50")]
        limit: u32,
        /// Follow new entries
        #[arg(short, long)]
        watch: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthVerb {
    /// Ask whether the token in use may do something; exit 1 if not
    CanI {
        /// Verb: get, update, update:/FIELD or delete
        #[arg(value_name = "VERB")]
        verb: String,
        /// Kind, or kind and name of the object, such as node or node/web-1
        #[arg(value_name = "KIND[/NAME]")]
        object: String,
        /// Ask about any namespace instead of the current one
        #[arg(long)]
        anywhere: bool,
    },
    /// Show every claim of the token in use
    Explain,
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
    /// Fetch the certificates of the authorities that a context is to trust, over a connection that it trusts now
    ///
    /// Do it after another authority was made and before it is brought into use; later, the context trusts the servers no more and has to be
    /// set again with --ca.
    Refresh {
        /// Context name; the current one by default
        #[arg(value_name = "CONTEXT")]
        name: Option<String>,
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
