//! Joining: a machine becomes a server of an installation. It sends its join token once, to a server that it verifies by the token,
//! and stores the keys that it receives and a configuration. Starts nothing.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bellwether_api::client::secret::Secret;
use bellwether_api::client::{CallError, Client};
use bellwether_api::v1::server_join::{EtcdAccess, JoinServer, JoinedServer};
use bellwether_core::words::name::ServerName;
use bellwether_rt::config_error::ConfigError;
use serde::Serialize;

use crate::config::Config;
use crate::key_files::{KeyDir, KeyFileError, NewFiles};
use crate::pki::write_private;
use crate::secret::SERVER_JOIN_PREFIX;

/// Hexadecimal digits of a fingerprint.
const FINGERPRINT_LEN: usize = 64;

/// The parameters of a join.
#[derive(Debug, Clone)]
pub struct JoinRequest {
    /// The server that is asked, `https://host:port`.
    pub from: String,
    /// The join token: `bws_`, a secret, `.`, the CA's fingerprint.
    pub token: Secret,
    /// Name of the new server.
    pub name: ServerName,
    /// Its configuration file: written if it is absent, otherwise used as it is.
    pub config_file: PathBuf,
    /// Its data directory.
    pub data_dir: PathBuf,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// URL at which others reach it; where it listens if absent.
    pub address: Option<String>,
    /// Files for etcd on this machine, in place of the paths that the other server has.
    pub etcd_files: EtcdFiles,
}

/// Files with which a server authenticates to etcd and verifies it.
#[derive(Debug, Clone, Default)]
pub struct EtcdFiles {
    /// The authority of etcd's certificates.
    pub ca_file: Option<PathBuf>,
    /// The client certificate.
    pub cert_file: Option<PathBuf>,
    /// The key of the client certificate.
    pub key_file: Option<PathBuf>,
}

/// The result of a join.
#[derive(Debug, Clone, Serialize)]
pub struct JoinedInstallation {
    /// Id of the installation.
    pub installation: String,
    /// The data directory with the keys.
    pub data_dir: PathBuf,
    /// The configuration file.
    pub config_file: PathBuf,
    /// Whether the configuration file was written now.
    pub config_is_new: bool,
    /// Files for etcd that the configuration names and this machine does not have, or that cannot be read.
    pub missing_files: Vec<PathBuf>,
}

/// Why a join failed. Fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The join token is malformed.
    #[error("use the join token: {0}; create one with `bellwether server join-token`")]
    Token(&'static str),
    /// The data directory has an authority.
    #[error("join: {dir} has a certificate authority already; use another data directory, or remove its pki")]
    Present {
        /// The data directory.
        dir: PathBuf,
    },
    /// The configuration file does not load.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration file says something else than the command.
    #[error("join: {file} {reason}; correct it, or name a file that does not exist with --config")]
    Contradiction {
        /// The configuration file.
        file: PathBuf,
        /// What it says.
        reason: String,
    },
    /// The server refused, or did not answer.
    #[error("join from {from}: {}", reason(.source))]
    Call {
        /// The server.
        from: String,
        /// The error.
        source: CallError,
    },
    /// The keys cannot be written.
    #[error("{0}")]
    Keys(#[from] KeyFileError),
    /// What was received cannot be stored; the token is used up.
    #[error(
        "{0}; nothing was kept, and the join token is used up: create another one with `bellwether server join-token`"
    )]
    Unfinished(Box<JoinError>),
    /// The configuration cannot be written.
    #[error("write {file}: {reason}")]
    File {
        /// The configuration file.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
}

fn reason(source: &CallError) -> String {
    match source {
        CallError::Problem(problem) => match &problem.hint {
            Some(hint) => format!("{} ({hint})", problem.detail),
            None => problem.detail.clone(),
        },
        CallError::Setup { .. }
        | CallError::Unreachable { .. }
        | CallError::NoneReachable { .. }
        | CallError::AnswerLost { .. }
        | CallError::Timeout { .. }
        | CallError::Garbled { .. } => source.to_string(),
    }
}

/// The configuration file of the new server.
#[derive(Debug, Serialize)]
struct File<'a> {
    name: &'a str,
    data_dir: &'a Path,
    listen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
    etcd: EtcdTable,
}

#[derive(Debug, Serialize)]
struct EtcdTable {
    endpoints: Vec<String>,
    prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cert_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_file: Option<PathBuf>,
}

