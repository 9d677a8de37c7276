//! Connections to the members of an etcd: made alike for each, and used once something is asked.

use std::time::Duration;

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::settings::EtcdSettings;
use crate::error::OpenError;

/// Interval of keep-alive pings on a connection in use. etcd closes connections that ping more than every 5 s.
const PING: Duration = Duration::from_secs(10);

/// Flow-control window of a connection, in bytes, so that a watch that nobody reads does not delay others.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// Flow-control window of one call or watch, in bytes.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// One member, over two connections: large pages do not delay watches.
#[derive(Debug, Clone)]
pub(super) struct EtcdMember {
    /// Which one it is among all that this process ever asked.
    pub(super) place: usize,
    /// Its URL.
    pub(super) address: String,
    pub(super) calls: Channel,
    pub(super) streams: Channel,
}

/// How members are reached.
#[derive(Debug)]
pub(super) struct Connector {
    tls: ClientTlsConfig,
    deadline: Duration,
}

impl Connector {
    pub(super) async fn new(settings: &EtcdSettings) -> Result<Self, OpenError> {
        Ok(Self { tls: tls(settings).await?, deadline: settings.deadline })
    }

    /// A member at this URL; connects to nothing yet.
    pub(super) fn member(&self, address: &str, place: usize) -> Result<EtcdMember, OpenError> {
        let refuse = |reason: String| OpenError::Setting { setting: "endpoints", reason };
        let is_secret = address.starts_with("https://");
        if !is_secret && !address.starts_with("http://") {
            return Err(refuse(format!("{address:?} is not a URL of etcd; use one like https://host:2379")));
        }
        let mut endpoint = Endpoint::from_shared(address.to_owned())
            .map_err(|error| {
                refuse(format!("{address:?} is not a URL of etcd ({error}); use one like https://host:2379"))
            })?
            .connect_timeout(self.deadline / 2)
            .http2_keep_alive_interval(PING)
            .keep_alive_timeout(self.deadline)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        if is_secret {
            let refuse = |error| OpenError::Setting {
                setting: "certificates",
                reason: format!(
                    "they cannot be used ({error}); check that the files hold PEM, and the key that of the certificate"
                ),
            };
            endpoint = endpoint.tls_config(self.tls.clone()).map_err(refuse)?;
        }
        let (calls, streams) = (endpoint.connect_lazy(), endpoint.connect_lazy());
        Ok(EtcdMember { place, address: address.to_owned(), calls, streams })
    }
}

/// TLS settings. Files are read once: a new certificate needs a new store.
async fn tls(settings: &EtcdSettings) -> Result<ClientTlsConfig, OpenError> {
    let mut tls = ClientTlsConfig::new();
    match &settings.ca_file {
        Some(file) => tls = tls.ca_certificate(Certificate::from_pem(read(file).await?)),
        None => tls = tls.with_native_roots(),
    }
    if let Some(identity) = &settings.identity {
        let (cert, key) = (read(&identity.cert_file).await?, read(&identity.key_file).await?);
        tls = tls.identity(Identity::from_pem(cert, key));
    }
    Ok(tls)
}

async fn read(file: &std::path::Path) -> Result<Vec<u8>, OpenError> {
    let io = |source| OpenError::Io { path: file.to_owned(), source };
    tokio::fs::read(file).await.map_err(io)
}
