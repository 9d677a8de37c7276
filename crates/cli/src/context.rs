//! Contexts: where commands go, and as whom. Flags and environment win over the context file.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use serde::{Deserialize, Serialize};

use crate::args::{Global, Output, token_in_environment};
use crate::exit::Failure;
use crate::show::Show;

/// Where a command goes, and how it prints.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// Whether a flag or the environment says the namespace, rather than a context or nobody.
    pub(crate) namespace_is_said: bool,
    pub(crate) show: Show,
}

/// The context file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) context: BTreeMap<String, Entry>,
}

/// One context in the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) server: String,
    pub(crate) token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
}

impl Context {
    /// The context that flags, environment and file come to.
    pub(crate) fn new(global: &Global) -> Result<Self, Failure> {
        let entry = chosen(global)?;
        let server = global.server.clone().or_else(|| entry.as_ref().map(|entry| entry.server.clone()));
        let server = server.ok_or_else(|| {
            Failure::usage("tell which server to ask").hint(
                "set BELLWETHER_SERVER, or `bellwether context set`; `bellwether dev` starts one to try",
            )
        })?;
        let token = match &global.with_token_file {
            Some(path) => Some(read(path, "the token")?),
            None => token_in_environment().or_else(|| entry.as_ref().map(|entry| entry.token.clone())),
        };
        let ca = match &global.ca {
            Some(path) => Some(read(path, "the CA certificate")?),
            None => entry.as_ref().and_then(|entry| entry.ca.clone()),
        };
        let identity = token.map_or(Identity::Nobody, |token| Identity::Token(Secret::new(token.trim())));
        let namespace = global.namespace.clone().or_else(|| entry.and_then(|entry| entry.namespace));
        let client = Client::new(&Access { server, ca, identity })?;
        Ok(Self {
            client: if global.consistent { client.consistent() } else { client },
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
            namespace_is_said: global.namespace.is_some(),
            show: Show::new(global),
        })
    }

    /// Whether output is for machines.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self.show.output, Output::Json | Output::Yaml | Output::Name)
    }
}

fn chosen(global: &Global) -> Result<Option<Entry>, Failure> {
    let file = load(global)?;
    let Some(name) = global.context.clone().or(file.current) else { return Ok(None) };
    let missing = || {
        Failure::usage(format!("find context {name:?}")).hint("see which there are: bellwether context list")
    };
    file.context.get(&name).cloned().map(Some).ok_or_else(missing)
}

/// The context file's path.
pub(crate) fn path(global: &Global) -> Option<PathBuf> {
    let home = || global.home.as_ref().map(|home| home.join(".config/bellwether/contexts.toml"));
    global.contexts_file.clone().or_else(home)
}

/// The context file; an absent one is empty.
pub(crate) fn load(global: &Global) -> Result<File, Failure> {
    let Some(path) = path(global) else { return Ok(File::default()) };
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            toml::from_str(&text).map_err(|error| Failure::usage(format!("read {}: {error}", path.display())))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(File::default()),
        Err(error) => Err(Failure::usage(format!("read {}: {error}", path.display()))),
    }
}

/// Writes the context file whole, readable by its owner alone.
pub(crate) fn save(global: &Global, file: &File) -> Result<(), Failure> {
    let path = path(global).ok_or_else(|| {
        Failure::usage("tell where contexts are kept").hint("set HOME or BELLWETHER_CONFIG")
    })?;
    let text =
        toml::to_string_pretty(file).map_err(|error| Failure::ours(format!("write contexts: {error}")))?;
    let write = || -> std::io::Result<()> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let temporary = path.with_extension("toml.new");
        let mut out = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        std::fs::rename(&temporary, &path)
    };
    write().map_err(|error| Failure::new(crate::exit::Exit::No, format!("write {}: {error}", path.display())))
}

/// Reads a file that a flag names; `-` is stdin.
pub(crate) fn read(path: &std::path::Path, what: &str) -> Result<String, Failure> {
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|error| Failure::usage(format!("read {what} from {}: {error}", path.display())))
}