/// Joins this machine to an installation as a server. The token is used up once the keys are sent.
///
/// # Errors
/// [`JoinError`]; what can be known to fail is found before the token is sent.
pub async fn join(request: &JoinRequest) -> Result<JoinedInstallation, JoinError> {
    let fingerprint = fingerprint(&request.token)?;
    let keys = KeyDir::of(&request.data_dir);
    if keys.has_authority() {
        return Err(JoinError::Present { dir: request.data_dir.clone() });
    }
    let config_is_new = !request.config_file.exists();
    if !config_is_new {
        agrees(request)?;
    }
    if config_is_new {
        can_write(request)?;
    }
    let dirs = keys.make()?;
    let received = receive(request, fingerprint, (&keys, config_is_new)).await;
    if received.is_err() {
        dirs.remove();
    }
    let joined = received?;
    let etcd = table(&joined.etcd, &request.etcd_files);
    let files = [&etcd.ca_file, &etcd.cert_file, &etcd.key_file];
    let cannot_be_read = |path: &&PathBuf| std::fs::File::open(path).is_err();
    let missing_files = files.into_iter().flatten().filter(cannot_be_read).cloned().collect();
    let JoinedServer { installation, .. } = joined;
    Ok(JoinedInstallation {
        installation,
        data_dir: request.data_dir.clone(),
        config_file: request.config_file.clone(),
        config_is_new,
        missing_files: if config_is_new { missing_files } else { Vec::new() },
    })
}

/// Asks for the keys, and stores them.
async fn receive(
    request: &JoinRequest,
    fingerprint: &str,
    (keys, config_is_new): (&KeyDir, bool),
) -> Result<JoinedServer, JoinError> {
    let call = |source| JoinError::Call { from: request.from.clone(), source };
    let client = Client::by_fingerprint(std::slice::from_ref(&request.from), fingerprint).map_err(call)?;
    let join = JoinServer { token: request.token.expose().to_owned(), name: request.name.to_string() };
    let joined = client.join_server(&join).await.map_err(call)?;
    store(request, keys, &joined, config_is_new).map_err(|error| JoinError::Unfinished(Box::new(error)))?;
    Ok(joined)
}

/// The fingerprint of the authority in a token.
fn fingerprint(token: &Secret) -> Result<&str, JoinError> {
    let rest = token.expose().strip_prefix(SERVER_JOIN_PREFIX);
    let rest = rest.ok_or(JoinError::Token("it does not begin with bws_"))?;
    let (_, fingerprint) = rest.split_once('.').ok_or(JoinError::Token("it is incomplete"))?;
    let is_whole =
        fingerprint.len() == FINGERPRINT_LEN && fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_whole { Ok(fingerprint) } else { Err(JoinError::Token("it is incomplete")) }
}

/// Checks that a configuration that is there already is one of this server, with an etcd.
fn agrees(request: &JoinRequest) -> Result<(), JoinError> {
    let file = &request.config_file;
    let config = Config::load(Some(file))?;
    let refuse = |reason: String| Err(JoinError::Contradiction { file: file.clone(), reason });
    if config.etcd.is_none() {
        return refuse("has no table [etcd]".to_owned());
    }
    if config.name != request.name {
        return refuse(format!("is of a server with the name {}", config.name));
    }
    if config.data_dir != request.data_dir {
        return refuse(format!("has the data directory {}", config.data_dir.display()));
    }
    Ok(())
}

fn table(theirs: &EtcdAccess, ours: &EtcdFiles) -> EtcdTable {
    let EtcdAccess { endpoints, prefix, ca_file, cert_file, key_file } = theirs.clone();
    EtcdTable {
        endpoints,
        prefix,
        ca_file: ours.ca_file.clone().or(ca_file),
        cert_file: ours.cert_file.clone().or(cert_file),
        key_file: ours.key_file.clone().or(key_file),
    }
}

/// Stores what was received: the keys, then the configuration. If it fails, nothing is left that would refuse the next join.
fn store(
    request: &JoinRequest,
    keys: &KeyDir,
    joined: &JoinedServer,
    config_is_new: bool,
) -> Result<(), JoinError> {
    let mut made = keys.write(joined)?;
    if config_is_new && let Err(error) = write(request, table(&joined.etcd, &request.etcd_files), &mut made) {
        made.remove();
        return Err(error);
    }
    Ok(())
}

/// Refuses a configuration file that cannot be written, before the token is used up.
fn can_write(request: &JoinRequest) -> Result<(), JoinError> {
    let file = &request.config_file;
    let tried = write_private(file, "").and_then(|()| std::fs::remove_file(file));
    tried.map_err(|error| JoinError::File { file: file.clone(), reason: error.to_string() })
}

