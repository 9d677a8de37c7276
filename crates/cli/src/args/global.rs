//! The options that every command takes.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::server_addresses::ServerAddresses;

/// Where to connect, with which credentials, and how to print.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Global {
    /// Namespace [default: default]
    #[arg(short, long, global = true, env = "BELLWETHER_NAMESPACE", hide_env = true)]
    pub(crate) namespace: Option<String>,
    /// Format: table (default), wide, json, yaml, name
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        default_value = "table",
        value_name = "FORMAT",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) output: Output,
    /// Print no messages besides the answer and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Context to use instead of the current one
    #[arg(long, global = true, env = "BELLWETHER_CONTEXT", hide_env = true)]
    pub(crate) context: Option<String>,
    /// Server address, like https://control.example:7420; several, in the order to try them, with commas between
    #[arg(
        long,
        global = true,
        env = "BELLWETHER_SERVER",
        hide_env = true,
        value_name = "URL",
        value_parser = super::server::addresses
    )]
    pub(crate) server: Option<ServerAddresses>,
    /// File with the API token
    #[arg(long, global = true, env = "BELLWETHER_TOKEN_FILE", hide_env = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// File with the CA certificate of the server
    #[arg(long, global = true, env = "BELLWETHER_CA", hide_env = true, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Read the latest committed state, or fail if the server cannot guarantee it
    #[arg(long, global = true)]
    pub(crate) consistent: bool,
    /// Print without colour
    #[arg(long, global = true, env = "NO_COLOR", hide_env = true,
          value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) no_color: bool,
    /// Log filter, like info or bellwether_server=debug
    #[arg(long, global = true, env = "BELLWETHER_LOG", hide_env = true, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// Log format: text (default) or json
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "text",
        value_name = "FORMAT",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) log_format: LogFormat,
    /// File that contexts are kept in
    #[arg(long, global = true, env = "BELLWETHER_CONFIG", hide = true, value_name = "FILE")]
    pub(crate) contexts_file: Option<PathBuf>,
    /// Home directory, for the contexts file
    #[arg(long, global = true, env = "HOME", hide = true, hide_env = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Columns
    Table,
    /// More columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Names alone, one per line
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text
    Text,
    /// One JSON object per line
    Json,
}
