//! Why a server does not start.

use std::net::SocketAddr;
use std::path::PathBuf;

use bellwether_store::OpenError;

use crate::installation::InstallationError;
use crate::pki::PkiError;
use crate::records::commit::CommitError;
use crate::secret;
use crate::world::WorldError;

/// Why a server does not start. The message fits after "cannot ".
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store cannot be opened.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The records cannot be read.
    #[error("{0}")]
    World(#[from] WorldError),
    /// Keys or certificates failed.
    #[error("{0}")]
    Pki(#[from] PkiError),
    /// The certificate authorities of the store cannot be used.
    #[error("{0}")]
    Authorities(#[from] crate::authorities::error::AuthoritiesError),
    /// Others than the user of the server could use what is its own.
    #[error("{0}")]
    NotPrivate(#[from] bellwether_rt::own_files::NotPrivate),
    /// The keys for secrets cannot be read.
    #[error("{0}")]
    Keyring(#[from] crate::secrets::keyring::KeyringError),
    /// The random source failed.
    #[error("{0}")]
    Random(#[from] secret::RandomError),
    /// The first admin token cannot be written.
    #[error("write the first admin token: {0}")]
    Commit(#[from] CommitError),
    /// An address cannot be bound.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The threads on which reads run cannot be started.
    #[error("start the threads for reads: {0}")]
    Threads(std::io::Error),
    /// DNS cannot be started.
    #[error("{0}")]
    Dns(#[from] bellwether_dns::serve::ServeError),
    /// A listener without TLS was configured on an address that is not loopback.
    #[error("listen on {address} without TLS: only loopback addresses are allowed")]
    Plain {
        /// The address.
        address: SocketAddr,
    },
    /// A file cannot be written.
    #[error("write {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// `init` was not run.
    #[error("find an installation in {dir}; initialise one with `bellwether server init`")]
    NotInitialised {
        /// The data directory.
        dir: PathBuf,
    },
    /// The data directory is a file.
    #[error(
        "use {dir} as the data directory: it is a file, and no directory; name another one with --data-dir"
    )]
    NotDirectory {
        /// The data directory.
        dir: PathBuf,
    },
    /// The store of the server is gone.
    #[error(
        "find the store in {dir}, whose certificate authority is there: if the records are in etcd, name the configuration file with \
         --config; else mount the store, or restore a backup with `bellwether server restore`; a new control plane is made with `bellwether server init`"
    )]
    NoStore {
        /// The data directory.
        dir: PathBuf,
    },
    /// The store has lost its file.
    #[error(
        "find store.redb in {dir}: the file is missing; keep what is left, and restore a backup into an empty directory: \
         bellwether server restore"
    )]
    NoStoreFile {
        /// The directory of the store.
        dir: PathBuf,
    },
    /// The data directory belongs to another user.
    #[error("read {path}: permission denied; run the command as the user that owns it")]
    NotAllowed {
        /// The data directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A backup was restored, and the certificate authority of its installation is missing.
    #[error("{dir} has a store but no certificate authority: copy ca.pem and ca.key to {dir}/pki")]
    StoreAlone {
        /// The data directory.
        dir: PathBuf,
    },
    /// The certificate authority of the installation is missing on a server that shares a store.
    #[error(
        "find the installation's authority in {dir}: make the installation with `bellwether server init` on its first \
         server; every other one joins with `bellwether server join`"
    )]
    NoAuthority {
        /// The data directory.
        dir: PathBuf,
    },
    /// The store belongs to another installation, or has one already.
    #[error("{0}")]
    Installation(#[from] InstallationError),
}

impl RunError {
    /// Whether the store is damaged.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        matches!(self, Self::Open(OpenError::Corrupt { .. }))
    }

    /// Whether this user may not read the store.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        let denied = std::io::ErrorKind::PermissionDenied;
        matches!(self, Self::Open(OpenError::Io { source, .. }) if source.kind() == denied)
    }

    /// Whether another process has the store open.
    #[must_use]
    pub const fn is_in_use(&self) -> bool {
        matches!(self, Self::Open(OpenError::Locked { .. }))
    }
}