fn write(request: &JoinRequest, etcd: EtcdTable, made: &mut NewFiles) -> Result<(), JoinError> {
    let file = File {
        name: request.name.as_str(),
        data_dir: &request.data_dir,
        listen: request.listen.to_string(),
        address: request.address.as_deref(),
        etcd,
    };
    let failed = |reason: String| JoinError::File { file: request.config_file.clone(), reason };
    let text = toml::to_string(&file).map_err(|error| failed(error.to_string()))?;
    made.write(&request.config_file, &text).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(dir: &Path, token: &str) -> JoinRequest {
        JoinRequest {
            from: "https://127.0.0.1:1".to_owned(),
            token: Secret::new(token),
            name: ServerName::parse("cp-2").unwrap(),
            config_file: dir.join("server.toml"),
            data_dir: dir.join("data"),
            listen: "127.0.0.1:7430".parse().unwrap(),
            address: Some("https://127.0.0.1:7430".to_owned()),
            etcd_files: EtcdFiles { ca_file: Some(dir.join("etcd.pem")), ..EtcdFiles::default() },
        }
    }

    fn whole_token() -> String {
        format!("bws_00.{}", "a".repeat(FINGERPRINT_LEN))
    }

    #[tokio::test]
    async fn what_cannot_be_is_refused_before_anything_is_sent_or_written() {
        let dir = tempfile::tempdir().unwrap();
        for token in ["", "bwj_00.aa", "bws_00", "bws_00.abc"] {
            let error = join(&request(dir.path(), token)).await.unwrap_err().to_string();
            assert!(error.starts_with("use the join token"), "{error}");
        }
        assert!(!dir.path().join("data").exists());
        let request = request(dir.path(), &whole_token());
        for (text, reason) in [
            ("name = \"cp-2\"", "has no table [etcd]"),
            ("name = \"cp-1\"\n[etcd]\nendpoints = [\"http://127.0.0.1:2379\"]", "with the name cp-1"),
            (
                "name = \"cp-2\"\n[etcd]\nendpoints = [\"http://127.0.0.1:2379\"]",
                "has the data directory /var",
            ),
        ] {
            std::fs::write(&request.config_file, text).unwrap();
            let error = join(&request).await.unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("127.0.0.1:1:"), "{error}");
        }
        std::fs::create_dir_all(dir.path().join("data/pki")).unwrap();
        std::fs::write(dir.path().join("data/pki/ca.pem"), "").unwrap();
        let error = join(&request).await.unwrap_err().to_string();
        assert!(error.contains("has a certificate authority already"), "{error}");
    }

    #[tokio::test]
    async fn a_configuration_that_cannot_be_written_is_refused_before_the_token_is_sent_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut request = request(dir.path(), &whole_token());
        request.config_file = dir.path().join("missing/server.toml");
        let error = join(&request).await.unwrap_err();
        assert!(matches!(error, JoinError::File { .. }), "{error}");
        assert!(!request.data_dir.exists(), "something was left");
    }

    #[tokio::test]
    async fn a_join_that_no_server_answers_leaves_no_directory() {
        let dir = tempfile::tempdir().unwrap();
        let request = request(dir.path(), &whole_token());
        let error = join(&request).await.unwrap_err();
        assert!(matches!(error, JoinError::Call { .. }), "{error}");
        assert!(!request.data_dir.exists(), "a directory was left");
    }

    #[test]
    fn keys_that_came_with_a_join_that_failed_are_not_in_the_way_of_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let request = request(dir.path(), &whole_token());
        let keys = KeyDir::of(&request.data_dir);
        keys.make().unwrap();
        let joined = JoinedServer {
            installation: "i".to_owned(),
            ca: "ca".to_owned(),
            ca_key: "key".to_owned(),
            secret_keys: Some("keys".to_owned()),
            etcd: EtcdAccess {
                endpoints: Vec::new(),
                prefix: "/bellwether".to_owned(),
                ca_file: None,
                cert_file: None,
                key_file: None,
            },
        };
        std::fs::write(&request.config_file, "").unwrap();
        store(&request, &keys, &joined, true).unwrap_err();
        assert!(!keys.has_authority());
        assert!(request.config_file.exists(), "what was there before is left");
        std::fs::remove_file(&request.config_file).unwrap();
        store(&request, &keys, &joined, true).unwrap();
    }

    #[test]
    fn the_configuration_that_is_written_is_the_one_of_the_new_server() {
        let dir = tempfile::tempdir().unwrap();
        let request = request(dir.path(), &whole_token());
        let theirs = EtcdAccess {
            endpoints: vec!["https://10.0.0.1:2379".to_owned()],
            prefix: "/other".to_owned(),
            ca_file: Some("/etc/etcd/ca.pem".into()),
            cert_file: Some("/etc/etcd/server.pem".into()),
            key_file: Some("/etc/etcd/server.key".into()),
        };
        write(&request, table(&theirs, &request.etcd_files), &mut NewFiles::default()).unwrap();
        agrees(&request).unwrap();
        let config = Config::load(Some(&request.config_file)).unwrap();
        let etcd = config.etcd.unwrap();
        assert_eq!((etcd.endpoints, etcd.prefix), (theirs.endpoints, theirs.prefix));
        assert_eq!(etcd.ca_file, request.etcd_files.ca_file);
        assert_eq!(etcd.identity, Some(("/etc/etcd/server.pem".into(), "/etc/etcd/server.key".into())));
        assert_eq!((config.listen, config.address), (request.listen, request.address));
    }
}
