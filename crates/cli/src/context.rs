//! Connection contexts: servers, CA and credentials. Flags and environment win over the contexts file.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{Access, Client, Identity};
use serde::{Deserialize, Serialize};

use crate::args::{Global, is_token_file_of_environment, token_in_environment};
use crate::exit::{Exit, Failure, LocalFault};
use crate::near::{improved, nearest};
use crate::server_addresses::ServerAddresses;
use crate::show::{Show, currency};
use crate::small_file::limited;

/// The connection of a command, and how it prints.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// Whether a flag or the environment says the namespace, rather than a context or nobody.
    pub(crate) namespace_is_said: bool,
    pub(crate) show: Show,
}

/// The contexts file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) context: BTreeMap<String, Entry>,
}

/// One context of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) server: ServerAddresses,
    pub(crate) token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
}

impl File {
    /// The context of this name.
    ///
    /// # Errors
    /// Not found, with the nearest name as its hint.
    pub(crate) fn find(&self, name: &str) -> Result<&Entry, Failure> {
        let missing = || {
            let failure = Failure::new(Exit::No, format!("find context {name}"));
            match nearest(name, self.context.keys().map(String::as_str)) {
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint("list contexts with: bellwether context list"),
            }
        };
        self.context.get(name).ok_or_else(missing)
    }
}

impl Context {
    /// The context that flags, environment and file result in.
    pub(crate) fn new(global: &Global) -> Result<Self, Failure> {
        let entry = chosen(global)?;
        let server = global.server.clone().or_else(|| entry.as_ref().map(|entry| entry.server.clone()));
        let server = server.ok_or_else(|| {
            Failure::stated(Exit::Usage, "no server is given").hint(
                "set BELLWETHER_SERVER or create a context with `bellwether context set`; `bellwether dev` starts a server to try",
            )
        })?;
        let token = match &global.token_file {
            Some(path) => {
                refuse_both(path)?;
                Some(read_token(path)?)
            }
            None => environment_token()?.or_else(|| entry.as_ref().map(|entry| entry.token.clone())),
        };
        let ca = match &global.ca {
            Some(path) => Some(read(path, "the CA certificate")?),
            None => entry.as_ref().and_then(|entry| entry.ca.clone()),
        };
        let identity = token.map_or(Identity::Nobody, |token| Identity::Token(Secret::new(token.trim())));
        let namespace = global.namespace.clone().or_else(|| entry.and_then(|entry| entry.namespace));
        let ServerAddresses { first, others } = server;
        let client = Client::of_several(&Access { server: first, ca, identity }, &others)?;
        let client = client.on_notice(currency::answered);
        Ok(Self {
            client: if global.consistent { client.consistent() } else { client },
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
            namespace_is_said: global.namespace.is_some(),
            show: Show::new(global),
        })
    }
}

/// Refuses an environment with two tokens: each may have rights that nobody meant to use.
fn refuse_both(file: &Path) -> Result<(), Failure> {
    match token_in_environment() {
        Some(_) if is_token_file_of_environment(file) => {
            let both = Failure::usage("use both BELLWETHER_TOKEN and BELLWETHER_TOKEN_FILE".to_owned());
            Err(both.hint("unset one of them, or name the file with --token-file"))
        }
        Some(_) | None => Ok(()),
    }
}

/// The token in the environment. An empty one is a mistake: another one in its place may have rights that nobody meant to use.
fn environment_token() -> Result<Option<String>, Failure> {
    match token_in_environment() {
        Some(token) if token.trim().is_empty() => {
            let refused = Failure::usage("use BELLWETHER_TOKEN: it is empty".to_owned());
            Err(refused.hint("unset it to use the token of the context"))
        }
        token => Ok(token),
    }
}

/// Whether flags, the environment or the contexts file name a connection to a server, or the command needs one.
///
/// # Errors
/// The contexts file cannot be read.
pub(crate) fn is_given(global: &Global) -> Result<bool, Failure> {
    let Global { server, context, token_file, ca, consistent, .. } = global;
    let flags = server.is_some() || context.is_some() || token_file.is_some() || ca.is_some();
    Ok(flags || *consistent || token_in_environment().is_some() || load(global)?.current.is_some())
}

fn chosen(global: &Global) -> Result<Option<Entry>, Failure> {
    let file = load(global)?;
    let Some(name) = global.context.clone().or_else(|| file.current.clone()) else { return Ok(None) };
    file.find(&name).map(|entry| Some(entry.clone()))
}

/// The path of the contexts file.
pub(crate) fn path(global: &Global) -> Option<PathBuf> {
    let home = || global.home.as_ref().map(|home| home.join(".config/bellwether/contexts.toml"));
    global.contexts_file.clone().or_else(home)
}

/// The contexts file; an absent one is empty.
pub(crate) fn load(global: &Global) -> Result<File, Failure> {
    let Some(path) = path(global) else { return Ok(File::default()) };
    match std::fs::File::open(&path).and_then(limited) {
        Ok(text) => toml::from_str(&text).map_err(|error| {
            Failure::usage(format!("read {}: {}", path.display(), improved(&error.to_string())))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(File::default()),
        Err(error) => Err(Failure::local(LocalFault::Input, format!("read {}: {error}", path.display()))),
    }
}

/// Writes the contexts file as a whole, readable by its owner alone.
pub(crate) fn save(global: &Global, file: &File) -> Result<(), Failure> {
    let path = path(global)
        .ok_or_else(|| Failure::usage("find the contexts file").hint("set HOME or BELLWETHER_CONFIG"))?;
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
    write().map_err(|error| Failure::local(LocalFault::Output, format!("write {}: {error}", path.display())))
}

/// Longest token that is sent: those of this control plane are far shorter.
const MAX_TOKEN_BYTES: usize = 512;

/// Reads a file given by a flag, which is not empty; `-` is stdin.
pub(crate) fn read(path: &std::path::Path, what: &str) -> Result<String, Failure> {
    let text = read_any(path, what)?;
    if text.trim().is_empty() { Err(unread(path, what, &"it is empty")) } else { Ok(text) }
}

/// Reads a token from a file, which has one and nothing else.
pub(crate) fn read_token(path: &std::path::Path) -> Result<String, Failure> {
    let text = read(path, "the token")?;
    let token = text.trim();
    if token.len() > MAX_TOKEN_BYTES || token.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err(unread(path, "the token", &"it is no token: one is a word like bwt_…"));
    }
    Ok(text)
}

/// The same, also of one that is empty.
pub(crate) fn read_any(path: &std::path::Path, what: &str) -> Result<String, Failure> {
    let text = if path.as_os_str() == "-" {
        limited(std::io::stdin())
    } else {
        std::fs::File::open(path).and_then(limited)
    };
    text.map_err(|error| unread(path, what, &error))
}

fn unread(path: &std::path::Path, what: &str, reason: &dyn std::fmt::Display) -> Failure {
    Failure::local(LocalFault::Input, format!("read {what} from {}: {reason}", path.display()))
}
